// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

func (a *app) memberReplaceCommand() *cobra.Command {
	var req control.RetireRequest
	var w waitFlags
	var c confirmation
	cmd := a.prints(&cobra.Command{
		Use:   "replace OLD NEW --reason TEXT",
		Short: "Retire a voter's host and name its replacement",
		Long: "Retire the host OLD, like quorumctl retire OLD, and name the host that joins in its place: NEW, a\n" +
			"spare or the standby. No other host joins instead, even if NEW becomes unhealthy; quorumctl explain\n" +
			"NEW then shows what NEW waits for. When NEW votes, the voter of OLD leaves, and OLD stays out.\n\n" +
			"The command is refused if NEW cannot join now, or if there is a standby and NEW is not that standby.\n" +
			"To name a different host while OLD still votes, run the command again; to let any host join:\n" +
			"quorumctl retire OLD --reason TEXT. To undo it: quorumctl retire OLD --undo. If OLD dies before NEW\n" +
			"votes, it is replaced like any dead voter.\n\n" +
			"With --wait, show the progress until OLD can be switched off. The exit status is 75 if --wait timed\n" +
			"out; the replacement then continues.",
		Example: examples("quorumctl member replace n2 n5 --reason 'n2 is being decommissioned' --dry-run",
			"quorumctl member replace n2 n5 --reason 'n2 is being decommissioned' --wait",
			"quorumctl retire n2 --undo"),
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeReplace,
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Host, req.Successor = args[0], args[1]
			if err := w.check("replace " + req.Host); err != nil {
				return err
			}
			return a.retire(cmd, req, w, c)
		},
	}, printed{name: "retirement", of: control.Retirement{}})
	reasonFlag(cmd, &req.Reason, inHistory)
	w.onlyWait(cmd)
	c.flags(cmd)
	return cmd
}

// completeReplace offers the hosts with a voter as the first argument, and those without one as the second. It omits
// retired hosts.
func (a *app) completeReplace(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	s, err := a.client().Status(cmd.Context())
	if err != nil || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, h := range s.Hosts {
		if (h.Role == policy.RoleVoter) == (len(args) == 0) && h.Retired == "" {
			names = append(names, h.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
