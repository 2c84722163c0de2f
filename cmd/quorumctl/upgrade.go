// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

func (a *app) upgradeCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:     "upgrade",
		GroupID: groupOperate,
		Short:   "Upgrade etcd to a new version, one host at a time",
		Long: "Upgrade etcd to a new version. Your own program installs it on every host; see quorumctl upgrade\n" +
			"start. An upgrade is a rollout: quorumctl rollout pause applies to it too.",
		Example: examples("quorumctl upgrade plan 3.7.3 --command upgrade-etcd",
			"quorumctl upgrade start 3.7.3 --command upgrade-etcd --reason 'etcd 3.7'",
			"quorumctl upgrade status --watch"),
	}, a.upgradePlanCommand(), a.upgradeStartCommand(), a.rolloutStatusCommand("upgrade"),
		a.rolloutSetCommand("upgrade resume", record.RolloutRunning, "Resume an upgrade that is paused or has stopped",
			"Resume an upgrade that is paused, or that has stopped because a host did not come back healthy with\n"+
				"the new version. If it is paused before the last member, resuming upgrades that member, and then\n"+
				"no member can be rolled back."),
		a.upgradeAbortCommand(), a.downgradeCommand(),
	)
}

// upgradeFlags declares the flags that upgrade plan and upgrade start share.
func upgradeFlags(cmd *cobra.Command, a *app, req *control.RolloutRequest) {
	flags := cmd.Flags()
	flags.StringVar(&req.Command, "command", "", "program of commands.d that installs that version (required)")
	flags.StringSliceVar(&req.Hosts, "hosts", nil, "only these hosts, by name or ID, such as n1,n3 (default all)")
	flags.BoolVar(&req.NoHold, "no-hold", false, "do not pause before the last member with an older etcd")
	flags.BoolVar(&req.WithoutSnapshot, "without-snapshot", false, "do not require a recent snapshot")
	completeWith(cmd, "hosts", a.completeHosts)
}

// upgradeRequest completes the request to bring etcd to a version. example is the hint of its error.
func upgradeRequest(req *control.RolloutRequest, version, example string) error {
	if req.Command == "" {
		return usage(example,
			"cannot bring etcd to %s: --command is missing; it names the program that installs that version", version)
	}
	req.Work, req.Version = policy.WorkCommand, version
	return nil
}

func (a *app) upgradePlanCommand() *cobra.Command {
	var req control.RolloutRequest
	cmd := a.prints(&cobra.Command{
		Use:   "plan VERSION --command NAME",
		Short: "Check an upgrade, and show its steps",
		Long: "Check whether etcd can be upgraded to a version now, and show the steps in order, with the fault\n" +
			"tolerance after each and the point of no return. Nothing is changed.",
		Example: examples("quorumctl upgrade plan 3.7.3 --command upgrade-etcd",
			"quorumctl upgrade plan 3.7.3 --command upgrade-etcd --hosts n1"),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := upgradeRequest(&req, args[0], "quorumctl upgrade plan 3.7.3 --command upgrade-etcd"); err != nil {
				return err
			}
			req.Reason = "plan"
			would, err := a.previewRollout(cmd.Context(), req)
			if err != nil {
				return cannot("plan the upgrade", err)
			}
			return a.emit(would.doc, would.text)
		},
	}, printed{name: "rollout", of: rollout{}})
	upgradeFlags(cmd, a, &req)
	return cmd
}

func (a *app) upgradeStartCommand() *cobra.Command {
	var req control.RolloutRequest
	var w waitFlags
	var c confirmation
	const what = "start the upgrade"
	cmd := a.prints(&cobra.Command{
		Use:   "start VERSION --command NAME --reason TEXT",
		Short: "Start an upgrade of all hosts, the leader last",
		Long: "Upgrade etcd on one host after another, the leader last: etcd is stopped, the program\n" +
			"/etc/quorumd/hooks/commands.d/NAME installs the new version as root, and etcd starts with it. A\n" +
			"host that does not come back healthy with that version stops the upgrade.\n\n" +
			"etcd is upgraded one minor version at a time. An upgrade to the next one starts only if every\n" +
			"member answers, is healthy, and has a version that can be upgraded. It pauses before the last member\n" +
			"with the older version: until then quorumctl upgrade abort --command rolls the upgraded hosts back.\n" +
			"When the last member runs the new version, etcd raises the cluster version, and no member can be\n" +
			"rolled back.\n\n" +
			"With --wait, show the progress until the upgrade is over; it keeps waiting during the pause. The exit\n" +
			"status is 0 if every host is done, 70 if the upgrade has stopped or was aborted, and 75 if --wait\n" +
			"timed out; the upgrade then continues.",
		Example: examples("quorumctl upgrade start 3.7.3 --command upgrade-etcd --reason 'etcd 3.7' --dry-run",
			"quorumctl upgrade start 3.7.3 --command upgrade-etcd --reason 'etcd 3.7'",
			"quorumctl upgrade start 3.6.16 --command upgrade-etcd --reason 'a fix' --hosts n1 --wait"),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(what); err != nil {
				return err
			}
			err := upgradeRequest(&req, args[0],
				"quorumctl upgrade start 3.7.3 --command upgrade-etcd --reason '<why>'")
			if err != nil {
				return err
			}
			return a.startRollout(cmd, req, c, w, what)
		},
	}, printed{name: "rollout", of: rollout{}})
	reasonFlag(cmd, &req.Reason, inHistory)
	upgradeFlags(cmd, a, &req)
	w.onlyWait(cmd)
	c.flags(cmd)
	return cmd
}

