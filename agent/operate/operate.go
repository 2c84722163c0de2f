// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package operate handles operators' requests over the socket. It lets the policy check a request, records it on this
// host's disk or in etcd, and wakes the loop. It makes no decisions and takes no steps.
//
// It promises:
//   - A request that the policy refuses is not recorded.
//   - If this host's disk does not answer in time, the error states that the request may still be recorded.
//   - A request to change the size, a retirement or a rollout fails if the record has changed since it was read.
//   - Every change that an operator makes to a record in etcd is in the history.
//
// Scheduled jobs use the same code. All functions and methods are safe for concurrent use.
package operate

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// Options are the configuration and dependencies of an Operator.
type Options struct {
	Config config.Config // complete: host.name and host.id are set
	BootID string

	Etcd     cluster.Etcd
	Rounds   *publish.Publisher // source of the loop's observations and decisions
	History  *publish.Journal
	Files    *hoststate.State
	Version  string             // of quorumd
	Data     recovery.Rebuilder // nil if etcd's files are not accessible
	Commands hooks.Programs     // nil if no programs can be run
	// CheckReboot returns why a reboot would be refused now; nil if this machine cannot be rebooted from here.
	CheckReboot func(ctx context.Context) error
	// Snapshots runs the snapshot jobs; nil if no store is configured.
	Snapshots Snapshots
	Checks    []health.Check

	Now    func() time.Duration // since boot, including time suspended
	Wall   func() time.Time
	Wake   func() // starts a round immediately
	Logger *slog.Logger
}

// Operator handles requests. Create it with New.
type Operator struct {
	opt  Options
	keys record.Keys
	due  poll.Poller[struct{}] // starts the scheduled snapshot

	dueRestoreTest poll.Poller[struct{}]
	remember       poll.Poller[struct{}] // copies the manifests' hashes to this host's disk
}

// New returns an Operator. It starts nothing by itself.
func New(opt Options) *Operator {
	return &Operator{opt: opt, keys: record.KeysFor(opt.Config.Cluster.Name)}
}

// Codes of refused requests, in addition to those of package control.
const (
	codeUnreachable = string(policy.ClusterUnreachable)
	codeNotYet      = string(policy.Starting)
	codeObserve     = string(policy.ModeObserve)
	codeUnreadable  = string(policy.RecordUnreadable)
)

func refuse(kind control.Kind, code, message, hint string) error {
	return &control.Error{Kind: kind, Code: code, Message: message, Hint: hint}
}

// refused turns a refusal by the policy into an error for the operator.
func refused(cannot string, r *policy.Refusal) error {
	if r == nil {
		return nil
	}
	kind, code := control.Conflicts, control.CodeConflict
	switch r.Kind { //exhaustive:enforce
	case policy.NotNow:
		kind = control.NotNow
	case policy.Wrong:
		kind = control.Wrong
	case policy.NoSuch:
		kind, code = control.Wrong, control.CodeBadRequest
	case policy.Conflicts:
	}
	return refuse(kind, cmp.Or(string(r.Code), code), cannot+r.Text, r.Hint)
}

// current returns the last round, or an error if there is none yet.
func (o *Operator) current(cannot string) (*round.Round, error) {
	if r := o.opt.Rounds.Current(); r != nil {
		return r, nil
	}
	return nil, refuse(control.NotNow, codeNotYet, cannot+"quorumd has just started", "try again in a few seconds")
}

// onDisk runs note, but not beyond the end of ctx, because the disk may hang. note records a request on this host's
// disk, or refuses it.
func onDisk(ctx context.Context, cannot string, note func() (*policy.Refusal, error)) error {
	var against *policy.Refusal
	err := hoststate.Within(ctx, func() (err error) {
		against, err = note()
		return err
	})
	if err != nil {
		return refuse(control.NotNow, control.CodeNotSaved, cannot+err.Error(),
			"check whether paths.state is writable")
	}
	return refused(cannot, against)
}

// refuseCall turns an error of a call to etcd into an error for the operator. It distinguishes missing permission in
// etcd from a missing quorum.
func (o *Operator) refuseCall(cannot string, err error, hint string) error {
	if cluster.Denied(err) {
		return refuse(control.Forbidden, string(policy.PermissionDenied),
			cannot+cluster.DeniedText(err, o.opt.Etcd.User(), o.keys.Prefix()),
			policy.PermissionDenied.Info().Remedy)
	}
	return refuse(control.NotNow, codeUnreachable, cannot+err.Error(), hint)
}

// refuseRead turns an error of a read from etcd into an error for the operator.
func (o *Operator) refuseRead(cannot string, err error) error {
	if u, is := errors.AsType[*unreadable](err); is {
		return refuse(control.Conflicts, codeUnreadable, cannot+u.Error(), u.Hint())
	}
	return o.refuseCall(cannot, err, "try again when the cluster has a quorum")
}

// History returns the newest lines of the history, oldest first.
func (o *Operator) History(ctx context.Context, limit int) ([]control.HistoryLine, error) {
	lines, err := o.opt.History.Read(ctx, limit)
	if cluster.Denied(err) {
		err = o.refuseCall("cannot read the history: ", err, "")
	}
	return lines, err
}

// note records an operator's action in the history.
func (o *Operator) note(ctx context.Context, code, text string) {
	var revision int64
	if r := o.opt.Rounds.Current(); r != nil {
		revision = r.Revision
	}
	o.opt.Logger.Warn("operator action", "code", code, "text", text)
	o.opt.History.Write(ctx, revision, publish.Entry{Kind: "operator", Code: code, Text: text})
}
