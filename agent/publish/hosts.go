// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// Upper bounds in bytes on the JSON of a host and of a reachability report, without their strings.
const (
	rowBytes          = 320
	reachabilityBytes = 192
)

// boundHosts returns the hosts that fit into a status, in their original order, and counts the omitted ones. If not all
// fit, the priority is: the host that serves the status, the hosts of the lock and the operation, the members, the
// hosts that are not OK, and the rest. At equal priority it prefers small records, so that a few huge records do not
// displace many hosts.
func boundHosts(hosts []control.HostRecord, own string, r *round.Round) ([]control.HostRecord, *control.Omitted) {
	sizes, all := make([]int, len(hosts)), 0
	for i := range hosts {
		sizes[i] = hostBytes(&hosts[i])
		all += sizes[i]
	}
	if len(hosts) <= control.MaxHosts && all <= control.MaxHostBytes {
		return hosts, nil
	}
	members := map[string]string{}
	for _, m := range r.View.Cluster.Members {
		members[memberText(m.ID)] = m.Name
	}
	order := make([]int, len(hosts))
	ranks := make([]int, len(hosts))
	for i := range hosts {
		order[i], ranks[i] = i, hostRank(&hosts[i], own, r, members)
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b))
	})
	kept, left := 0, control.MaxHostBytes
	for kept < min(len(order), control.MaxHosts) && sizes[order[kept]] <= left {
		left -= sizes[order[kept]]
		kept++
	}
	omitted := &control.Omitted{Hosts: len(order) - kept}
	for _, i := range order[kept:] {
		if hosts[i].Health != health.OK.String() {
			omitted.NotOK++
		}
	}
	listed := order[:kept]
	slices.Sort(listed)
	out := make([]control.HostRecord, 0, kept)
	for _, i := range listed {
		out = append(out, hosts[i])
	}
	return out, omitted
}

// hostRank returns a host's priority in the list; 0 is the highest. A record that claims a member but has another name
// than the member ranks below one with the member's name.
func hostRank(h *control.HostRecord, own string, r *round.Round, members map[string]string) int {
	name, member := members[h.MemberID]
	switch {
	case h.ID == own:
		return 0
	case r.Lock != nil && r.Lock.Host == h.ID, r.Op.Of(h.ID):
		return 1
	case member && name == h.Name:
		return 2
	case member:
		return 3
	case h.Health != health.OK.String():
		return 4
	}
	return 5
}

// hostBytes returns the maximum number of bytes that a host takes in JSON.
func hostBytes(h *control.HostRecord) int {
	n := rowBytes
	for _, s := range []string{
		h.ID, h.Name, h.Domain, string(h.Role), h.Health, h.HealthText, h.Mode, h.Version, h.EtcdVersion, h.MemberID,
		h.Waiting,
	} {
		n += jsonBytes(s)
	}
	for _, s := range h.Sees {
		n += reachabilityBytes + jsonBytes(string(s.Peer)) + jsonBytes(string(s.Client)) + jsonBytes(s.Link) +
			jsonBytes(s.Domain)
	}
	return n
}

// jsonBytes returns the maximum number of bytes that a string takes in JSON.
func jsonBytes(s string) int {
	const escaped = len(`\u0000`)
	n := 0
	for _, r := range s {
		switch {
		case r < ' ', r == '\u2028', r == '\u2029', r == utf8.RuneError: // RuneError: invalid UTF-8 is replaced
			n += escaped
		case r == '"', r == '\\':
			n += 2
		default:
			n += utf8.RuneLen(r)
		}
	}
	return n
}
