// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const testNow = time.Hour // since boot

// options returns the options of an actor on a host with the given disk. The actor cannot reach etcd, so it holds no
// lock.
func options(t *testing.T, disk hoststate.Files) Options {
	t.Helper()
	dir := t.TempDir()
	files, err := hoststate.Open(disk, dir+"/state", dir+"/run", nil)
	must(t, err)
	opt := Options{
		BootID: "boot-1", Files: files, Logger: slog.New(slog.DiscardHandler), Wall: time.Now,
		Now:        func() time.Duration { return testNow },
		ForgetData: func() {}, ForgetBinary: func() {},
	}
	opt.Config.Host.ID, opt.Config.Cluster.Name = "2", "test"
	opt.Config.Timing.CallTimeout = time.Minute
	return opt
}

// ask records the request k on the disk.
func ask(t *testing.T, opt Options, k *hoststate.Request) {
	t.Helper()
	must(t, opt.Files.TakeTurn(k))
}

// decided returns a round that has decided on a step.
func decided(kind policy.StepKind, k *hoststate.Request) *round.Round {
	r := &round.Round{At: testNow, Request: k}
	r.Decision.Step.Kind = kind
	r.Op = &record.Op{Kind: policy.KindCycle, Host: "2", Phase: string(policy.PhaseBegun)}
	return r
}

// outcome replaces the helper that runs the programs. It returns the same result and error for every program.
type outcome struct {
	hooks.Programs

	result hooks.Result
	err    error
}

func (t outcome) Start(context.Context, hooks.Run) error { return t.err }

func (t outcome) State(context.Context, hooks.Run) (hooks.Result, error) { return t.result, t.err }
