// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DomainLoss returns, as text, the failure domain whose loss costs the quorum, with its voters; empty if there is none.
// It counts only the voters that are live now. A domain with a single live voter is left out, because the fault
// tolerance covers it. Hosts without a known failure domain belong to none.
func DomainLoss(v View) string {
	type share struct {
		domain string
		names  []string
		live   int
	}
	voters, live := v.Cluster.Counts()
	shares := map[string]*share{}
	for m := range v.Cluster.voters() {
		if m.Domain == "" {
			continue
		}
		s := shares[m.Domain]
		if s == nil {
			s = &share{domain: m.Domain}
			shares[m.Domain] = s
		}
		s.names = append(s.names, m.label())
		if m.Live {
			s.live++
		}
	}
	costly := slices.DeleteFunc(slices.Collect(maps.Values(shares)), func(s *share) bool {
		return s.live < 2 || Tolerance(voters, live) < 0 || Tolerance(voters, live-s.live) >= 0
	})
	slices.SortFunc(costly, func(a, b *share) int {
		return cmp.Or(cmp.Compare(b.live, a.live), cmp.Compare(a.domain, b.domain))
	})
	if len(costly) == 0 {
		return ""
	}
	first := costly[0]
	slices.Sort(first.names)
	text := fmt.Sprintf("loss of failure domain %s (%s) costs the quorum: it has %d of the %d live voters, "+
		"and the quorum is %d of %d", first.domain, strings.Join(first.names, ", "), first.live, live, Quorum(voters),
		voters)
	for _, s := range costly[1:] { // after another failure, losing any of several domains may cost the quorum
		text += "; the loss of " + s.domain + " costs it, too"
	}
	return text
}

// agreedDomain returns the failure domain of a member's host, or an empty string if it is unknown or disputed. It is
// disputed if a host that reports on the member names a different domain. If this host is new and has never read the
// member's host record, all voters' hosts must name the same domain.
func (v View) agreedDomain(m Member) string {
	domain := m.Domain
	for _, h := range v.Hosts {
		s, reports := h.reportOn(m.ID)
		switch {
		case h.Own, s.Domain == "" && m.Domain != "", !reports && h.Role != RoleVoter:
		case s.Domain == "" || domain != "" && s.Domain != domain:
			return ""
		default:
			domain = s.Domain
		}
	}
	return domain
}

// areWholeDomain reports whether the impaired voters are all the voters of one failure domain. A voter in an unknown
// domain may be in it.
func (v View) areWholeDomain(impaired, others []Member) bool {
	domain := v.agreedDomain(impaired[0])
	elsewhere := func(m Member) bool { return v.agreedDomain(m) != domain }
	spread := slices.ContainsFunc(impaired, elsewhere)
	shared := slices.ContainsFunc(others, func(m Member) bool { return m.Domain == domain || m.Domain == "" })
	return domain != "" && !spread && !shared
}

// newDomain reports whether the failure domain of a member's host differs from the one recorded on this host's disk.
func newDomain(v View) bool {
	differs := func(m Member) bool { return m.Domain != m.NotedDomain }
	return !v.foreign() && slices.ContainsFunc(v.Cluster.Members, differs)
}
