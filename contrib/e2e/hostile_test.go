// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// hostile returns values that an attacker with write access below quorumd's prefix could leave there.
func hostile() map[string]string {
	return map[string]string{
		"a zone of +24:00": `{"version":1,"kind":"cycle","host":"x","state":"running","reason":"","by":"","started":"2026-03-01T12:00:00+24:00",` +
			`"since":"2026-03-01T12:00:00+24:00","until":"2026-03-01T12:00:00+24:00"}`,
		"a field that grows when it is escaped": `{"version":1,"reason":"` + strings.Repeat("<", 60<<10) + `"}`,
		"1.4 MB":                                strings.Repeat("x", 1_400_000),
		"deep JSON": `{"version":1,"x":` +
			strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`,
		"NULs":             strings.Repeat("\x00", 100),
		"a future version": `{"version":7,"kind":"cycle"}`,
		"wrong types":      `{"version":1,"reason":{},"kind":[],"hosts":7,"started":true,"id":0,"since":3}`,
	}
}

func (h *host) erase(key string) {
	h.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if _, err := h.etcd.Delete(ctx, key); err != nil {
		h.w.t.Fatal(err)
	}
}

// namesKey reports whether a host reports an unreadable record whose key contains the given text.
func (h *host) namesKey(key string) bool {
	s, ok := h.status()
	for _, reason := range s.Reasons {
		if ok && reason.Code == string(policy.RecordUnreadable) && strings.Contains(reason.Text, key) {
			return true
		}
	}
	return false
}

// checkCommands checks that status, health, explain and history work on every host, and that none reports an
// unreachable cluster.
func (w *world) checkCommands(what string) {
	w.t.Helper()
	for _, h := range w.hosts {
		for command, format := range map[string]string{
			"status": "table", "health": "json", "explain": "table",
			"history": "json",
		} {
			got := me().ctl(h, command, "--output", format)
			if got.code > 2 || got.output == "" || strings.Contains(got.output, "no voter answers") ||
				strings.Contains(got.output, "cannot encode") {
				w.t.Errorf("%s: %s as %s on %s ends with %d: %.300s", what, command, format, h.Options.Name, got.code,
					got.output)
			}
		}
		if s, ok := h.status(); !ok || !s.Cluster.Reachable {
			w.t.Errorf("%s: %s reports that the cluster is not reachable: %s", what, h.Options.Name, s.Cluster.Error)
		}
	}
}

// residentMiB returns the peak resident memory of a host's agent in MiB.
func (h *host) residentMiB() (mib int) {
	h.w.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.AgentPID()))
	if err != nil {
		h.w.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "VmHWM:") {
			_, _ = fmt.Sscanf(line, "VmHWM: %d", &mib)
		}
	}
	return mib >> 10
}

func TestHostileRecordsAreReportedOnEveryHostAndDoNoHarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 3, set: quickTimes()})
	w.start(w.hosts...)
	w.bootstrap()
	w.eventually("there are three voters", func() bool { return w.has(3, 0) })
	w.eventually("no operation is in flight", func() bool { return w.absent(w.keys().Op()) })
	var untouched []func(string)
	for _, h := range w.hosts {
		untouched = append(untouched, h.expectSameProcess())
	}
	n1 := w.hosts[0]
	keys := []string{w.keys().Op(), w.keys().Pause(), w.keys().Rollout(), w.keys().Host("unknown")}
	values := hostile()
	for i, what := range slices.Sorted(maps.Keys(values)) {
		key := keys[i%len(keys)] // every key is read the same way
		n1.write(key, values[what])
		for _, h := range w.hosts {
			w.eventually(h.Options.Name+" names "+key+": "+what, func() bool { return h.namesKey(key) })
		}
		w.checkCommands(what)
		n1.erase(key)
	}
	for i := range 40 {
		n1.write(w.keys().Host(fmt.Sprintf("fat-%03d", i)), strings.Repeat("x", 1_400_000))
		n1.write(w.keys().HistoryLine(int64(i), "fat", i), strings.Repeat("x", 1_400_000))
	}
	w.eventually("the last of them is reported", func() bool {
		s, ok := n1.status()
		return ok && s.Cluster.Reachable && len(s.Hosts) == 3 && n1.namesKey("fat-")
	})
	w.never(5*time.Second, "the cluster is not reachable", func() bool {
		s, ok := n1.status()
		return ok && !s.Cluster.Reachable
	})
	w.checkCommands("many values of 1.4 MB")
	for i, h := range w.hosts {
		untouched[i]("after all that")
		if mib := h.residentMiB(); mib > 160 {
			t.Errorf("the agent of %s has grown to %d MiB", h.Options.Name, mib)
		} else {
			t.Logf("the agent of %s has had at most %d MiB", h.Options.Name, mib)
		}
	}
}
