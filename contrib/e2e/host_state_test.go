// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// status queries the agent, and returns false if the agent does not answer.
func (h *host) status() (control.Status, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	s, err := h.Client.Status(ctx)
	return s, err == nil
}

// role returns the host's role, as its agent reports it.
func (h *host) role() policy.Role {
	s, ok := h.status()
	if !ok {
		return policy.RoleUnknown
	}
	return s.Role
}

// waitsFor reports whether this is the first of the agent's reasons.
func (h *host) waitsFor(code policy.ReasonCode) bool {
	s, ok := h.status()
	return ok && len(s.Reasons) > 0 && s.Reasons[0].Code == string(code)
}

// hasReason reports whether the agent has this reason, first or not.
func (h *host) hasReason(code policy.ReasonCode) bool {
	s, ok := h.status()
	for _, r := range s.Reasons {
		if r.Code == string(code) {
			return ok
		}
	}
	return false
}

// stopAt makes the agent stop when it reaches a point, such as "before promote".
func (h *host) stopAt(at string) {
	h.w.t.Helper()
	if err := h.leash.remove(stoppedFile); err != nil {
		h.w.t.Fatal(err)
	}
	if err := h.leash.write(stopFile, at); err != nil {
		h.w.t.Fatal(err)
	}
}

// stopped reports whether the agent has stopped at the point of stopAt.
func (h *host) stopped() bool { return h.leash.read(stoppedFile) != "" }

// waitStopped waits until the agent has stopped at the point of stopAt.
func (h *host) waitStopped() {
	h.w.t.Helper()
	h.w.eventually(h.Options.Name+" has stopped "+h.leash.read(stopFile), h.stopped)
}

// resume lets the agent continue; an agent that is started later does not stop either.
func (h *host) resume() {
	h.w.t.Helper()
	if err := h.leash.remove(stopFile); err != nil {
		h.w.t.Fatal(err)
	}
}

// setClock shifts the agent's wall clock.
func (h *host) setClock(offset time.Duration) {
	h.w.t.Helper()
	if err := h.leash.write(clockFile, offset.String()); err != nil {
		h.w.t.Fatal(err)
	}
}

// kill kills the agent at once.
func (h *host) kill() {
	h.w.t.Helper()
	h.w.killed, h.running = true, false
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := h.KillAgent(ctx); err != nil {
		h.w.t.Fatal(err)
	}
}

// stop ends the agent gracefully.
func (h *host) stop() {
	h.w.t.Helper()
	h.running = false
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := h.StopAgent(ctx); err != nil {
		h.w.t.Fatal(err)
	}
}

// killEtcd kills etcd. It must be running.
func (h *host) killEtcd() {
	h.w.t.Helper()
	h.signalEtcd(syscall.SIGKILL)
}

// signalEtcd sends a signal to the host's etcd, which must be running.
func (h *host) signalEtcd(signal syscall.Signal) {
	h.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	pid, err := h.EtcdPID(ctx)
	if err == nil && pid == 0 {
		err = fmt.Errorf("no etcd runs on %s", h.Options.Name)
	}
	if err == nil {
		err = syscall.Kill(pid, signal)
	}
	if err != nil {
		h.w.t.Fatal(err)
	}
}
