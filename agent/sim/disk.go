// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/datadir"
	quorumddisk "github.com/quorumd/quorumd/disk"
)

// disk is the disk under a host's etcd.
type disk struct {
	host       *host
	state      diskState
	since      time.Duration
	free       uint64 // bytes
	distrusted bool   // the disk failed or hung for so long that the host stays FAILED until its next boot

	chronic   bool          // the disk stays slow until it is replaced
	slowSince time.Duration // when the disk's state became harmful; 0 if the state is harmless
	slowUntil time.Duration // when the disk's state was last harmful
	fsyncs    fsyncs
}

type diskState int

const (
	diskFine   diskState = iota
	diskWarm             // 15 ms: too slow to join
	diskSlow             // 200 ms
	diskCrawls           // 800 ms: while its host leads, no read completes in time
	diskHangs
	diskFails // every write fails
	probeDead // the disk is fine, but not measured
	probeSlow // the disk is fine, but its measurement is slow
)

func (s diskState) String() string {
	return [...]string{
		"fine", "warm", "slow", "crawling", "hanging", "failing", "not measured", "measured too slowly",
	}[s]
}

const plentyOfSpace = 100 << 30

func newDisk(h *host) *disk { return &disk{host: h, free: plentyOfSpace} }

func (d *disk) hangs() bool { return d.state == diskHangs }

// slow reports whether the disk is too slow for a leader.
func (d *disk) slow() bool { return d.state == diskSlow || d.state == diskCrawls }

// isHarmful reports whether the disk itself impairs etcd.
func (s diskState) isHarmful() bool {
	return s == diskSlow || s == diskCrawls || s == diskHangs || s == diskFails
}

func (d *disk) setState(s diskState) {
	w := d.host.world
	if d.chronic && s == diskFine {
		s = diskSlow
	}
	d.countFsyncs()
	switch {
	case s.isHarmful() && !d.state.isHarmful():
		d.slowSince = w.now()
	case !s.isHarmful() && d.state.isHarmful():
		d.slowSince, d.slowUntil = 0, w.now()
	}
	if d.state == diskFails || (d.state == diskHangs && w.now()-d.since > 25*time.Second) {
		d.distrusted = true
	}
	d.state, d.since = s, w.now()
	w.event(d.host, eventFault, uint64(s), "the disk is %s", s)
	w.updateEtcds()
}

// latency returns how long one write takes.
func (d *disk) latency(drawn uint64) time.Duration {
	const slow = 200 * time.Millisecond
	base := [...]time.Duration{
		500 * time.Microsecond, 15 * time.Millisecond, slow, 800 * time.Millisecond, 0, 0, 0, slow,
	}[d.state]
	base += time.Duration(d.host.index) * 50 * time.Microsecond
	return base + time.Duration(drawn%uint64(base/4+1))
}

// probe is one agent process's measurement of the disk.
type probe struct {
	p     *process
	disk  *disk
	began time.Duration // when the process was started
	read  time.Duration // the time up to which samples have been returned
	burst bool
	hung  time.Duration // the age of the hanging write at the last reading; 0 if none hung
}

// burstInterval is the time between two WAL samples during the qualification.
const burstInterval = 100 * time.Millisecond

// SetBurst turns the higher sampling rate of the qualification on or off.
func (pr *probe) SetBurst(on bool) { pr.burst = on }

// InFlight returns the age of a hanging write, and its operation.
func (pr *probe) InFlight() (age time.Duration, op string) {
	w := pr.disk.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	return pr.inFlight(w)
}

func (pr *probe) inFlight(w *world) (age time.Duration, op string) {
	if !pr.disk.hangs() {
		return 0, quorumddisk.OpNone
	}
	age = w.now() - max(pr.disk.since, pr.began)
	return max(age, 1), quorumddisk.OpDirect
}

