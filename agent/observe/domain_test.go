// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

func TestDomainIsReportedByTheHostOrNotedWhileItIsSilent(t *testing.T) {
	t.Parallel()
	noted := map[uint64]string{1: "old", 3: "c", 9: "gone"}
	reported := func(of map[string]string) []record.Host {
		var all []record.Host
		for _, id := range []string{"1", "2", "3"} {
			if domain, reports := of[id]; reports {
				all = append(all, record.Host{ID: "n" + id, PeerURL: "http://p" + id, Domain: domain})
			}
		}
		return all
	}
	also := func(hosts []record.Host, domain string) []record.Host {
		return append(hosts, record.Host{ID: "other", PeerURL: "http://p1", Domain: domain})
	}
	for name, c := range map[string]struct {
		hosts []record.Host
		want  []string
	}{
		"two hosts report, one is silent": {
			reported(map[string]string{"1": "a", "2": "b"}), []string{"a", "b", "c"},
		},
		"a host reports no domain any more": {
			reported(map[string]string{"1": "", "2": "b"}), []string{"", "b", "c"},
		},
		"all hosts are silent": {nil, []string{"old", "", "c"}},
		"two hosts contradict each other about a member": {
			also(reported(map[string]string{"1": "a"}), "b"), []string{"", "", "c"},
		},
		"two hosts agree about a member": {
			also(reported(map[string]string{"1": "a"}), "a"), []string{"a", "", "c"},
		},
		"two of three hosts agree about a member": {
			also(also(reported(map[string]string{"1": "a"}), "b"), "a"), []string{"", "", "c"},
		},
	} {
		r := quiet(1, time.Second)
		r.Hosts, r.Noted.Domains = c.hosts, noted
		var got []string
		for _, m := range NewBuilder(hostConfig(), "boot-1", "i", false).View(r, nil).Cluster.Members {
			got = append(got, m.Domain)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: domains %q, want %q", name, got, c.want)
		}
	}
}
