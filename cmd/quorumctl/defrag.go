// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

func (a *app) defragCommand() *cobra.Command {
	var req control.RolloutRequest
	var w waitFlags
	var c confirmation
	var all bool
	cmd := a.prints(&cobra.Command{
		Use:     "defrag [HOST... | --all]",
		GroupID: groupOperate,
		Short:   "Defragment etcd's database file, one host at a time",
		Long: "Return the free space in the database file of a host's member to the file system. Without HOST or\n" +
			"--all, this host's file is defragmented. etcdctl defrag blocks every request to the member until it\n" +
			"has ended; quorumd defragments while etcd is stopped. Hosts are defragmented one at a time, the\n" +
			"leader last: quorumd transfers leadership, stops etcd, copies its database, without the free space,\n" +
			"to a new file in the same directory, replaces the old file if the contents are equal, and starts\n" +
			"etcd. The next host begins when the member is healthy. If the copy fails, for example on a full disk,\n" +
			"etcd starts with its old database.\n\n" +
			"A defragmentation is worth the restart if at least 200 MiB and 40 % of the file are free, or 32 MiB if\n" +
			"the file is at 80 % of its quota. Otherwise --all skips the host, and a named host is refused without\n" +
			"--force.\n\n" +
			"A defragmentation is a rollout: quorumctl rollout status, pause, resume and abort apply to it.\n\n" +
			"With --wait, show the progress until the last host is done. The exit status is 0 if every host is\n" +
			"done, 70 if the rollout stopped or was aborted, and 75 if --wait timed out; the rollout then\n" +
			"continues.",
		Example: examples("quorumctl defrag --all --reason 'after a large compaction' --dry-run",
			"quorumctl defrag --all --reason 'after a large compaction' --wait",
			"quorumctl defrag n3 --reason 'near its quota' --force"),
		ValidArgsFunction: a.completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			const what = "start the defragmentation"
			if all && len(args) > 0 {
				return usage("quorumctl defrag n3 --reason '<why>'",
					"cannot %s: name hosts or use --all, but not both", what)
			}
			if err := w.check(what); err != nil {
				return err
			}
			if !all && len(args) == 0 {
				s, err := a.status(cmd.Context(), what)
				if err != nil {
					return err
				}
				args = []string{s.Host.ID}
			}
			req.Work, req.Hosts = policy.WorkDefrag, args
			return a.startRollout(cmd, req, c, w, what)
		},
	}, printed{name: "rollout", of: rollout{}})
	reasonFlag(cmd, &req.Reason, inHistory)
	cmd.Flags().BoolVar(&all, "all", false, "defragment every host whose database has enough free space")
	cmd.Flags().BoolVar(&req.Force, "force", false, "also defragment hosts whose database has little free space")
	w.onlyWait(cmd)
	c.flags(cmd)
	return cmd
}

// writeDatabases shows the database of each host in a defrag rollout, and whether it would be compacted.
func writeDatabases(p *page, hosts []control.RolloutHost) {
	for _, h := range hosts {
		if d := h.Database; d != nil {
			quota := "unknown"
			if d.Quota > 0 {
				quota = policy.MiB(d.Quota)
			}
			p.line("    %-8s %s, %s in use, quota %s; %s", h.Name, policy.MiB(d.Size), policy.MiB(d.InUse), quota,
				h.Text)
		}
	}
}
