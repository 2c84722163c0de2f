// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package shutdown

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// host simulates the agent.
type host struct {
	safeAfter time.Duration // time from the request until the machine is safe; 0: never
	stopping  bool          // the operation has begun, and etcd stops slowly
	role      policy.Role
	refuse    error

	mu        sync.Mutex
	status    control.Status
	asked     []control.MaintenanceRequest
	ended     int
	unhurried int
}

func (h *host) RequestMaintenance(_ context.Context, req control.MaintenanceRequest,
	by string,
) (control.Maintenance, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, req)
	if h.refuse != nil {
		return control.Maintenance{}, h.refuse
	}
	h.status.Maintenance = &control.Maintenance{Work: req.Work, By: by, State: policy.RequestWaiting}
	h.becomeSafe()
	return *h.status.Maintenance, nil
}

func (h *host) becomeSafe() {
	if h.safeAfter > 0 {
		time.AfterFunc(h.safeAfter, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.status.Maintenance = &control.Maintenance{State: policy.RequestSafe, By: h.status.Maintenance.By}
		})
	}
}

func (h *host) Unhurry(context.Context) error { h.unhurried++; return nil }

func (h *host) EndMaintenance(context.Context, string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Maintenance, h.ended = nil, h.ended+1
	return nil
}

func (h *host) Status() control.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.status
	s.Role = h.role
	s.Reasons = []control.Reason{{Code: "QUORUM_AT_RISK", Text: "two voters: n2 is down"}}
	if h.stopping {
		s.Maintenance, s.Reasons = &control.Maintenance{State: policy.RequestStopping, By: by},
			[]control.Reason{{Code: "STOPPING"}}
	}
	return s
}

const loud = slog.LevelError + 8

func handler(h *host) (Handler, *bytes.Buffer) {
	var log bytes.Buffer
	return Handler{Host: h, Logger: slog.New(slog.NewTextHandler(&log, nil)), Loud: loud}, &log
}

// prepare runs Prepare with a time limit just below logind's default, and returns how long it took.
func prepare(t *testing.T, r Handler) time.Duration {
	ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
	defer cancel()
	began := time.Now()
	r.Prepare(ctx)
	return time.Since(began)
}

func TestMachineGoesDownAsSoonAsItIsSafe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{safeAfter: time.Second, role: policy.RoleVoter}
		r, log := handler(h)
		if took := prepare(t, r); took < time.Second || took > time.Second+2*pollInterval {
			t.Errorf("it took %s", took)
		}
		want := control.MaintenanceRequest{
			Work: policy.WorkReboot, Reason: reason, For: control.Duration(control.DefaultMaintenance),
			External: true, Hurried: true,
		}
		if len(h.asked) != 1 || h.asked[0] != want {
			t.Errorf("requested %+v", h.asked)
		}
		if !strings.Contains(log.String(), "shutdown allowed") || strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("the log says:\n%s", log)
		}
	})
}

func TestEtcdThatKeepsRunningIsNotReportedAsStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{role: policy.RoleVoter, refuse: &control.Error{Code: control.CodeConflict, Message: "cannot"}}
		h.status.Maintenance = &control.Maintenance{State: policy.RequestSafe, KeepRunning: true, By: "alice"}
		r, log := handler(h)
		if took := prepare(t, r); took > pollInterval {
			t.Errorf("it took %s", took)
		}
		if !strings.Contains(log.String(), "systemd stops etcd") ||
			strings.Contains(log.String(), "etcd stopped cleanly") {
			t.Errorf("the log says:\n%s", log)
		}
	})
}

func TestShutdownDuringACommandWarnsTheUser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{role: policy.RoleVoter, refuse: &control.Error{Code: control.CodeConflict, Message: "cannot"}}
		h.status.Maintenance = &control.Maintenance{
			Work: policy.WorkCommand, Command: "firmware",
			State: policy.RequestWorking, By: "alice",
		}
		r, log := handler(h)
		if took := prepare(t, r); took != 4500*time.Millisecond+displayTime {
			t.Errorf("it took %s, want all the time that logind allows", took)
		}
		if !strings.Contains(log.String(), "level=ERROR+8") ||
			!strings.Contains(log.String(), "KILLS THE RUNNING COMMAND") {
			t.Errorf("the log says:\n%s", log)
		}
	})
}

func TestShutdownWaitsForTheEndOfACommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{role: policy.RoleVoter, refuse: &control.Error{Code: control.CodeConflict, Message: "cannot"}}
		h.status.Maintenance = &control.Maintenance{
			Work: policy.WorkCommand, Command: "firmware",
			State: policy.RequestWorking,
		}
		time.AfterFunc(time.Second, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.status.Maintenance = &control.Maintenance{
				Work: policy.WorkCommand, Command: "firmware",
				State: policy.RequestReturning,
			}
		})
		r, log := handler(h)
		if took := prepare(t, r); took < time.Second || took > time.Second+2*pollInterval {
			t.Errorf("it took %s", took)
		}
		if !strings.Contains(log.String(), "the command has ended") || strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("the log says:\n%s", log)
		}
	})
}

