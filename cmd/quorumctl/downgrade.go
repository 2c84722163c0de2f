// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
)

func (a *app) downgradeCommand() *cobra.Command {
	req := control.RolloutRequest{Downgrade: true}
	var w waitFlags
	var c confirmation
	const what = "start the downgrade"
	cmd := a.prints(&cobra.Command{
		Use:   "downgrade VERSION --command NAME --reason TEXT",
		Short: "Downgrade all hosts by one minor version, the leader last",
		Long: "Bring etcd back to the preceding minor version after an upgrade has ended. quorumd enables etcd's\n" +
			"downgrade job, and waits until every member has lowered the storage version of its database. Then\n" +
			"etcd is stopped on one host after another, the leader last, and the program\n" +
			"/etc/quorumd/hooks/commands.d/NAME installs the older version as root.\n\n" +
			"The downgrade starts only if every member answers and is healthy, and every quorumd is in mode\n" +
			"manage. Until every member runs the older version, even while the downgrade is paused, no host can\n" +
			"join the cluster. quorumctl upgrade status shows the progress. quorumctl upgrade abort stops the\n" +
			"downgrade and cancels etcd's job; hosts that were already downgraded keep the older version.\n\n" +
			"With --wait, show the progress until the downgrade is over. The exit status is 0 if every host is\n" +
			"done, 70 if it has stopped or was aborted, and 75 if --wait timed out; the downgrade then continues.",
		Example: examples("quorumctl upgrade downgrade 3.6.16 --command reinstall-etcd --reason 'too slow' --dry-run",
			"quorumctl upgrade downgrade 3.6.16 --command reinstall-etcd --reason 'too slow' --wait"),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(what); err != nil {
				return err
			}
			err := upgradeRequest(&req, args[0],
				"quorumctl upgrade downgrade 3.6.16 --command reinstall-etcd --reason '<why>'")
			if err != nil {
				return err
			}
			return a.startRollout(cmd, req, c, w, what)
		},
	}, printed{name: "rollout", of: rollout{}})
	reasonFlag(cmd, &req.Reason, inHistory)
	flags := cmd.Flags()
	flags.StringVar(&req.Command, "command", "", "program of commands.d that installs that version (required)")
	flags.BoolVar(&req.WithoutSnapshot, "without-snapshot", false, "do not require a recent snapshot")
	w.onlyWait(cmd)
	c.flags(cmd)
	return cmd
}
