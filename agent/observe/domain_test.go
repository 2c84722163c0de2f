// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

func TestAHostTellsWhereItStandsAndThisHostsDiskOfThoseThatAreSilent(t *testing.T) {
	t.Parallel()
	noted := map[uint64]string{1: "old", 3: "c", 9: "gone"}
	tells := func(of map[string]string) []record.Host {
		var all []record.Host
		for _, id := range []string{"1", "2", "3"} {
			if domain, tells := of[id]; tells {
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
		"two tell, one is silent":       {tells(map[string]string{"1": "a", "2": "b"}), []string{"a", "b", "c"}},
		"one is in none any more":       {tells(map[string]string{"1": "", "2": "b"}), []string{"", "b", "c"}},
		"all are silent":                {nil, []string{"old", "", "c"}},
		"two speak for one, and differ": {also(tells(map[string]string{"1": "a"}), "b"), []string{"", "", "c"}},
		"two speak for one, and as one": {also(tells(map[string]string{"1": "a"}), "a"), []string{"a", "", "c"}},
		"of three two are alike": {
			also(also(tells(map[string]string{"1": "a"}), "b"), "a"), []string{"", "", "c"},
		},
	} {
		r := quiet(1, time.Second)
		r.Hosts, r.Noted.Domains = c.hosts, noted
		var got []string
		for _, m := range NewBuilder(hostConfig(), "boot-1", "i", false).View(r, nil).Cluster.Members {
			got = append(got, m.Domain)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: they stand in %q, want %q", name, got, c.want)
		}
	}
}
