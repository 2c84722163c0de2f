// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/recovery"
)

// showComparison shows the hosts side by side, and what the plan would do if there is one.
func (a *app) showComparison(facts []recovery.Facts, plan recovery.Plan) error {
	p := &page{coloured: a.coloured(), wide: a.format == formatWide}
	t := table{head: []string{
		"HOST", "LAST ENTRY", "COMMIT", "REVISION", "DATABASE", "ETCD", "NO QUORUM FOR", "SURVIVOR",
	}}
	for _, l := range recovery.Compare(facts) {
		f := l.Facts
		row := cells(f.Host, "", "", "", "", f.Etcd, lostFor(f), "")
		if !f.Log.Empty {
			row[1].Text = fmt.Sprintf("%d, term %d", f.Log.Index, f.Log.Term)
			row[2].Text = strconv.FormatUint(f.Log.Commit, 10)
			row[4].Text = bytesText(f.Log.Database)
			row[3].Text = "etcd runs"
			if f.Log.Revision > 0 {
				row[3].Text = strconv.FormatInt(f.Log.Revision, 10)
			}
		}
		row[7] = asSurvivor(l, plan)
		t.add(row...)
	}
	p.table(t)
	for _, m := range recovery.Missing(facts) {
		p.line("%s (%s) is a voter of which there are no facts", word{cmp.Or(m.Name, "one without a name"), warn}, m.ID)
	}
	if plan.ID != "" {
		p.line("")
		goesOn(p, plan)
		if len(plan.Gone) > 0 {
			p.line("%s", word{"Keep those off that are gone: several of them that come back and cannot reach this " +
				"cluster form the old one again.", warn})
		}
		if len(plan.KeptOff) > 0 {
			p.line("%s", word{"By your word these never start again as they are, each the survivor of an earlier " +
				"plan: " + strings.Join(plan.KeptOff, ", ") + ". Where one does, two clusters serve.", warn})
		}
	}
	return a.write([]byte(p.String()))
}

// goesOn tells what becomes of the cluster.
func goesOn(p *page, plan recovery.Plan) {
	host, s := plan.Of(plan.Survivor).Host, plan.Snapshot
	if s == nil {
		p.line("%s continues alone, under another cluster ID than %s; its revision is raised by a thousand million, "+
			"so "+
			"that watchers notice. All others of these hosts move their data aside and join it.", host, plan.Old)
		return
	}
	p.line("%s continues alone with the snapshot %s (revision %d, %d keys, %s, SHA-256 %.12s), under a new cluster "+
		"ID; "+
		"its revision is raised by a thousand million, so that watchers notice. If it has data they are moved aside. "+
		"All others of these hosts move theirs aside and join it.", host, s, s.Revision, s.Keys, bytesText(s.Size),
		s.SHA256)
	if s.Origin != "" {
		p.line("Origin of the snapshot: %s.", s.Origin)
	}
	if !s.Taken.IsZero() {
		p.line("%s", word{"Every write since " + display.Timestamp(s.Taken) + " is lost.", warn})
	}
}

// withSnapshot tells with what a host goes on.
func withSnapshot(r control.Recovery) string {
	if r.Snapshot == "" {
		return ""
	}
	return " with the snapshot " + r.Snapshot
}

func asSurvivor(l recovery.Loss, plan recovery.Plan) word {
	lacks := "loses nothing"
	if l.Behind > 0 {
		lacks = fmt.Sprintf("loses %d entries or more", l.Behind)
	}
	switch {
	case plan.Snapshot != nil && plan.Survivor == l.Facts.HostID:
		return word{"proposed: gets the snapshot", good}
	case l.No != "":
		return word{"none: " + l.No, plain}
	case plan.Survivor == l.Facts.HostID || plan.ID == "" && l.Chosen:
		return word{"proposed: " + lacks, good}
	}
	return word{lacks, plain}
}

func lostFor(f recovery.Facts) string {
	switch {
	case f.Quorum:
		return "it sees one"
	case f.Lost.IsZero():
		return "never seen"
	}
	return durationfmt.Seconds(f.Taken.Sub(f.Lost))
}

func bytesText(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// recoveryState is the document of recover status.
type recoveryState struct {
	APIVersion string               `json:"apiVersion"`
	Recovery   *control.Recovery    `json:"recovery"`
	Last       *control.RecoveryEnd `json:"last"`
	Next       control.Next         `json:"next"`
	Reasons    []control.Reason     `json:"reasons"`
}

func (a *app) recoverStatusCommand() *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how far this host is with a plan",
		Long: "Show how far this host is with a plan. With --watch it is shown until the plan has ended here, which\n" +
			"is an error where it was given up.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.status(cmd.Context(), "read how the recovery goes")
			if err == nil && watch && s.Recovery != nil {
				s, err = a.followRecovery(cmd.Context(), s)
			}
			if err != nil {
				return err
			}
			doc := recoveryState{s.APIVersion, s.Recovery, s.LastRecovery, s.Next, s.Reasons}
			if err := a.emit(doc, func(p *page) { writeRecovery(p, s) }); err != nil {
				return err
			}
			return recoveryFault(s, watch)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show how it goes until it is over on this host")
	return cmd
}

func writeRecovery(p *page, s control.Status) {
	if end := s.LastRecovery; s.Recovery == nil && end != nil {
		p.line("plan %s by %s has ended on this host at %s: %s", end.Plan, end.By, display.Timestamp(end.Ended),
			end.Code)
		return
	}
	if s.Recovery == nil {
		p.line("no plan is in force on this host")
		return
	}
	r := s.Recovery
	part := "moves its data aside and joins " + r.Survivor + " again"
	if r.Alone {
		part = "continues alone" + withSnapshot(*r) + " as cluster " + r.New
	}
	p.line("plan %s by %s, since %s: this host %s", r.Plan, r.By, display.Timestamp(r.Since), part)
	if r.GivenUp != "" {
		p.line("it is given up by %s", r.GivenUp)
	}
	if s.Next.Text != "" {
		p.line("next: %s", s.Next.Text)
	}
	for _, reason := range s.Reasons {
		p.line("%s: %s", word{reason.Code, warn}, reason.Text)
	}
}
