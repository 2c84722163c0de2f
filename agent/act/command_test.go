// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/systemd"
)

func TestCommandIsNotStartedIfItsOutcomeCannotBeRead(t *testing.T) {
	t.Parallel()
	opt, k := commandOptions(t, hoststate.HostFiles{}, outcome{err: errors.New("denied")})
	err := New(opt).runCommand(t.Context(), &task{on: &round.Round{Request: k}})
	if err == nil || err.Error() != "denied" {
		t.Errorf("it was started: %v", err)
	}
	if now, _ := opt.Files.Asked(); now.Ran != "" {
		t.Errorf("it is recorded as %s", now.Ran)
	}
}

func TestCommandMakesEtcdsVersionUnknownEvenIfOnlyRecorded(t *testing.T) {
	t.Parallel()
	opt, k := commandOptions(t, hoststate.HostFiles{}, outcome{result: hooks.Result{State: hooks.None}})
	forgotten := 0
	opt.ForgetBinary = func() { forgotten++ }
	if err := New(opt).runCommand(t.Context(), &task{on: &round.Round{Request: k}}); err == nil {
		t.Error("the command was started without the lock")
	}
	if now, _ := opt.Files.Asked(); now.Ran != policy.HooksRunning || forgotten != 1 {
		t.Errorf("it is recorded as %q, and the version was forgotten %d times", now.Ran, forgotten)
	}
}

func TestFullDiskDoesNotKeepEtcdDownAfterACommand(t *testing.T) {
	t.Parallel()
	disk := &fullDisk{}
	opt, k := commandOptions(t, disk, outcome{})
	unit := &startedUnit{}
	opt.Unit, disk.full = unit, true
	r := decided(policy.StepStartUnit, k)
	r.View.Asked = &policy.Asked{
		Request: policy.Request{Work: policy.WorkCommand}, Command: policy.Hooks{State: policy.HooksDone},
	}
	New(opt).Act(t.Context(), r)
	if unit.starts != 1 {
		t.Errorf("etcd was started %d times", unit.starts)
	}
}

func TestDidReportsTheLastStartedProgram(t *testing.T) {
	t.Parallel()
	opt, k := commandOptions(t, hoststate.HostFiles{}, outcome{})
	for kind, want := range map[policy.StepKind]hooks.Run{
		policy.StepRunCommand: k.CommandRun(), policy.StepRunHooks: k.HookRun(hooks.Before),
	} {
		a := New(opt)
		r := decided(kind, k)
		a.finished(&task{step: r.Decision.Step, on: r}, errors.New("no"))
		if got := a.Did().Launched; got.Is {
			t.Errorf("%s has failed, and %+v was started", kind, got)
		}
		a.finished(&task{step: r.Decision.Step, on: r}, nil)
		if got := a.Did().Launched; got.Of != want.ID || got.Age(testNow) != 0 {
			t.Errorf("%s: started was %+v, want %s", kind, got, want.ID)
		}
	}
}

// commandOptions returns the options of an actor whose host has a request to run a command.
func commandOptions(t *testing.T, disk hoststate.Files, programs hooks.Programs) (Options, *hoststate.Request) {
	t.Helper()
	opt := options(t, disk)
	opt.Hooks = programs
	k := &hoststate.Request{
		Request: policy.Request{Work: policy.WorkCommand, Program: "upgrade"}, Since: time.Unix(1, 0),
	}
	ask(t, opt, k)
	return opt, k
}

// fullDisk accepts no file while it is full.
type fullDisk struct {
	hoststate.HostFiles
	full bool
}

func (d *fullDisk) Write(path string, data []byte, sync bool) error {
	if d.full {
		return errors.New("no space left on device")
	}
	return d.HostFiles.Write(path, data, sync)
}

// startedUnit counts its starts.
type startedUnit struct {
	systemd.Unit
	starts int
	err    error // SetEnvironment returns this error
}

func (u *startedUnit) Start(context.Context) error { u.starts++; return nil }

func (u *startedUnit) SetEnvironment(context.Context, map[string]string) error { return u.err }
