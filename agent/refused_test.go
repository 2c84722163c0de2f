// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
)

func TestResumeWithoutAPauseIsRefused(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		a := f.hosts["v1"].agent
		before := stored(t, f.etcd)
		err := a.Resume(t.Context(), "root")
		if e, is := errors.AsType[*control.Error](err); !is || e.Code != control.CodeNotPaused {
			t.Errorf("got %v", err)
		}
		if after := stored(t, f.etcd); len(after) != len(before) {
			t.Errorf("the history has a line about it: %q", after[len(before):])
		}
		req := control.PauseRequest{Reason: "a test", For: control.Duration(time.Hour)}
		if _, err := a.Pause(t.Context(), req, "root"); err != nil {
			t.Fatal(err)
		}
		if err := a.Resume(t.Context(), "root"); err != nil {
			t.Error(err)
		}
	})
}

// writeOnly is an etcd that answers no reads.
type writeOnly struct{ *fleetClient }

func (writeOnly) Read(context.Context, ...cluster.Span) (cluster.Range, error) {
	return cluster.Range{}, errors.New("no answer")
}

func TestResumeIsRefusedIfThePauseCannotBeRead(t *testing.T) {
	t.Parallel()
	err := operatorOf(writeOnly{newFleetEtcd().of("v1")}).Resume(t.Context(), "root")
	if e, is := errors.AsType[*control.Error](err); !is || e.Kind != control.NotNow ||
		e.Message != "cannot resume: no answer" {
		t.Errorf("got %v", err)
	}
}

func TestTheHistoryReportsWhetherItIsTheNewest(t *testing.T) {
	t.Parallel()
	j, etcd := newTestJournal(t)
	j.Write(t.Context(), 10, publish.Entry{Kind: "step", Code: "begin", Text: "begin"})
	if _, err := j.Read(t.Context(), 10); err != nil {
		t.Errorf("a voter answers: %v", err)
	}
	etcd.cutOff(true)
	if lines, err := j.Read(t.Context(), 10); !errors.Is(err, control.ErrNotNewest) || len(lines) != 1 {
		t.Errorf("%d lines, %v", len(lines), err)
	}
}

func TestBootstrapRightAfterTheStartWaitsForTheDataDirectory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newPreparedFleet(&fleet{
			t: t, pace: usualPace(), prepare: func(h *fleetHost) { h.f.etcd.cutOff(true) },
		}, 1)
		defer f.close()
		a := f.hosts["s0000"].agent
		unread := func() bool {
			e, is := errors.AsType[*control.Error](a.MayBootstrap(t.Context()))
			return is && e.Code == string(policy.Starting)
		}
		if !unread() {
			t.Error("a host that has just started does not refuse")
		}
		began := time.Now()
		a.AwaitData(t.Context())
		if took := time.Since(began); unread() || took > 5*time.Second {
			t.Errorf("after %s the error is %v", took, a.MayBootstrap(t.Context()))
		}
	})
}

func TestMayBootstrapReturnsTheErrorOfBootstrap(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		a := f.hosts["v1"].agent
		asked, done := a.MayBootstrap(t.Context()), a.Bootstrap(t.Context(), "root")
		if asked == nil || done == nil || asked.Error() != done.Error() {
			t.Errorf("MayBootstrap returns %v, Bootstrap %v", asked, done)
		}
		if a.files.Bootstrap() != nil {
			t.Error("the request was recorded all the same")
		}
	})
}
