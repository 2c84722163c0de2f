// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"testing"
)

// votersIn returns a view of live voters n1, n2, … in these failure domains. A domain that begins with ! is that of a
// voter that is down.
func votersIn(domains ...string) View {
	var v View
	for i, domain := range domains {
		domain, down := strings.CutPrefix(domain, "!")
		v.Cluster.Members = append(v.Cluster.Members, Member{
			ID: uint64(i + 1), Name: fmt.Sprintf("n%d", i+1), Domain: domain, Live: !down,
		})
	}
	return v
}

func TestTheDomainWhoseLossCostsTheQuorumIsNamed(t *testing.T) {
	t.Parallel()
	for domains, want := range map[string]string{
		"r1 r1 r2":             "r1 (n1, n2): 2 of the 3 live voters, quorum 2 of 3",
		"r1 r2 r3":             "",
		"r1 r1 r2 r2 r3":       "",
		"r1 r1 r1 r2 r2":       "r1 (n1, n2, n3): 3 of the 5 live voters, quorum 3 of 5",
		"r1 r1 r2 r2":          "r1 (n1, n2): 2 of the 4 live voters, quorum 3 of 4; the loss of r2 costs it, too",
		"r1 r1 r2 r2 !r3":      "r1 (n1, n2): 2 of the 4 live voters, quorum 3 of 5; the loss of r2 costs it, too",
		"!r1 r1 r1 r2 r3":      "r1 (n1, n2, n3): 2 of the 4 live voters, quorum 3 of 5",
		"!r1 r1 r2":            "", // the loss of any host costs it: the fault tolerance is 0
		"!r1 !r1 r2":           "", // there is no quorum
		"r1":                   "",
		". . .":                "", // the domains are unknown
		"r2 r1 . r1 .":         "",
		"!r1 r2 r2 r3 r3":      "r2 (n2, n3): 2 of the 4 live voters, quorum 3 of 5; the loss of r3 costs it, too",
		"r1 r1 r1 r1 r2":       "r1 (n1, n2, n3, n4): 4 of the 5 live voters, quorum 3 of 5",
		"r1 r1 r2 r2 r3 r3 r4": "",
	} {
		v := votersIn(strings.Fields(strings.ReplaceAll(domains, ".", "?"))...)
		for i := range v.Cluster.Members {
			v.Cluster.Members[i].Domain = strings.Trim(v.Cluster.Members[i].Domain, "?")
		}
		if want != "" {
			want = "loss of failure domain " + strings.NewReplacer(": ", " costs the quorum: it has ",
				", quorum ", ", and the quorum is ").Replace(want)
		}
		if got := DomainLoss(v); got != want {
			t.Errorf("%s: %q, want %q", domains, got, want)
		}
	}
}

func TestALearnerDoesNotCountInItsDomain(t *testing.T) {
	t.Parallel()
	v := votersIn("r1", "r2", "r3", "r1")
	v.Cluster.Members[3].Learner = true
	if got := DomainLoss(v); got != "" {
		t.Error(got)
	}
}
