// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/proxy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// Voters returns the current list of voters for this host's proxy. ok is false if the list has no usable voter, if
// there is no quorum, or if the loop has shown no round for several intervals. The caller then keeps its last list,
// whose age grows.
func (p *Publisher) Voters() (l proxy.List, ok bool) {
	r, timing := p.current.Load(), p.opt.Config.Timing
	if r == nil || p.opt.Now()-r.At > round.Blink*(timing.Interval+timing.CallTimeout) {
		return l, false
	}
	all, ok := policy.ProxyTargets(r.View)
	if !ok {
		return l, false
	}
	l = proxy.List{Cluster: record.MemberID(r.View.Cluster.ID).String(), Revision: r.Revision}
	used := false
	for _, f := range all {
		member, _ := r.Membership.ByID(f.Member)
		address := proxy.Address(member.ClientURLs)
		if address == "" { // the member has not started yet
			continue
		}
		l.Voters = append(l.Voters, proxy.Voter{
			Member: record.MemberID(f.Member).String(), Name: f.Name, Address: address, Use: f.Use, Why: f.Why,
		})
		used = used || f.Use
	}
	return l, used
}
