// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

func (a *app) historyCommand() *cobra.Command {
	var lines int
	cmd := &cobra.Command{
		Use:     "history",
		GroupID: groupInspect,
		Short:   "Show the steps taken and the refusals in the cluster, oldest first",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lines < 1 || lines > control.MaxHistory {
				return usage("quorumctl history -n 100", "cannot read the history: ask for 1 to %d lines",
					control.MaxHistory)
			}
			got, err := a.client().History(cmd.Context(), lines)
			old := errors.Is(err, control.ErrNotNewest)
			if err != nil && !old {
				return cannot("read the history", err)
			}
			doc := control.History{APIVersion: control.APIVersion, Lines: got, NotNewest: old}
			return a.emit(doc, func(p *page) { writeHistory(p, doc) })
		},
	}
	cmd.Flags().IntVarP(&lines, "lines", "n", 20, "how many lines")
	return cmd
}

func writeHistory(p *page, h control.History) {
	lines := h.Lines
	if h.NotNewest {
		defer p.line("%s newer ones, and what other hosts did, are missing",
			word{control.ErrNotNewest.Error() + ";", warn})
	}
	if len(lines) == 0 {
		p.line("nothing has happened yet")
		return
	}
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
