// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import (
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/control"
)

func TestEveryHostReportsWhichMembersItReaches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 3})
	w.start(w.hosts...)
	w.bootstrap()
	w.eventually("there are three voters", func() bool { return w.has(3, 0) })
	for _, h := range w.hosts {
		w.eventually(h.Options.Name+" reports that every host reaches the other two", func() bool {
			s, ok := h.status()
			return ok && len(s.Hosts) == 3 && reaches(s.Hosts, 2)
		})
		if s, _ := h.status(); len(s.Health.NotAvailable) > 0 {
			for _, a := range s.Health.NotAvailable {
				if a.Component == "network" && a.Check != "link-speed" { // the loopback device has none
					t.Errorf("%s: %+v", h.Options.Name, a)
				}
			}
		}
		page, ok := h.fetch("/")
		for _, want := range []string{">fault tolerance 1<", "<svg", "Connectivity", "to " + w.hosts[0].Options.Name} {
			if !ok || !strings.Contains(page, want) {
				t.Errorf("the status page of %s lacks %q:\n%s", h.Options.Name, want, page)
			}
		}
	}
}

// reaches reports whether every host reports that both ports of that many other members answer.
func reaches(hosts []control.HostRecord, members int) bool {
	for _, h := range hosts {
		if len(h.Sees) != members {
			return false
		}
		for _, s := range h.Sees {
			if s.Peer != "answers" || s.Client != "answers" || s.RTTSeconds == 0 {
				return false
			}
		}
	}
	return true
}
