// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// exitConflict is EX_SOFTWARE: the host is not in the state that the caller expects.
const exitConflict = 70

// TestInvalidRequestsAreRefusedWithARemedy sends invalid requests to real agents. The tests of quorumctl and of the
// control socket check each field separately.
func TestInvalidRequestsAreRefusedWithARemedy(t *testing.T) {
	t.Parallel()
	ports := testbed.FreePorts(t, 1)
	w := newWorld(t, worldOptions{hosts: 2, voters: 1, set: quickTimes(), each: func(i int, o *testbed.HostOptions) {
		if i == 1 {
			o.Set["fleetlock.listen"] = fmt.Sprintf("127.0.0.1:%d", ports[0])
		} else {
			o.Set["mode"] = "observe"
		}
	}})
	n1, n2 := w.hosts[0], w.hosts[1]
	w.start()
	w.eventually("the agents answer", func() bool {
		return n1.hasReason(policy.ClusterUnreachable) && n2.hasReason(policy.ClusterUnreachable)
	})
	me().ctl(n1, "rollout", "start", "restart", "--yes", "--reason", "x").check(t, "no quorum", exitUnavailable,
		"cannot start the rollout", "→ try again when the cluster has a quorum")
	me().ctl(n1, "rollout", "abort").check(t, "no quorum", exitUnavailable, "cannot change the rollout",
		"→ try again when the cluster has a quorum")
	w.bootstrap()
	w.eventually("n2 is known", func() bool {
		return w.hasRecord(w.keys().Host("host-n2")) && n1.waitsFor(policy.Idle)
	})

	for what, c := range map[string]struct {
		host   *host
		line   string
		code   int
		output []string
	}{
		"no reason": {
			n1, "maintenance on", exitUsage,
			[]string{"--reason is missing", "→ quorumctl maintenance on --reason TEXT"},
		},
		"a negative time": {
			n1, "maintenance on --reason x --for -4h", exitUsage,
			[]string{"out of range (1m to 168h)", "→ quorumctl maintenance on --reason"},
		},
		"a duration that is too long": {
			n1, "maintenance on --reason x --for 2000000h", exitUsage,
			[]string{"out of range (1m to 168h)", "→ quorumctl maintenance on --reason"},
		},
		"a duration that overflows": {
			n1, "cycle --for 9999999999999h", exitUsage,
			[]string{"9999999999999h", "→ quorumctl cycle --help"},
		},
		"a duration of zero": {
			n1, "cycle --for 0s", exitUsage,
			[]string{"out of range (1m to 168h)", "→ quorumctl cycle --for 1h"},
		},
		"a reboot without a way to reboot": {
			n1, "cycle --reboot --yes --no-wait", exitConflict,
			[]string{"no way to reboot this machine", "→ quorumctl maintenance on --reason"},
		},
		"an unknown host": {
			n1, "rollout start restart --yes --reason x --hosts n1,n9", exitUsage,
			[]string{"no host in the cluster is called n9", "→ quorumctl status lists the hosts"},
		},
		"a host that observes": {
			n1, "rollout start reboot --yes --reason x --hosts n2", exitConflict,
			[]string{"quorumd on n2 only observes", "→ set mode: manage there"},
		},
		"no rollout": {
			n1, "rollout pause", exitConflict,
			[]string{"cannot change the rollout: there is none", "→ quorumctl rollout start"},
		},
		"no operation": {
			n1, "operation release --force --reason x", exitConflict,
			[]string{"cannot release the operation: there is none"},
		},
		"an agent that observes": {
			n2, "maintenance on --reason x", exitConflict,
			[]string{"quorumd only observes", "→ set mode: manage and reload quorumd"},
		},
	} {
		got := me().ctl(c.host, strings.Fields(c.line)...)
		got.check(t, what, c.code, c.output...)
		if n := strings.Count(got.output, "quorumctl: "); n != 1 {
			t.Errorf("%s: %d errors, not one: %s", what, n, got.output)
		}
	}
	n1.sendInvalidRebootRequests(t)
	w.eventually("nothing is requested, and nothing was done", func() bool {
		return n1.waitsFor(policy.Idle) && n1.maintenance() == "" && n2.maintenance() == "" &&
			w.absent(w.keys().Op()) && w.absent(w.keys().Rollout())
	})
}

// sendInvalidRebootRequests sends the requests of a reboot agent that does not follow the protocol.
func (h *host) sendInvalidRebootRequests(t *testing.T) {
	t.Helper()
	const good = `{"client_params":{"id":"n1","group":"default"}}`
	for what, c := range map[string]struct {
		method, header, body string
		status               int
		says                 string
	}{
		"no header": {
			http.MethodPost, "", good, http.StatusBadRequest,
			`"kind":"bad_request","value":"cannot accept the request: send the header \"fleet-lock-protocol: true\"`,
		},
		"a question": {
			http.MethodGet, "true", "", http.StatusMethodNotAllowed,
			`"kind":"method_not_allowed","value":"method not allowed: send a POST`,
		},
		"garbage": {
			http.MethodPost, "true", "\x00\xff{", http.StatusBadRequest,
			`cannot read the request: send {\"client_params\"`,
		},
		"no client": {http.MethodPost, "true", "{}", http.StatusBadRequest, "must be 1 to 128 letters"},
		"a long body": {
			http.MethodPost, "true", good + strings.Repeat(" ", 1<<20), http.StatusRequestEntityTooLarge,
			`"kind":"too_large"`,
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		r, err := http.NewRequestWithContext(ctx, c.method,
			"http://"+h.Options.Set["fleetlock.listen"]+"/v1/pre-reboot", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			r.Header.Set("Fleet-Lock-Protocol", c.header)
		}
		r.Close = true
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // the body has been read
		cancel()
		if err != nil || answer.StatusCode != c.status || !strings.Contains(string(text), c.says) {
			t.Errorf("%s: %d %s %v, want %d %s", what, answer.StatusCode, text, err, c.status, c.says)
		}
	}
}

// breakHook replaces the host's hook with a file that cannot be executed.
func (h *host) breakHook(when string) {
	h.w.t.Helper()
	h.hook(when, "true")
	if err := os.Chmod(filepath.Join(h.Options.Dir, "hooks", when+".d", "10-test"), 0o644); err != nil {
		h.w.t.Fatal(err)
	}
}

func TestAHookThatCannotRunKeepsTheHostUpAndReportsTheFix(t *testing.T) {
	t.Parallel()
	w := withHooks(t)
	n1 := w.hosts[0]
	n1.breakHook("before")
	me().ctl(n1, "cycle", "--reason", "a test").check(t, "a hook that cannot run", exitConflict,
		"HOOK_FAILED", "10-test",
		"chmod +x")
	if !n1.etcdRuns() {
		t.Error("etcd was stopped anyway")
	}
	n1.hook("before", "true")
	if err := os.Chmod(filepath.Join(n1.Options.Dir, "hooks", "before.d", "10-test"), 0o755); err != nil {
		t.Fatal(err)
	}
	n1.breakHook("after")
	n1.requestWork(policy.WorkRestart)
	w.eventually("the operation is kept, its reason reported", func() bool { return n1.waitsFor(policy.HookFailed) })
	me().ctl(n1, "maintenance", "status").check(t, "a hook that cannot run afterwards", 0, "chmod +x")
	me().ctl(n1, "maintenance", "off").check(t, "the operator ends it", 0, "CYCLED")
	w.verify(3, 0)
}
