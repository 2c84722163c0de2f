// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"runtime/debug"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
)

// versions is the output of quorumctl version.
type versions struct {
	Quorumctl string `json:"quorumctl"`
	Quorumd   string `json:"quorumd,omitempty"` // absent if quorumd does not answer
}

func (a *app) versionCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:     "version",
		GroupID: groupService,
		Short:   "Show the versions of quorumctl and the running quorumd",
		Example: examples("quorumctl version", "quorumctl version -o json"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// do not wait long: quorumctl's own version is known without quorumd
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
			defer cancel()
			doc := versions{Quorumctl: ownVersion()}
			s, err := a.client().Status(ctx)
			if err == nil {
				doc.Quorumd = s.Host.Version
			}
			return a.emit(doc, func(p *page) {
				p.line("quorumctl %s", doc.Quorumctl)
				if err != nil {
					p.line("quorumd   no answer at %s", a.socket)
					return
				}
				p.line("quorumd   %s", cmp.Or(doc.Quorumd, "unknown"))
			})
		},
	}, printed{name: "versions", of: versions{}})
}

// ownVersion returns the version set by the linker, otherwise the one recorded by the Go toolchain.
func ownVersion() string {
	if version.Version != "" {
		return version.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