func (a *app) upgradeAbortCommand() *cobra.Command {
	req := control.RolloutRequest{Work: policy.WorkCommand, NoHold: true}
	var dry bool
	cmd := a.prints(&cobra.Command{
		Use:   "abort [--command NAME --reason TEXT]",
		Short: "Abort the upgrade; with --command, roll it back",
		Long: "Abort the upgrade or downgrade for good: no further host is taken down. A host that\n" +
			"is already down completes the change. quorumd cancels etcd's downgrade job if quorumd has\n" +
			"enabled it.\n" +
			"Without --command the upgraded hosts keep the new version. After an upgrade, --command then starts\n" +
			"a rollout that brings them back to the version of the oldest member: the program installs that\n" +
			"version while etcd is stopped. This is possible until the last member runs the new version. With\n" +
			"--dry-run, show the steps and change nothing.",
		Example: examples("quorumctl upgrade abort",
			"quorumctl upgrade abort --command reinstall-etcd --reason 'too slow' --dry-run",
			"quorumctl upgrade abort --command reinstall-etcd --reason 'too slow'"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if req.Command != "" && req.Reason == "" {
				return usage("quorumctl upgrade abort --command NAME --reason '<why>'",
					"cannot %s: --command also needs --reason", abortUpgrade)
			}
			return a.abortUpgrade(cmd.Context(), req, dry)
		},
	}, printed{name: "rollout", of: rollout{}})
	flags := cmd.Flags()
	flags.StringVar(&req.Command, "command", "", "program of commands.d that installs the old version")
	flags.StringVar(&req.Reason, "reason", "", "why; shown in the history")
	flags.BoolVar(&req.WithoutSnapshot, "without-snapshot", false, "do not require a recent snapshot")
	flags.BoolVar(&dry, "dry-run", false, "check the request and show what it would do; change nothing")
	return cmd
}

// The actions of upgrade abort, for errors.
const (
	abortUpgrade = "abort the upgrade"
	rollBack     = "roll the upgraded hosts back"
)

// abortUpgrade aborts the upgrade and, if the request names a command, rolls it back. If dry is set, it only shows what
// it would do.
func (a *app) abortUpgrade(ctx context.Context, req control.RolloutRequest, dry bool) error {
	s, err := a.status(ctx, abortUpgrade)
	switch {
	case err != nil:
		return err
	case s.Rollout == nil || s.Rollout.Version == "":
		return &failure{
			code: exitFault, message: "cannot " + abortUpgrade + ": the last rollout, if any, is not an upgrade",
			hint: "quorumctl rollout status",
		}
	case s.Rollout.Downgrade && req.Command != "":
		return &failure{
			code: exitFault, message: "cannot " + rollBack + ": the last rollout is a downgrade",
			hint: "quorumctl upgrade abort; then quorumctl upgrade start VERSION --command NAME --reason '<why>'",
		}
	}
	// Check the rollback first: if it is impossible, the upgrade must not be aborted.
	if req.Command != "" {
		if req.Version, err = rollbackVersion(s); err != nil {
			return err
		}
	}
	if dry {
		return a.previewAbort(ctx, s, req)
	}
	r := *s.Rollout
	if display.Unfinished(r) {
		if r, err = a.client().SetRollout(ctx, record.RolloutAborted); err != nil {
			return cannot(abortUpgrade, err)
		}
	}
	if req.Command == "" {
		return a.emitRollout(ctx, r)
	}
	if r, err = a.client().StartRollout(ctx, req); err != nil {
		return cannot(rollBack, err)
	}
	return a.emitRollout(ctx, r)
}

// previewAbort shows what the abort of the upgrade and the rollback would do.
func (a *app) previewAbort(ctx context.Context, s control.Status, req control.RolloutRequest) error {
	would := preview{doc: rolloutOf(s), text: func(*page) {}}
	if req.Command != "" {
		req.AfterAbort = true
		var err error
		if would, err = a.previewRollout(ctx, req); err != nil {
			return cannot(rollBack, err)
		}
	}
	return a.emit(would.doc, func(p *page) {
		if display.Unfinished(*s.Rollout) {
			p.line("would abort the rollout to %s, which is %s", s.Rollout.Version, s.Rollout.State)
		}
		would.text(p)
		p.line("nothing has changed")
	})
}

// rollbackVersion returns the version to which the upgraded hosts are rolled back, or an error if a member does not
// answer.
func rollbackVersion(s control.Status) (string, error) {
	members := make([]policy.Version, len(s.Cluster.Members))
	for i, m := range s.Cluster.Members {
		members[i] = policy.ParseVersion(m.Version)
	}
	version := policy.RollbackVersion(members)
	if !version.Known() {
		return "", &failure{
			code:    exitFault,
			message: "cannot roll the upgraded hosts back: a member does not answer, so its version is not known",
			hint:    "start its etcd, then try again",
		}
	}
	return version.String(), nil
}
