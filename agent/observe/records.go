// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

func (o *Observer) parseRecords(r *round.Round, found cluster.Range, want look) {
	r.Revision = found.Revision
	hosts := make([]record.Host, 0, len(found.Pairs))
	for _, pair := range found.Pairs {
		var err error
		var kind policy.RecordKind
		switch {
		case strings.HasPrefix(pair.Key, o.keys.Hosts()):
			hosts = o.parseHost(r, hosts, pair)
		case strings.HasPrefix(pair.Key, o.keys.Releases()):
			o.parseRelease(r, pair)
		case strings.HasPrefix(pair.Key, o.keys.Retirements()):
			o.parseRetired(r, pair)
		case strings.HasPrefix(pair.Key, o.keys.Permits()):
			o.parsePermit(r, pair)
		case pair.Key == o.keys.Lock():
			kind, r.LockAt = policy.RecordLock, pair.CreateRevision
			if r.Lock, err = o.parsed.lock.of(pair); err != nil {
				r.Lock = &record.Lock{Name: "an unknown host: the lock's record cannot be read"}
			}
		case pair.Key == o.keys.Op():
			kind, r.OpAt = policy.RecordOp, pair.ModRevision
			r.Op, err = o.parsed.op.of(pair)
		case pair.Key == o.keys.Ended():
			r.EndedAt = pair.ModRevision
		case pair.Key == o.keys.Pause():
			kind = policy.RecordPause
			r.Pause, err = o.parsed.pause.of(pair)
		case pair.Key == o.keys.Rollout():
			kind, r.RolloutAt = policy.RecordRollout, pair.ModRevision
			r.Rollout, err = o.parsed.rollout.of(pair)
		case pair.Key == o.keys.Repairs():
			kind, r.RepairsAt = policy.RecordRepairs, pair.ModRevision
			r.Repairs, err = o.parsed.repairs.of(pair)
		case pair.Key == o.keys.Size():
			kind, r.SizeAt = policy.RecordSize, pair.ModRevision
			r.Size, err = o.parsed.size.of(pair)
		case pair.Key == o.keys.Recovered():
			r.Recovered, _ = o.parsed.recovered.of(pair) // an unreadable record counts as none
		case pair.Key == o.keys.Backup():
			// an unreadable record counts as none: the snapshot store has the details
			r.Backup, _ = o.parsed.backup.of(pair)
		case pair.Key == o.keys.RestoreTest():
			r.RestoreTest, _ = o.parsed.restoreTest.of(pair) // an unreadable record counts as none
		case pair.Key == o.keys.Queue():
			r.Queue, _ = o.parsed.queue.of(pair) // an unreadable record counts as none: the queue is only advice
			r.QueueAt = pair.ModRevision
		}
		if err != nil {
			r.NoteUnreadable(kind, pair, err)
		}
	}
	if found.Rest != "" {
		kind := policy.RecordHost
		if strings.HasPrefix(found.Rest, o.keys.Retirements()) {
			kind = policy.RecordRetired
		}
		r.NoteUnreadable(kind, cluster.Pair{Key: found.Rest},
			errors.New("not read, like all later records: the records before it exceed the limit of one read"))
	}
	if want.hosts {
		r.Hosts, r.HostsAt = hosts, r.At
		o.remember(found.Pairs, hosts)
		return
	}
	if before := o.reached; before != nil {
		r.CarryUnreadable(before.Unreadable, o.keys.Host(o.opt.Config.Host.ID))
	}
	id := o.opt.Config.Host.ID
	r.Hosts = slices.DeleteFunc(slices.Clone(r.Hosts), func(h record.Host) bool {
		return h.ID == id || slices.Contains(want.behind, h.ID)
	})
	r.Hosts = append(r.Hosts, hosts...)
	slices.SortStableFunc(r.Hosts, func(x, y record.Host) int { return strings.Compare(x.ID, y.ID) })
}

// parseRelease adds the record of a release to the round. An unreadable record releases nothing.
func (o *Observer) parseRelease(r *round.Round, pair cluster.Pair) {
	release, err := record.Decode[record.Release](pair.Value)
	if err != nil || release.Host != strings.TrimPrefix(pair.Key, o.keys.Releases()) {
		o.log.Debug("cannot read the record of a released operation", "key", pair.Key, "error", err)
		return
	}
	if r.Released == nil {
		r.Released = round.Released{}
	}
	r.Released[release.Host] = release.Started
}

