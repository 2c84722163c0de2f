// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
)

func (a *app) resumeCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:     "resume",
		GroupID: groupOperate,
		Short:   "End a pause",
		Example: examples("quorumctl resume", "quorumctl resume -o json"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := a.client().Resume(cmd.Context())
			if e, is := errors.AsType[*control.Error](err); is && e.Code == control.CodeNotPaused {
				return a.emit(control.Done{}, func(p *page) { p.line("nothing is paused") })
			}
			return a.emitResult("resume", err, done, func(p *page) { p.line("resumed by %s", done.By) })
		},
	}, printed{name: "done", of: control.Done{}})
}
