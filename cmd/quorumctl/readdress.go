// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

func (a *app) readdressCommand() *cobra.Command {
	var req control.RolloutRequest
	var w waitFlags
	var c confirmation
	var all bool
	cmd := a.prints(&cobra.Command{
		Use:     "readdress HOST... | --all",
		GroupID: groupOperate,
		Short:   "Apply changed peer and client URLs, one host at a time",
		Long: "Replace the registered URLs of a host's member with etcd.peerURL and etcd.clientURL from the host's\n" +
			"quorumd.yaml. Until then, a changed peer URL is only reported, as HOST_CONFLICT. On one host after\n" +
			"another, quorumd transfers leadership, updates the member list, stops etcd, and starts it with the\n" +
			"new URLs. The next host begins when the hosts of all other members report that their etcd has\n" +
			"connected to the new peer URL. After the member list is updated, the change cannot be aborted; to go\n" +
			"back, set the old URLs, reload quorumd and run quorumctl readdress again.\n\n" +
			"A peer URL can become https only when every member's etcd has a certificate: set etcd.tls on all hosts\n" +
			"and reload quorumd; name all hosts in one readdress; then set the https URLs, reload again, and run\n" +
			"quorumctl readdress --all. Each host then also waits until every other host, using its own\n" +
			"certificate, has received an answer at the new peer URL.\n\n" +
			"A readdress is a rollout: quorumctl rollout status, pause, resume and abort apply to it.\n\n" +
			"With --wait, show the progress until the last host is done. The exit status is 0 if every host is\n" +
			"done, 70 if the rollout stopped or was aborted, and 75 if --wait timed out; the rollout then " +
			"continues.",
		Example: examples("quorumctl readdress n3 --reason 'new subnet' --dry-run",
			"quorumctl readdress n3 --reason 'new subnet' --wait",
			"quorumctl readdress --all --reason 'new subnet'"),
		ValidArgsFunction: a.completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			const what = "start the readdress"
			if all == (len(args) > 0) {
				return usage("quorumctl readdress n3 --reason '<why>'",
					"cannot %s: name hosts or use --all, but not both", what)
			}
			if err := w.check(what); err != nil {
				return err
			}
			req.Work, req.Hosts = policy.WorkReaddress, args
			return a.startRollout(cmd, req, c, w, what)
		},
	}, printed{name: "rollout", of: rollout{}})
	reasonFlag(cmd, &req.Reason, inHistory)
	cmd.Flags().BoolVar(&all, "all", false, "readdress every host whose configured URLs differ from its member's")
	w.onlyWait(cmd)
	c.flags(cmd)
	return cmd
}
