// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// hostsKept is how many hosts' records a resting host keeps between two looks at them all. Of a
// larger fleet it keeps those that concern it.
const hostsKept = 200

// observeEtcd asks etcd for what is due, and carries the rest over.
func (a *Agent) observeEtcd(ctx context.Context, r *round.Round) {
	hurry, before := a.hurry.Swap(false), a.current.Load()
	want := a.pace.due(r.At, hurry)
	if a.lightly && !hurry && before != nil && before.Reachable {
		want = look{etcd: true, behind: a.last.Behind}
	}
	if before == nil || want.etcd {
		a.askEtcd(ctx, r, want)
	} else {
		r.Seen = before.Seen
		r.Hosts = a.kept(before)
	}
	if want = a.pace.due(r.At, false); r.Reachable && r.EtcdAt == r.At && !a.lightly && want.hosts &&
		r.HostsAt != r.At {
		a.askEtcd(ctx, r, want) // it has just learned that it is called, or how few hosts there are
	}
	a.viewEtcd(ctx, r)
}

// askEtcd asks etcd, and paces what comes next by what it has found.
func (a *Agent) askEtcd(ctx context.Context, r *round.Round, want look) {
	r.Seen = round.Seen{EtcdAt: r.At}
	if old := a.reached.Load(); old != nil {
		r.Statuses, r.StatusesAt = old.Statuses, old.StatusesAt
		r.Hosts, r.HostsAt = a.kept(old), old.HostsAt
	}
	err := a.askMembers(ctx, r, want.members)
	if err == nil {
		r.Listed = true
		err = a.askRecords(ctx, r, want)
	}
	if err != nil { // half a picture is none
		if r.Problem = err.Error(); cluster.Denied(err) {
			r.Denied, r.Problem = true, a.deniedText(err)
		}
		r.Hosts, r.Op, r.Lock, r.Pause, r.Queue, r.Rollout = nil, nil, nil, nil, nil, nil
		r.OpAt, r.LockAt, r.QueueAt, r.RolloutAt, r.Unreadable = 0, 0, 0, 0, nil
	}
	r.Reachable = err == nil
	if r.Reachable {
		a.pace.guide(r.At, r.Queue != nil)
	}
	switch {
	case !r.Reachable:
	case want.hosts:
		a.pace.learn(r.At, len(r.Hosts))
	case r.Queue != nil && sizeClass(a.pace.size) != r.Queue.Hosts:
		a.pace.learn(r.At, r.Queue.Hosts)
	case want.count:
		a.pace.learn(r.At, max(1, r.Counted))
	}
	a.pace.asked(r.At, look{etcd: true, members: r.Reachable && want.members, hosts: r.Reachable && want.hosts})
	a.pace.attend(r.At, a.attentive(r))
}

// letGo drops the records that a host which rests has no use for any more, now that it has decided: of a large
// fleet they are megabytes, and it looks again in minutes.
func (a *Agent) letGo(r *round.Round) {
	if kept := a.kept(r); len(kept) < len(r.Hosts) {
		r.Hosts, r.View.Hosts = kept, a.viewHosts(kept, r.OpAt, r.Released)
	}
}

// kept gives the host records that are carried over.
func (a *Agent) kept(before *round.Round) []record.Host {
	if a.pace.attends || len(before.Hosts) <= hostsKept {
		return before.Hosts
	}
	c := a.opt.Config
	var out []record.Host
	for _, h := range before.Hosts {
		_, member := before.Membership.ByPeerURL(h.PeerURL)
		queued := before.Queue != nil && queues(before.Queue, h.ID)
		ours := h.ID == c.Host.ID || h.Name == c.Host.Name || h.PeerURL == c.Etcd.PeerURL
		if member || queued || ours || !h.Turn.IsZero() {
			out = append(out, h)
		}
	}
	return out
}

// askMembers reads the member list, and asks every member if it shall.
func (a *Agent) askMembers(ctx context.Context, r *round.Round, all bool) error {
	listCtx, cancel := context.WithTimeout(ctx, 2*a.opt.Config.Timing.CallTimeout)
	defer cancel()
	list, err := a.opt.Etcd.Members(listCtx)
	switch {
	case cluster.Denied(err):
		return err
	case err != nil:
		if why := a.askSurvivors(ctx, r); why != nil {
			return why
		}
		return a.explain(ctx, err)
	}
	r.Membership = list
	if !all {
		return nil
	}
	asked := slices.Clone(list.Members)
	for i, m := range asked {
		if slices.Contains(m.PeerURLs, a.opt.Config.Etcd.PeerURL) && len(m.ClientURLs) == 0 && a.ran() {
			asked[i].ClientURLs = []string{a.opt.Config.Etcd.ClientURL} // not published yet
		}
	}
	r.Statuses, r.StatusesAt = a.opt.Etcd.Statuses(ctx, asked), r.At
	return nil
}

// askRecords reads quorumd's own records at one revision: all of them, or those that concern this host.
func (a *Agent) askRecords(ctx context.Context, r *round.Round, want look) error {
	ctx, cancel := context.WithTimeout(ctx, 2*a.opt.Config.Timing.CallTimeout)
	defer cancel()
	var spans []cluster.Span
	for _, key := range a.keys.Cluster() {
		spans = append(spans, cluster.Span{Start: key})
	}
	spans = append(spans, cluster.Span{Start: a.keys.Releases(), End: a.keys.ReleasesEnd()})
	if want.hosts {
		spans = append(spans, cluster.Span{Start: a.keys.Hosts(), End: a.keys.Lock()})
	} else {
		spans = append(spans, cluster.Span{Start: a.keys.Host(a.opt.Config.Host.ID)})
		for _, id := range want.behind {
			spans = append(spans, cluster.Span{Start: a.keys.Host(id)})
		}
	}
	if want.count {
		spans = append(spans, cluster.Span{Start: a.keys.Hosts(), End: a.keys.Lock(), Count: true})
	}
	found, err := a.opt.Etcd.Read(ctx, spans...)
	if err == nil {
		r.Counted = found.Counted
		a.parseRecords(r, found, want)
	}
	return err
}

