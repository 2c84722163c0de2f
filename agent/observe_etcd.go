// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// seen is what was read from etcd, and when. A round that does not ask carries over what the round
// before had.
type seen struct {
	etcdAt     time.Duration // when etcd was asked
	reachable  bool
	listed     bool // at least the member list was read
	problem    string
	denied     bool // etcd's users and roles stand against it
	membership cluster.Membership
	statuses   map[uint64]cluster.Status
	statusesAt time.Duration // when the members were asked
	answers    answers       // while there is no quorum
	hosts      []record.Host // by ID
	hostsAt    time.Duration // when all of them were read
	counted    int           // how many there are, if they were counted
	ownHost    *record.Host  // our own key's record, whoever wrote it
	ownHostAt  int64         // and its modification revision
	op         *record.Op
	opAt       int64 // its modification revision
	endedAt    int64 // modification revision of the line with which the last one ended
	lock       *record.Lock
	lockAt     int64 // its create revision: the token
	pause      *record.Pause
	queue      *record.Queue
	queueAt    int64 // its modification revision
	rollout    *record.Rollout
	rolloutAt  int64 // its modification revision
	released   released
	revision   int64 // of the store when the records were read
	unreadable []policy.Unreadable
}

// hostsKept is how many hosts' records a resting host keeps between two looks at them all. Of a
// larger fleet it keeps those that concern it.
const hostsKept = 200

// observeEtcd asks etcd for what is due, and carries the rest over.
func (a *Agent) observeEtcd(ctx context.Context, r *round) {
	hurry, before := a.hurry.Swap(false), a.current.Load()
	want := a.pace.due(r.at, hurry)
	if a.lightly && !hurry && before != nil && before.reachable {
		want = look{etcd: true, behind: a.last.Behind}
	}
	if before == nil || want.etcd {
		a.askEtcd(ctx, r, want)
	} else {
		r.seen = before.seen
		r.hosts = a.kept(before)
	}
	if want = a.pace.due(r.at, false); r.reachable && r.etcdAt == r.at && !a.lightly && want.hosts &&
		r.hostsAt != r.at {
		a.askEtcd(ctx, r, want) // it has just learned that it is called, or how few hosts there are
	}
	a.viewEtcd(ctx, r)
}

// askEtcd asks etcd, and paces what comes next by what it has found.
func (a *Agent) askEtcd(ctx context.Context, r *round, want look) {
	r.seen = seen{etcdAt: r.at}
	if old := a.reached.Load(); old != nil {
		r.statuses, r.statusesAt = old.statuses, old.statusesAt
		r.hosts, r.hostsAt = a.kept(old), old.hostsAt
	}
	err := a.askMembers(ctx, r, want.members)
	if err == nil {
		r.listed = true
		err = a.askRecords(ctx, r, want)
	}
	if err != nil { // half a picture is none
		if r.problem = err.Error(); cluster.Denied(err) {
			r.denied, r.problem = true, a.deniedText(err)
		}
		r.hosts, r.op, r.lock, r.pause, r.queue, r.rollout = nil, nil, nil, nil, nil, nil
		r.opAt, r.lockAt, r.queueAt, r.rolloutAt, r.unreadable = 0, 0, 0, 0, nil
	}
	r.reachable = err == nil
	if r.reachable {
		a.pace.guide(r.at, r.queue != nil)
	}
	switch {
	case !r.reachable:
	case want.hosts:
		a.pace.learn(r.at, len(r.hosts))
	case r.queue != nil && sizeClass(a.pace.size) != r.queue.Hosts:
		a.pace.learn(r.at, r.queue.Hosts)
	case want.count:
		a.pace.learn(r.at, max(1, r.counted))
	}
	a.pace.asked(r.at, look{etcd: true, members: r.reachable && want.members, hosts: r.reachable && want.hosts})
	a.pace.attend(r.at, a.attentive(r))
}

// letGo drops the records that a host which rests has no use for any more, now that it has decided: of a large
// fleet they are megabytes, and it looks again in minutes.
func (a *Agent) letGo(r *round) {
	if kept := a.kept(r); len(kept) < len(r.hosts) {
		r.hosts, r.view.Hosts = kept, a.viewHosts(kept, r.opAt, r.released)
	}
}

