// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/health"
)

// The discovery program hangs, prints garbage, prints nothing, fails, and then returns fewer members than exist. A host
// that has received endpoints once keeps using them. After five minutes it reports the faulty answers and the reason;
// the report ends a minute after the answers are correct again.
func TestAFaultyDiscoveryProgramIsAFindingAndTheStandbyStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	says, program := filepath.Join(dir, "says"), filepath.Join(dir, "discover")
	must(t, os.WriteFile(program, []byte("#!/bin/sh\n. "+says+"\n"), 0o755))
	say := func(script string) { // atomically: the agent may run it at any moment
		t.Helper()
		must(t, os.WriteFile(says+".new", []byte(script+"\n"), 0o644))
		must(t, os.Rename(says+".new", says))
	}
	w := newWorld(t, worldOptions{hosts: 2, voters: 1, standbys: 1, each: func(number int, o *testbed.HostOptions) {
		if number == 2 {
			o.Endpoints = []string{o.ClientURL}
			o.Set["cluster.discovery"] = fmt.Sprintf("{program: %s, interval: 1s, timeout: 1s}", program)
		}
	}})
	n1, n2 := w.hosts[0], w.hosts[1]
	one := "echo " + n1.Options.ClientURL
	both := one + "; echo " + n2.Options.ClientURL
	say(both)
	w.start()
	w.bootstrap()
	w.eventually("n2 is a standby", func() bool { return w.has(1, 1) })
	finding := func() string {
		s, ok := n2.status()
		if !ok {
			return ""
		}
		for _, f := range s.Health.Findings {
			if f.Code == string(health.DiscoveryFaulty) {
				return f.Text
			}
		}
		return ""
	}
	if text := finding(); text != "" {
		t.Errorf("with good answers: %s", text)
	}
	for _, c := range []struct{ script, want string }{
		{"exec sleep 600", "within 1s"},
		{"head -c 200000 /dev/urandom", "endpoint discovery failed"},
		{"echo '<html>'", "the answer is refused"},
		{":", "the answer is empty"},
		{both + "; exit 3", "endpoint discovery failed"},
	} {
		log, err := os.ReadFile(n2.LogPath())
		must(t, err)
		say(c.script)
		w.eventually("n2 reports "+c.script, func() bool {
			now, err := os.ReadFile(n2.LogPath())
			return err == nil && strings.Contains(string(now[len(log):]), c.want)
		})
	}
	say(one)
	w.within(6*time.Minute, "n2 has a finding about the missing endpoint", func() bool {
		return strings.Contains(finding(), "discovery returned 1 endpoints for 2 members")
	})
	if !w.has(1, 1) {
		t.Error("n2 is no longer a standby")
	}
	me().ctl(n2, "health").check(t, "health", 0, string(health.DiscoveryFaulty), "cluster.discovery")
	say(both)
	w.within(3*time.Minute, "the finding is gone", func() bool { return finding() == "" })
	w.verify(1, 1)
}
