// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/recovery"
)

// showComparison shows a table of the hosts and, if there is a plan, what it would do.
func (a *app) showComparison(facts []recovery.Facts, plan recovery.Plan) error {
	p := &page{coloured: a.coloured(), wide: a.format == formatWide}
	t := table{head: []string{
		"HOST", "LAST ENTRY", "COMMIT", "REVISION", "DATABASE", "ETCD", "NO QUORUM FOR", "SURVIVOR",
	}}
	for _, l := range recovery.Compare(facts) {
		f := l.Facts
		row := cells(f.Host, "", "", "", "", f.Etcd, noQuorumFor(f), "")
		if !f.Log.Empty {
			row[1].Text = fmt.Sprintf("%d, term %d", f.Log.Index, f.Log.Term)
			row[2].Text = strconv.FormatUint(f.Log.Commit, 10)
			row[4].Text = bytesText(f.Log.Database)
			row[3].Text = "etcd is up"
			if f.Log.Revision > 0 {
				row[3].Text = strconv.FormatInt(f.Log.Revision, 10)
			}
		}
		row[7] = survivorCell(l, plan)
		t.add(row...)
	}
	p.table(t)
	for _, m := range recovery.Missing(facts) {
		if m.Name == "" {
			p.line("no output of 'recover collect' from the unnamed voter %s", word{m.ID.String(), warn})
			continue
		}
		p.line("no output of 'recover collect' from voter %s (%s)", word{m.Name, warn}, m.ID)
	}
	if plan.ID != "" {
		p.line("")
		writeConsequences(p, plan)
		if len(plan.Gone) > 0 {
			p.line("%s", word{"Keep the voters named with --gone powered off: if several of them return and cannot " +
				"reach this cluster, they can form the old cluster again.", warn})
		}
		if len(plan.KeptOff) > 0 {
			p.line("%s", word{"These survivors of earlier plans must never start again with their data, or there " +
				"will be two clusters: " + strings.Join(plan.KeptOff, ", "), warn})
		}
	}
	return a.write([]byte(p.String()))
}

// writeConsequences shows what the plan does to the cluster.
func writeConsequences(p *page, plan recovery.Plan) {
	host, s := plan.FactsOf(plan.Survivor).Host, plan.Snapshot
	if s == nil {
		p.line("%s is the survivor: it continues alone with a new cluster ID instead of %s. The revision is raised by "+
			"1000000000, so that watchers notice the change. The other hosts move their data aside and join it.", host,
			plan.Old)
		return
	}
	p.line("%s is the survivor: it moves its data, if any, aside and continues alone with the snapshot %s (revision "+
		"%d, %d keys, "+
		"%s, SHA-256 %.12s) and a new cluster ID. The revision is raised by 1000000000, so that watchers notice the "+
		"change. The other hosts move their data aside and join it.", host, s, s.Revision, s.Keys, bytesText(s.Size),
		s.SHA256)
	if s.Origin != "" {
		p.line("Origin of the snapshot: %s.", s.Origin)
	}
	if !s.Taken.IsZero() {
		p.line("%s", word{"Every write since " + display.Timestamp(s.Taken) + " is lost.", warn})
	}
}

// withSnapshot names the snapshot that the survivor restores.
func withSnapshot(r control.Recovery) string {
	if r.Snapshot == "" {
		return ""
	}
	return " with the snapshot " + r.Snapshot
}

func survivorCell(l recovery.Loss, plan recovery.Plan) word {
	loss := "loses nothing"
	if l.Behind > 0 {
		loss = fmt.Sprintf("loses %d entries or more", l.Behind)
	}
	switch {
	case plan.Snapshot != nil && plan.Survivor == l.Facts.HostID:
		return word{"proposed: restores the snapshot", good}
	case l.No != "":
		return word{"no: " + l.No, plain}
	case plan.Survivor == l.Facts.HostID || plan.ID == "" && l.Chosen:
		return word{"proposed: " + loss, good}
	}
	return word{loss, plain}
}

func noQuorumFor(f recovery.Facts) string {
	switch {
	case f.Quorum:
		return "has quorum"
	case f.Lost.IsZero():
		return "never seen"
	}
	return durationfmt.Seconds(f.Taken.Sub(f.Lost))
}

func bytesText(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// recoveryState is the document that 'quorumctl recover status' prints.
type recoveryState struct {
	APIVersion string               `json:"apiVersion"`
	Recovery   *control.Recovery    `json:"recovery"`
	Last       *control.RecoveryEnd `json:"last"`
	Next       control.Next         `json:"next"`
	Reasons    []control.Reason     `json:"reasons"`
}

func (a *app) recoverStatusCommand() *cobra.Command {
	var watch bool
	cmd := a.prints(&cobra.Command{
		Use:   "status",
		Short: "Show the progress of the recovery plan on this host",
		Long: "Show the progress of the recovery plan on this host. With --watch, follow it until it has ended " +
			"here;\nthe exit status is 70 if the plan was given up.",
		Example: examples("quorumctl recover status", "quorumctl recover status --watch"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.status(cmd.Context(), "read the recovery status")
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
			return recoveryFailure(s, watch)
		},
	}, printed{name: "recovery-status", of: recoveryState{}})
	cmd.Flags().BoolVar(&watch, "watch", false, "follow the plan until it has ended on this host")
	return cmd
}

func writeRecovery(p *page, s control.Status) {
	if end := s.LastRecovery; s.Recovery == nil && end != nil {
		p.line("plan %s, applied by %s, ended on this host at %s: %s", end.Plan, end.By,
			display.Timestamp(end.Ended), end.Code)
		return
	}
	if s.Recovery == nil {
		p.line("no recovery plan on this host")
		return
	}
	r := s.Recovery
	part := "moves its data aside and joins " + r.Survivor
	if r.Alone {
		part = "is the survivor" + withSnapshot(*r) + " and becomes cluster " + r.New.String()
	}
	p.line("plan %s, applied by %s at %s: this host %s", r.Plan, r.By, display.Timestamp(r.Since), part)
	if r.GivenUp != "" {
		p.line("given up by %s", r.GivenUp)
	}
	if s.Next.Text != "" {
		p.line("next: %s", s.Next.Text)
	}
	for _, reason := range s.Reasons {
		p.line("%s: %s", word{reason.Code, warn}, reason.Text)
	}
}