func TestWallMessageOfAShutdownReportsTheQuorum(t *testing.T) {
	t.Parallel()
	// The cluster has three live voters, and the first is this host's.
	cluster := func(tolerance int) control.Cluster {
		c := control.Cluster{Reachable: true, FaultTolerance: tolerance}
		for _, id := range []string{"a1", "a2", "a3"} {
			c.Members = append(c.Members, control.Member{ID: id, Role: policy.RoleVoter, Live: true})
		}
		return c
	}
	for name, c := range map[string]struct {
		cluster control.Cluster
		op      *control.Op
		want    string
	}{
		"fault tolerance 1": {cluster(1), nil, "ETCD KEEPS ITS QUORUM IF NO OTHER VOTER GOES DOWN"},
		"fault tolerance 2": {cluster(2), nil, "fault_tolerance=1"},
		"fault tolerance 0": {cluster(0), nil, "ETCD LOSES ITS QUORUM"},
		"another voter is being taken down": {
			cluster(1), &control.Op{Kind: "cycle", MemberID: "a2"}, "ETCD LOSES ITS QUORUM",
		},
		"cluster unreachable": {control.Cluster{}, nil, "AND QUORUMD CANNOT REACH THE ETCD CLUSTER"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := &host{role: policy.RoleVoter}
				h.status.Host.ID, h.status.Cluster, h.status.Op = "id-1", c.cluster, c.op
				h.status.Hosts = []control.HostRecord{{ID: "id-1", MemberID: "a1"}, {ID: "id-2", MemberID: "a2"}}
				r, log := handler(h)
				took := prepare(t, r)
				for _, want := range []string{c.want, "QUORUM_AT_RISK", "n2 is down", "quorumctl maintenance on"} {
					if !strings.Contains(log.String(), want) {
						t.Errorf("no %q in:\n%s", want, log)
					}
				}
				if !strings.Contains(log.String(), "level=ERROR+8") || took != 4500*time.Millisecond+displayTime {
					t.Errorf("after %s, not shown on all terminals for %s:\n%s", took, displayTime, log)
				}
			})
		})
	}
}

func TestSlowStopInAnOperationShowsNoWallMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, log := handler(&host{role: policy.RoleVoter, stopping: true})
		if took := prepare(t, r); took != 4500*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		if !strings.Contains(log.String(), "level=WARN") || strings.Contains(log.String(), "ERROR") {
			t.Errorf("the log says:\n%s", log)
		}
	})
}

func TestHostWithoutAVoteGoesDownWithoutWallMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, log := handler(&host{role: policy.RoleSpare})
		prepare(t, r)
		if !strings.Contains(log.String(), "level=WARN") || strings.Contains(log.String(), "ERROR") {
			t.Errorf("the log says:\n%s", log)
		}
	})
}

func TestShutdownDuringAnotherMaintenanceWaitsForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{
			safeAfter: 2 * time.Second, role: policy.RoleVoter,
			refuse: &control.Error{Code: control.CodeConflict, Message: "cannot"},
		}
		h.status.Maintenance = &control.Maintenance{
			Work: policy.WorkMaintenance, By: "root",
			State: policy.RequestStopping,
		}
		h.becomeSafe()
		r, log := handler(h)
		if took := prepare(t, r); took < 2*time.Second || took > 2*time.Second+2*pollInterval {
			t.Errorf("it took %s:\n%s", took, log)
		}
		r.Cancelled(t.Context())
		if h.ended != 0 {
			t.Error("another operator's maintenance was ended")
		}
	})
}

func TestUnreachableAgentDoesNotDelayTheShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, log := handler(&host{
			role:   policy.RoleVoter,
			refuse: &control.Error{Code: control.CodeInternal, Message: "cannot write: disk full"},
		})
		if took := prepare(t, r); took != displayTime || !strings.Contains(log.String(), "disk full") {
			t.Errorf("it took %s:\n%s", took, log)
		}
	})
}

func TestCancelledShutdownBringsTheHostBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{safeAfter: time.Second, role: policy.RoleVoter}
		r, log := handler(h)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		r.Prepare(ctx)
		r.Cancelled(t.Context())
		if h.ended != 1 || strings.Contains(log.String(), "GOING DOWN") {
			t.Errorf("ended %d times; the log says:\n%s", h.ended, log)
		}
	})
}

func TestOperatorsRequestWaitsForOtherHostsAgainAfterACancelledShutdown(t *testing.T) {
	t.Parallel()
	h := &host{}
	h.status.Maintenance = &control.Maintenance{By: "alice"}
	r, _ := handler(h)
	r.Cancelled(t.Context())
	if h.unhurried != 1 || h.ended != 0 {
		t.Errorf("%d calls of Unhurry, %d of EndMaintenance", h.unhurried, h.ended)
	}
}