// Read returns the samples since the previous reading.
func (pr *probe) Read() quorumddisk.Reading {
	w := pr.disk.host.world
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	r := quorumddisk.Reading{Alive: true, NextDirect: time.Millisecond, NextWAL: time.Millisecond, PID: 1}
	r.Usage = &quorumddisk.Usage{Total: 2 * plentyOfSpace, Free: pr.disk.free}
	switch pr.disk.state {
	case probeDead:
		pr.read = now
		return quorumddisk.Reading{}
	case diskFails:
		r.Failure = &quorumddisk.Failure{Op: quorumddisk.OpDirect, Errno: syscall.EIO, Count: 1}
		pr.read = now
		return r
	case diskHangs:
		r.InFlightAge, r.InFlight = pr.inFlight(w)
		pr.hung, pr.read = r.InFlightAge, now
		return r
	}
	c := pr.disk.host.config.Disk
	if pr.hung > 0 { // the write completed
		r.Samples = append(r.Samples, quorumddisk.Sample{
			Lane: quorumddisk.LaneDirect, End: pr.disk.since - pr.p.began,
			Latency: pr.hung,
		})
		pr.hung = 0
	}
	pr.samples(&r, quorumddisk.LaneDirect, c.DirectInterval, now)
	wal := c.WALInterval
	if pr.burst {
		wal = burstInterval
	}
	pr.samples(&r, quorumddisk.LaneWAL, wal, now)
	pr.read = now
	return r
}

// samples adds the samples of a disk lane that have become due since the last reading.
func (pr *probe) samples(r *quorumddisk.Reading, lane quorumddisk.Lane, every, now time.Duration) {
	for at := pr.read.Truncate(every) + every; at <= now; at += every {
		drawn := mix(mix(pr.disk.host.world.plan.Seed, uint64(at)), uint64(pr.disk.host.index)<<2|uint64(lane))
		r.Samples = append(r.Samples, quorumddisk.Sample{
			Lane: lane, End: at - pr.p.began,
			Latency: pr.disk.latency(drawn),
		})
	}
}

// data is the content of the data directory.
type data struct {
	host            *host
	cluster, member uint64
	leftovers       bool            // there are files, but no data of a member
	aside           int             // how many times the content was moved aside
	members         map[uint64]bool // all members whose data the host ever held, even if moved aside
}

// belongsTo reports whether the data is that member's.
func (d *data) belongsTo(m *member) bool { return d.member == m.id && d.cluster == m.etcd.clusterID }

// setMember puts the data of a member into the directory.
func (d *data) setMember(cluster, member uint64) {
	d.cluster, d.member, d.leftovers = cluster, member, false
	if d.members == nil {
		d.members = map[uint64]bool{}
	}
	d.members[member] = true
}

// agentData is an agent's access to the data directory.
type agentData struct {
	p *process
	d *data
}

var errDisk = errors.New("the disk does not answer")

// Inspect reads the directory. If the disk hangs, it returns an error at the context's deadline.
func (a agentData) Inspect(ctx context.Context) (datadir.Contents, error) {
	a.p.delay(laneData)
	w := a.d.host.world
	if err := a.hang(ctx, laneData); err != nil {
		return datadir.Contents{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return datadir.Contents{
		Empty: a.d.member == 0 && !a.d.leftovers, ClusterID: a.d.cluster, MemberID: a.d.member,
		Mount: "/var/lib/etcd",
		Free:  int64(a.d.host.disk.free), //nolint:gosec // no disk is that large
	}, nil
}

// hang returns errDisk at the context's deadline if the disk hangs.
func (a agentData) hang(ctx context.Context, l lane) error {
	w := a.d.host.world
	w.mu.Lock()
	hangs := a.d.host.disk.hangs()
	w.mu.Unlock()
	if !hangs {
		return nil
	}
	deadline, _ := ctx.Deadline() // every caller sets a deadline
	w.wait(w.moment(time.Until(deadline), a.p.host.lane(l)))
	a.p.gate(l)
	return errDisk
}

// MoveAside renames the directory's content and returns its new path.
func (a agentData) MoveAside(ctx context.Context) ([]string, error) {
	w := a.d.host.world
	w.mu.Lock()
	w.promises.beforeMove(a.p)
	w.mu.Unlock()
	a.p.gateWithTrap(laneStep, "move aside", true)
	if err := a.hang(ctx, laneStep); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.d.member == 0 && !a.d.leftovers {
		return nil, nil
	}
	if a.d.host.unit.running && a.d.member != 0 {
		return nil, errors.New("an etcd has the database open")
	}
	w.promises.checkMove(a.p)
	a.d.aside++
	w.event(a.d.host, eventUnit, uint64(a.d.aside), "the data of member %x is moved aside", a.d.member)
	a.d.cluster, a.d.member, a.d.leftovers = 0, 0, false
	return []string{fmt.Sprintf("/data/member.aside-%d", a.d.aside)}, nil
}