func (a *Agent) parseRecords(r *round.Round, found cluster.Range, want look) {
	r.Revision = found.Revision
	hosts := make([]record.Host, 0, len(found.Pairs))
	for _, pair := range found.Pairs {
		var err error
		var kind policy.RecordKind
		switch {
		case strings.HasPrefix(pair.Key, a.keys.Hosts()):
			hosts = a.parseHost(r, hosts, pair)
		case strings.HasPrefix(pair.Key, a.keys.Releases()):
			a.parseRelease(r, pair)
		case pair.Key == a.keys.Lock():
			kind, r.LockAt = policy.RecordLock, pair.CreateRevision
			if r.Lock, err = a.parsed.lock.of(pair); err != nil {
				r.Lock = &record.Lock{Name: "one whose record cannot be read"}
			}
		case pair.Key == a.keys.Op():
			kind, r.OpAt = policy.RecordOp, pair.ModRevision
			r.Op, err = a.parsed.op.of(pair)
		case pair.Key == a.keys.Ended():
			r.EndedAt = pair.ModRevision
		case pair.Key == a.keys.Pause():
			kind = policy.RecordPause
			r.Pause, err = a.parsed.pause.of(pair)
		case pair.Key == a.keys.Rollout():
			kind, r.RolloutAt = policy.RecordRollout, pair.ModRevision
			r.Rollout, err = a.parsed.rollout.of(pair)
		case pair.Key == a.keys.Queue():
			r.Queue, _ = a.parsed.queue.of(pair) // it is advice: one that cannot be read is none
			r.QueueAt = pair.ModRevision
		}
		if err != nil {
			r.NoteUnreadable(kind, pair, err)
		}
	}
	if found.Rest != "" {
		r.NoteUnreadable(policy.RecordHost, cluster.Pair{Key: found.Rest},
			errors.New("it was not read, nor what follows, because too much lies before it"))
	}
	if want.hosts {
		r.Hosts, r.HostsAt = hosts, r.At
		a.remember(found.Pairs, hosts)
		return
	}
	if before := a.reached.Load(); before != nil {
		r.CarryUnreadable(before.Unreadable, a.keys.Host(a.opt.Config.Host.ID))
	}
	id := a.opt.Config.Host.ID
	r.Hosts = slices.DeleteFunc(slices.Clone(r.Hosts), func(h record.Host) bool {
		return h.ID == id || slices.Contains(want.behind, h.ID)
	})
	r.Hosts = append(r.Hosts, hosts...)
	slices.SortStableFunc(r.Hosts, func(x, y record.Host) int { return strings.Compare(x.ID, y.ID) })
}

// parseHost adds a host's record to those that were read.
func (a *Agent) parseHost(r *round.Round, hosts []record.Host, pair cluster.Pair) []record.Host {
	id := strings.TrimPrefix(pair.Key, a.keys.Hosts())
	h, known := a.decoded[pair.ModRevision]
	var err error
	if !known || h.ID != id {
		h, err = decodeHost(pair, id)
	}
	own := id == a.opt.Config.Host.ID
	if own {
		r.OwnHostAt = pair.ModRevision
	}
	if own && (err == nil || errors.Is(err, record.ErrVersion)) { // any other that cannot be read is written over
		r.OwnHost = &h
	}
	if err != nil {
		r.NoteUnreadable(policy.RecordHost, pair, err)
		return hosts
	}
	return append(hosts, h)
}

// remember keeps the records that were read, for the next time: most will be as they were. A resting
// host of a large fleet, which reads them seldom, keeps none.
func (a *Agent) remember(pairs []cluster.Pair, hosts []record.Host) {
	if len(a.decoded) == len(hosts) && !slices.ContainsFunc(pairs, func(p cluster.Pair) bool {
		_, known := a.decoded[p.ModRevision]
		return !known && strings.HasPrefix(p.Key, a.keys.Hosts())
	}) {
		return
	}
	a.decoded = nil
	if !a.pace.attends && len(hosts) > hostsKept {
		return
	}
	revisions := map[string]int64{}
	for _, pair := range pairs {
		revisions[pair.Key] = pair.ModRevision
	}
	a.decoded = map[int64]record.Host{}
	for _, h := range hosts {
		a.decoded[revisions[a.keys.Host(h.ID)]] = h
	}
}

// parsed are the records of the cluster as they were read last. Most are as they were.
type parsed struct {
	lock    parsedRecord[record.Lock]
	op      parsedRecord[record.Op]
	pause   parsedRecord[record.Pause]
	queue   parsedRecord[record.Queue]
	rollout parsedRecord[record.Rollout]
}

// parsedRecord is a record with the bytes that it was decoded from, or the error that came of them.
type parsedRecord[T record.Lock | record.Op | record.Pause | record.Queue | record.Rollout] struct {
	from  []byte
	value *T
	err   error
}

// of decodes a record, unless it is the one of the time before. What it gives is not to be changed; it is nil with an
// error.
func (p *parsedRecord[T]) of(pair cluster.Pair) (*T, error) {
	if err := oversized[T](pair); err != nil {
		*p = parsedRecord[T]{}
		return nil, err
	}
	b := pair.Value
	if p.from != nil && bytes.Equal(p.from, b) {
		return p.value, p.err
	}
	p.from, p.value = b, nil
	value, err := record.Decode[T](b)
	if p.err = err; err == nil {
		p.value = &value
	}
	return p.value, p.err
}
