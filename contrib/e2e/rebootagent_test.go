// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// rebootAgent sends a reboot agent's request to the host's quorumd, and returns the status and body of the response.
func (h *host) rebootAgent(path string) (int, string) {
	h.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*bound)
	defer cancel()
	body := strings.NewReader(`{"client_params":{"id":"` + h.Options.Name + `","group":"default"}}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+h.Options.Set["fleetlock.listen"]+path, body)
	if err != nil {
		h.w.t.Fatal(err)
	}
	r.Header.Set("fleet-lock-protocol", "true")
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		h.w.t.Fatalf("%s does not answer a reboot agent: %v", h.Options.Name, err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

func TestRebootAgentsAreServedOneAtATimeAndHooksRun(t *testing.T) {
	t.Parallel()
	w := withHooks(t)
	load := w.load()
	turns := make(chan *host, 3)
	for _, h := range w.hosts { // all at the same moment
		go func() {
			if status, text := h.rebootAgent("/v1/pre-reboot"); status != http.StatusOK {
				t.Errorf("%s may not reboot: %d %s", h.Options.Name, status, text)
			}
			turns <- h
		}()
	}
	for n := range 3 {
		h := <-turns
		if h.etcdRuns() || h.maintenance() != policy.RequestSafe {
			t.Errorf("%s may reboot, and its etcd runs", h.Options.Name)
		}
		if len(turns) > 0 {
			t.Error("two hosts may reboot at once")
		}
		if want := fmt.Sprintf("before reboot of %s by fleetlock: %s\n", h.Options.Name,
			h.Options.Name); h.hookOutput() != want {
			t.Errorf("reboot %d: the hooks wrote %q", n, h.hookOutput())
		}
		// A real machine would reboot here. This one does not, so quorumd observes a cancelled reboot.
		if status, text := h.rebootAgent("/v1/steady-state"); status != http.StatusOK || !h.etcdRuns() {
			t.Errorf("%s is not back: %d %s", h.Options.Name, status, text)
		}
		if want := fmt.Sprintf("before reboot of %[1]s by fleetlock: %[1]s\nafter reboot of %[1]s by fleetlock: "+
			"%[1]s\n", h.Options.Name); h.hookOutput() != want {
			t.Errorf("reboot %d: after it the hooks have written %q", n, h.hookOutput())
		}
	}
	report := load.Stop()
	t.Logf("%d writes, %d failed, longest gap %d ms", report.Acked, report.Failed, report.LongestGap.Milliseconds())
	w.verify(3, 0)
}

func TestAHookThatFailsKeepsTheHostUp(t *testing.T) {
	t.Parallel()
	w := withHooks(t)
	n1, n2 := w.hosts[0], w.hosts[1]
	n1.hook("before", "echo 'cannot drain' >&2; exit 1")
	n1.requestWork(policy.WorkRestart)
	w.eventually("the failure ends the operation", func() bool { return n1.endedWith(policy.HookFailed) })
	if !n1.etcdRuns() {
		t.Error("etcd was stopped anyway")
	}
	n1.hook("before", "exec sleep 600")
	n1.set("maintenance.hookTimeout", "1s")
	n1.stop()
	w.start(n1)
	w.eventually("n1 has tried again", func() bool { s, ok := n1.status(); return ok && s.Loop.Rounds > 0 })
	n1.requestWork(policy.WorkRestart)
	w.eventually("the timeout ends the operation", func() bool {
		s, ok := n1.status()
		return ok && s.Maintenance == nil && s.LastMaintenance != nil &&
			strings.Contains(s.LastMaintenance.Text, "took longer than 1s")
	})
	n2.requestWork(policy.WorkRestart)
	w.eventually("n2's operation is in flight", func() bool { return n2.endedWith(policy.Cycled) })
	by := myName(t)
	if got := n2.hookOutput(); got != "before restart of n2 by "+by+"\nafter restart of n2 by "+by+"\n" {
		t.Errorf("the hooks of n2 wrote %q", got)
	}
	w.never(time.Second, "the hooks of n2 run once more", func() bool {
		return strings.Count(n2.hookOutput(), "\n") != 2
	})
	w.verify(3, 0)
}
