// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

func (a *app) historyCommand() *cobra.Command {
	var q historyQuery
	cmd := a.prints(&cobra.Command{
		Use:     "history",
		GroupID: groupInspect,
		Short:   "Show the steps and refusals of the cluster, oldest first",
		Long: "Show the steps, operations and refusals of all hosts, oldest first. With --follow, print new lines " +
			"as\nthey appear, until interrupted.",
		Example: examples("quorumctl history", "quorumctl history --since 2h", "quorumctl history --follow"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.lines < 1 || q.lines > control.MaxHistory {
				return usage("quorumctl history -n 100", "cannot read the history: --lines must be 1 to %d",
					control.MaxHistory)
			}
			if q.since > 0 && !cmd.Flags().Changed("lines") {
				q.lines = control.MaxHistory
			}
			if q.follow {
				return a.followHistory(cmd.Context(), q)
			}
			doc, err := a.history(cmd.Context(), q)
			if err != nil {
				return err
			}
			return a.emit(doc, func(p *page) { writeHistory(p, doc) })
		},
	}, printed{name: "history", of: control.History{}})
	cmd.Flags().IntVarP(&q.lines, "lines", "n", 20, "number of lines; with --since, the default is 1000")
	durationVar(cmd.Flags(), &q.since, "since", 0, "only lines younger than this, such as 30m or 2d")
	cmd.Flags().BoolVarP(&q.follow, "follow", "f", false, "print new lines as they appear")
	return cmd
}

// historyQuery holds the flags of history.
type historyQuery struct {
	lines  int
	since  time.Duration // 0: no limit
	follow bool
}

// history reads the newest lines. --since is measured with the clock of this host.
func (a *app) history(ctx context.Context, q historyQuery) (control.History, error) {
	got, err := a.client().History(ctx, q.lines)
	old := errors.Is(err, control.ErrNotNewest)
	if err != nil && !old {
		return control.History{}, cannot("read the history", err)
	}
	if q.since > 0 {
		oldest := time.Now().Add(-q.since)
		got = slices.DeleteFunc(got, func(l control.HistoryLine) bool { return l.Time.Before(oldest) })
	}
	return control.History{APIVersion: control.APIVersion, Lines: got, NotNewest: old}, nil
}

// historyPoll is the interval at which --follow reads the history.
const historyPoll = 2 * time.Second

// followHistory prints the history, then every new line until the context ends. After the first read, it ignores
// failures to read, because quorumd may be restarting.
func (a *app) followHistory(ctx context.Context, q historyQuery) error {
	doc, err := a.history(ctx, q)
	if err != nil {
		return err
	}
	if err := a.emit(doc, func(p *page) { writeHistory(p, doc) }); err != nil {
		return err
	}
	// The revision does not identify a line, because a line has none until it is written to etcd.
	type key struct {
		at         int64
		host, code string
		text       string
	}
	of := func(l control.HistoryLine) key { return key{l.Time.UnixNano(), l.Host, l.Code, l.Text} }
	seen := map[key]bool{}
	floor := time.Now().Add(-q.since)
	for _, l := range doc.Lines {
		seen[of(l)] = true
	}
	if len(doc.Lines) > 0 {
		floor = doc.Lines[0].Time
	}
	tick := time.NewTicker(historyPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		next, err := a.history(ctx, historyQuery{lines: control.MaxHistory})
		if err != nil {
			continue
		}
		fresh := control.History{APIVersion: next.APIVersion, NotNewest: next.NotNewest}
		for _, l := range next.Lines {
			if !seen[of(l)] && l.Time.After(floor) {
				seen[of(l)] = true
				fresh.Lines = append(fresh.Lines, l)
			}
		}
		if len(fresh.Lines) == 0 {
			continue
		}
		if a.format == formatYAML {
			if err := a.write([]byte("---\n")); err != nil {
				return err
			}
		}
		if err := a.emit(fresh, func(p *page) { writeHistoryLines(p, fresh.Lines) }); err != nil {
			return err
		}
	}
}

func writeHistory(p *page, h control.History) {
	lines := h.Lines
	if h.NotNewest {
		defer p.line("%s newer lines and those of other hosts are missing",
			word{control.ErrNotNewest.Error() + ";", warn})
	}
	if len(lines) == 0 {
		p.line("no history lines to show")
		return
	}
	writeHistoryLines(p, lines)
}

func writeHistoryLines(p *page, lines []control.HistoryLine) {
	t := table{head: []string{"TIME", "HOST", "KIND", "CODE", "TEXT"}}
	if p.wide {
		t.head = append([]string{"REVISION"}, t.head...)
	}
	for _, l := range lines {
		row := []word{
			{Text: display.Timestamp(l.Time)},
			{Text: l.HostName},
			{Text: l.Kind},
			{l.Code, display.EventTone(l.Kind)},
			{Text: l.Text},
		}
		if p.wide {
			row = append(cells(strconv.FormatInt(l.Revision, 10)), row...)
		}
		t.add(row...)
	}
	p.table(t)
}