// parseRetired adds the retirement of a host to the round. If its record cannot be read, the host counts as retired. At
// most [record.MaxRetired] are kept.
func (o *Observer) parseRetired(r *round.Round, pair cluster.Pair) {
	if len(r.Retired) == record.MaxRetired {
		if !slices.ContainsFunc(r.Unreadable, func(u policy.Unreadable) bool {
			return u.Kind == policy.RecordRetired
		}) {
			r.NoteUnreadable(policy.RecordRetired, pair,
				fmt.Errorf("not read, like all later ones: more than %d hosts are retired", record.MaxRetired))
		}
		return
	}
	retired, err := round.DecodeRetired(pair, o.keys)
	if err != nil {
		r.NoteUnreadable(policy.RecordRetired, pair, err)
	}
	r.Retired = append(r.Retired, retired)
}

// parsePermit adds an unclaimed permit to free space to the round. Its value does not matter.
func (o *Observer) parsePermit(r *round.Round, pair cluster.Pair) {
	for n := 1; n <= policy.MaxPermits; n++ {
		if pair.Key == o.keys.Permit(n) {
			r.Permits = append(r.Permits, round.Permit{Number: n, At: pair.ModRevision})
		}
	}
}

// parseHost appends a host's record to hosts.
func (o *Observer) parseHost(r *round.Round, hosts []record.Host, pair cluster.Pair) []record.Host {
	id := strings.TrimPrefix(pair.Key, o.keys.Hosts())
	h, known := o.decoded[pair.ModRevision]
	var err error
	if !known || h.ID != id {
		h, err = round.DecodeHost(pair, id)
	}
	if o.leases == nil {
		o.leases = map[string]int64{}
	}
	o.leases[id] = pair.Lease
	own := id == o.opt.Config.Host.ID
	if own {
		r.OwnHostAt = pair.ModRevision
	}
	if own && (err == nil || errors.Is(err, record.ErrVersion)) { // any other unreadable record is overwritten
		r.OwnHost = &h
	}
	if err != nil {
		r.NoteUnreadable(policy.RecordHost, pair, err)
		return hosts
	}
	return append(hosts, h)
}

// remember keeps the decoded host records for the next round, because most do not change. A resting host (see pace) in
// a large fleet reads them rarely and keeps none.
func (o *Observer) remember(pairs []cluster.Pair, hosts []record.Host) {
	if len(o.decoded) == len(hosts) && !slices.ContainsFunc(pairs, func(p cluster.Pair) bool {
		_, known := o.decoded[p.ModRevision]
		return !known && strings.HasPrefix(p.Key, o.keys.Hosts())
	}) {
		return
	}
	o.decoded = nil
	if !o.pace.attends && len(hosts) > hostsKept {
		return
	}
	revisions := map[string]int64{}
	for _, pair := range pairs {
		revisions[pair.Key] = pair.ModRevision
	}
	o.decoded = map[int64]record.Host{}
	for _, h := range hosts {
		o.decoded[revisions[o.keys.Host(h.ID)]] = h
	}
}

// parsed holds the cluster's records as last decoded, because most do not change between two reads.
type parsed struct {
	lock        parsedRecord[record.Lock]
	op          parsedRecord[record.Op]
	pause       parsedRecord[record.Pause]
	queue       parsedRecord[record.Queue]
	rollout     parsedRecord[record.Rollout]
	repairs     parsedRecord[record.Repairs]
	recovered   parsedRecord[record.Recovered]
	backup      parsedRecord[record.Backup]
	restoreTest parsedRecord[record.RestoreTest]
	size        parsedRecord[record.Size]
}

// parsedRecord is a record with the bytes that it was decoded from, or the decoding error.
type parsedRecord[T record.Lock | record.Op | record.Pause | record.Queue | record.Rollout | record.Repairs |
	record.Recovered | record.Backup | record.RestoreTest | record.Size] struct {
	from  []byte
	value *T
	err   error
}

// of decodes a record if it has changed. Callers must not modify the result, which is nil on an error.
func (p *parsedRecord[T]) of(pair cluster.Pair) (*T, error) {
	if err := round.Oversized[T](pair); err != nil {
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
