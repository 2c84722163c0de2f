// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

const (
	namesEvery = time.Minute
	// mostNames limits how many cluster names are examined. Names of clusters that no longer use this etcd count, and
	// so do keys that are not a record of a cluster.
	mostNames = 8
)

// askNames reads the cluster names that other hosts use in this etcd. It does so only while no other member's host uses
// this host's cluster name, because the configured name may then be wrong. If etcd's roles forbid the read, no names
// are known.
func (o *Observer) askNames(ctx context.Context, r *round.Round) {
	used := slices.ContainsFunc(r.Hosts, func(h record.Host) bool {
		_, member := r.Membership.Recognize(uint64(h.MemberID), h.PeerURL)
		return member && h.ID != o.opt.Config.Host.ID
	})
	switch {
	case used:
		o.otherNames = nil
	case r.HostsAt != r.At: // this round did not read all host records, so used may be wrong
	case o.namesAt == 0 || r.At-o.namesAt >= namesEvery:
		names, err := o.readNames(ctx)
		if err == nil || cluster.Denied(err) || len(names) > 0 {
			o.otherNames = names
		}
		o.namesAt = r.At
	}
	r.OtherNames = o.otherNames
}

// readNames returns the cluster names of hosts with records, as far as mostNames allows, except this host's. All reads
// share one call timeout, because the loop that renews the lock waits for them.
func (o *Observer) readNames(ctx context.Context) (names []string, err error) {
	const root, end = "/quorumd/", "/quorumd0"
	ctx, cancel := context.WithTimeout(ctx, o.opt.Config.Timing.CallTimeout)
	defer cancel()
	first := func(start, end string) string {
		var found cluster.Range
		if err == nil {
			found, err = o.opt.Etcd.Read(ctx, cluster.Span{Start: start, End: end, First: true})
		}
		if err != nil || len(found.Pairs) == 0 {
			return ""
		}
		return found.Pairs[0].Key
	}
	next := root
	for range mostNames {
		key := first(next, end)
		name, _, found := strings.Cut(strings.TrimPrefix(key, root), "/")
		switch {
		case key == "":
			return names, err
		case !found: // the key is not a record of a cluster
			next = key + "\x00"
			continue
		}
		if hosts := record.KeysFor(name).Hosts(); name != o.opt.Config.Cluster.Name && first(hosts, past(hosts)) != "" {
			names = append(names, shorten(name))
		}
		next = past(record.KeysFor(name).Prefix())
	}
	return names, err
}

// past returns the first key after all keys with a prefix that ends in a slash.
func past(prefix string) string { return strings.TrimSuffix(prefix, "/") + "0" }

// shorten limits a name to what fits on one line, because any etcd client may have written it.
func shorten(name string) string {
	const most = 40
	if clean := strings.ToValidUTF8(name, "?"); len(clean) <= most {
		return clean
	}
	return strings.ToValidUTF8(name[:most], "?") + "…"
}
