// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package operate does what operators ask for over the socket: it has the policy say whether that may be, notes it on
// this host's disk or in etcd, and wakes the loop. It decides nothing, and takes no step.
//
// It promises that what the policy refuses is not begun, and that where this host's disk did not answer in time it says
// that a request may still be noted; that a record is changed only if it is still the one that was read; and that what
// a person has done to the cluster stands in the history. What is due by a schedule goes the same way. Everything here
// may be called by several at once.
package operate

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// Etcd is what is asked of the cluster.
type Etcd interface {
	Records
	Others
	Leases
}

// Leases keep a record for as long as its writer is there.
type Leases interface {
	KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (ttl int64, err error)
	Revoke(ctx context.Context, id clientv3.LeaseID) error
}

// Records are what lies in etcd.
type Records interface {
	Read(ctx context.Context, spans ...cluster.Span) (cluster.Range, error)
	Txn(ctx context.Context, conditions []clientv3.Cmp, then ...clientv3.Op) (*clientv3.TxnResponse, error)
	Grant(ctx context.Context, ttl int64) (clientv3.LeaseID, int64, error)
}

// Others tell who stands at the other side.
type Others interface {
	cluster.KnownEndpoints
	// Who names as whom etcd sees this host; empty for nobody.
	User() string
}

// Rounds are what the loop has seen and decided.
type Rounds interface {
	// Current gives the last round, or nil.
	Current() *round.Round
	// Reached gives the last one in which the cluster was reachable, or nil.
	Reached() *round.Round
	// Maintenance shows what was asked, by what a round has seen.
	Maintenance(r *round.Round, k *hoststate.Request) control.Maintenance
}

// History is what people read.
type History interface {
	Write(ctx context.Context, revision int64, e publish.Entry)
	Read(ctx context.Context, limit int) ([]control.HistoryLine, error)
}

// Commands are the operator's own programs.
type Commands interface {
	// Find tells why the command of that name could not be run here; nil when it can. It may hang with the disk.
	Find(name string) error
}

// Machine is the host itself.
type Machine interface {
	// CheckReboot returns why a reboot would be refused now.
	CheckReboot(ctx context.Context) error
}

// Options are the parts of an Operator.
type Options struct {
	Config config.Config // complete: host.name and host.id are set
	BootID string

	Etcd     Etcd
	Rounds   Rounds
	History  History
	Files    *hoststate.State
	Version  string   // of quorumd
	Data     Data     // nil when etcd's files cannot be reached
	Commands Commands // nil when there is no way to run one
	Machine  Machine  // nil: this machine cannot be rebooted from here
	// Snapshots are the jobs with them; nil when there is no place for any.
	Snapshots Snapshots
	Checks    []health.Check

	Now    func() time.Duration // since boot, running on while suspended
	Wall   func() time.Time
	Wake   func() // has the loop look at once
	Logger *slog.Logger
}

// Operator does what is asked for. Make it with New.
type Operator struct {
	opt  Options
	keys record.Keys
	due  poll.Look[struct{}] // the snapshot that is due

	dueDrill poll.Look[struct{}]
	remember poll.Look[struct{}] // the manifests of snapshots
}

// New makes one. It does nothing by itself.
func New(opt Options) *Operator {
	return &Operator{opt: opt, keys: record.KeysFor(opt.Config.Cluster.Name)}
}

// Codes of what an operator's request is refused with, beside those of package control.
const (
	codeUnreachable = string(policy.ClusterUnreachable)
	codeNotYet      = string(policy.Starting)
	codeObserve     = string(policy.ModeObserve)
	codeUnreadable  = string(policy.RecordUnreadable)
)

func refuse(kind control.Kind, code, message, hint string) error {
	return &control.Error{Kind: kind, Code: code, Message: message, Hint: hint}
}

// refused makes of a refusal of the policy what a person is told.
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

// current gives the last round; before there is one, nothing is known.
func (o *Operator) current(cannot string) (*round.Round, error) {
	if r := o.opt.Rounds.Current(); r != nil {
		return r, nil
	}
	return nil, refuse(control.NotNow, codeNotYet, cannot+"quorumd has just started", "try again in a few seconds")
}

// onDisk notes something on this host's disk, which may hang, unless it is refused there.
func onDisk(ctx context.Context, cannot string, note func() (*policy.Refusal, error)) error {
	var against *policy.Refusal
	err := hoststate.Within(ctx, func() (err error) {
		against, err = note()
		return err
	})
	if err != nil {
		return refuse(control.NotNow, control.CodeNotNoted, cannot+err.Error(),
			"see whether paths.state can be written")
	}
	return refused(cannot, against)
}

// refuseCall makes of an error of a call to etcd what a person is told: that etcd's users and roles forbid it is no
// lack of a quorum.
func (o *Operator) refuseCall(cannot string, err error, hint string) error {
	if cluster.Denied(err) {
		return refuse(control.Forbidden, string(policy.PermissionDenied),
			cannot+cluster.DeniedText(err, o.opt.Etcd.User(), o.keys.Prefix()),
			policy.PermissionDenied.Info().Remedy)
	}
	return refuse(control.NotNow, codeUnreachable, cannot+err.Error(), hint)
}

// refuseRead makes of an error of a read what a person is told.
func (o *Operator) refuseRead(cannot string, err error) error {
	if u, is := errors.AsType[*unreadable](err); is {
		return refuse(control.Conflicts, codeUnreadable, cannot+u.Error(), u.Hint())
	}
	return o.refuseCall(cannot, err, "try again when the cluster has a quorum")
}

// History gives the newest lines, oldest first.
func (o *Operator) History(ctx context.Context, limit int) ([]control.HistoryLine, error) {
	lines, err := o.opt.History.Read(ctx, limit)
	if cluster.Denied(err) {
		err = o.refuseCall("cannot read the history: ", err, "")
	}
	return lines, err
}

// note writes what a person has done into the history.
func (o *Operator) note(ctx context.Context, code, text string) {
	var revision int64
	if r := o.opt.Rounds.Current(); r != nil {
		revision = r.Revision
	}
	o.opt.Logger.Warn("operator action", "code", code, "text", text)
	o.opt.History.Write(ctx, revision, publish.Entry{Kind: "operator", Code: code, Text: text})
}