// kept gives the host records that are carried over.
func (a *Agent) kept(before *round) []record.Host {
	if a.pace.attends || len(before.hosts) <= hostsKept {
		return before.hosts
	}
	c := a.opt.Config
	var out []record.Host
	for _, h := range before.hosts {
		_, member := before.membership.ByPeerURL(h.PeerURL)
		queued := before.queue != nil && queues(before.queue, h.ID)
		ours := h.ID == c.Host.ID || h.Name == c.Host.Name || h.PeerURL == c.Etcd.PeerURL
		if member || queued || ours || !h.Turn.IsZero() {
			out = append(out, h)
		}
	}
	return out
}

// askMembers reads the member list, and asks every member if it shall.
func (a *Agent) askMembers(ctx context.Context, r *round, all bool) error {
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
	r.membership = list
	if !all {
		return nil
	}
	asked := slices.Clone(list.Members)
	for i, m := range asked {
		if slices.Contains(m.PeerURLs, a.opt.Config.Etcd.PeerURL) && len(m.ClientURLs) == 0 && a.ran() {
			asked[i].ClientURLs = []string{a.opt.Config.Etcd.ClientURL} // not published yet
		}
	}
	r.statuses, r.statusesAt = a.opt.Etcd.Statuses(ctx, asked), r.at
	return nil
}

// askRecords reads quorumd's own records at one revision: all of them, or those that concern this host.
func (a *Agent) askRecords(ctx context.Context, r *round, want look) error {
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
		r.counted = found.Counted
		a.parseRecords(r, found, want)
	}
	return err
}

func (a *Agent) parseRecords(r *round, found cluster.Range, want look) {
	r.revision = found.Revision
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
			kind, r.lockAt = policy.RecordLock, pair.CreateRevision
			if r.lock, err = a.parsed.lock.of(pair); err != nil {
				r.lock = &record.Lock{Name: "one whose record cannot be read"}
			}
		case pair.Key == a.keys.Op():
			kind, r.opAt = policy.RecordOp, pair.ModRevision
			r.op, err = a.parsed.op.of(pair)
		case pair.Key == a.keys.Ended():
			r.endedAt = pair.ModRevision
		case pair.Key == a.keys.Pause():
			kind = policy.RecordPause
			r.pause, err = a.parsed.pause.of(pair)
		case pair.Key == a.keys.Rollout():
			kind, r.rolloutAt = policy.RecordRollout, pair.ModRevision
			r.rollout, err = a.parsed.rollout.of(pair)
		case pair.Key == a.keys.Queue():
			r.queue, _ = a.parsed.queue.of(pair) // it is advice: one that cannot be read is none
			r.queueAt = pair.ModRevision
		}
		if err != nil {
			r.note(kind, pair, err)
		}
	}
	if found.Rest != "" {
		r.note(policy.RecordHost, cluster.Pair{Key: found.Rest},
			errors.New("it was not read, nor what follows, because too much lies before it"))
	}
	if want.hosts {
		r.hosts, r.hostsAt = hosts, r.at
		a.remember(found.Pairs, hosts)
		return
	}
	if before := a.reached.Load(); before != nil {
		r.carryUnreadable(before.unreadable, a.keys.Host(a.opt.Config.Host.ID))
	}
	id := a.opt.Config.Host.ID
	r.hosts = slices.DeleteFunc(slices.Clone(r.hosts), func(h record.Host) bool {
		return h.ID == id || slices.Contains(want.behind, h.ID)
	})
	r.hosts = append(r.hosts, hosts...)
	slices.SortStableFunc(r.hosts, func(x, y record.Host) int { return strings.Compare(x.ID, y.ID) })
}

// parseHost adds a host's record to those that were read.
func (a *Agent) parseHost(r *round, hosts []record.Host, pair cluster.Pair) []record.Host {
	id := strings.TrimPrefix(pair.Key, a.keys.Hosts())
	h, known := a.decoded[pair.ModRevision]
	var err error
	if !known || h.ID != id {
		h, err = decodeHost(pair, id)
	}
	own := id == a.opt.Config.Host.ID
	if own {
		r.ownHostAt = pair.ModRevision
	}
	if own && (err == nil || errors.Is(err, record.ErrVersion)) { // any other that cannot be read is written over
		r.ownHost = &h
	}
	if err != nil {
		r.note(policy.RecordHost, pair, err)
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
