// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/poll"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

// judge passes the probe's measurements to package health. It saves the health state in the runtime directory, which
// survives a restart of the agent but not a reboot.
//
// It uses the probe's clock.
type judge struct {
	opt   Options
	log   *slog.Logger
	shown poll.Poller[health.CertificateReading]
	shows []string // the URLs whose certificates are checked

	answered map[uint64]bool // the members that answered in the last round
	returned time.Duration   // when a member last started to answer again

	health *health.Judge
	now    func() time.Duration

	saved     time.Duration
	unsaved   bool
	completed uint64        // flushes that the block device had completed at the last reading
	progress  time.Duration // when completed last changed while a write of the probe was in flight
	etcd      poll.Poller[health.EtcdReading]
	peers     peers
	writes    peerWrites
	asks      requests
	learned   history
}

// saveEvery is the interval between two saves of a health state that does not change.
const saveEvery = 10 * time.Second

func newJudge(opt Options) (*judge, error) {
	j := &judge{opt: opt, log: opt.Logger, now: opt.Monotonic}
	limits := thresholds(opt)
	data, err := opt.Local.Health()
	if err == nil {
		if j.health, err = health.Restore(data, limits, opt.BootID, j.now()); err == nil {
			j.loadHistory()
			return j, nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, health.ErrOtherBoot) {
		j.log.Warn("cannot load the saved health state; starting from UNKNOWN", "error", err)
	}
	if j.health, err = health.New(limits); err != nil {
		return nil, err
	}
	j.loadHistory()
	return j, nil
}

// thresholds returns the limits for the health state, from the configuration.
func thresholds(opt Options) health.Thresholds {
	c := opt.Config.Disk
	t := health.Thresholds{
		QualifySamples: c.QualifySamples, Window: c.Window, FsyncWarm: c.FsyncWarm, FsyncClear: c.FsyncClear,
		FsyncSlow: c.FsyncSlow, Stall: c.Stall, Fail: c.Fail, Starved: c.Starved, MinFree: uint64(c.MinFree),
		DirectInterval: c.DirectInterval,
	}
	if opt.ExternalChecks != nil {
		t.ExternalChecks = opt.ExternalChecks.List(func(name string) health.Gate {
			return gatesOf(opt.Config.Checks, name)
		})
	}
	return t
}

// gatesOf returns the steps that a finding of this external check blocks.
func gatesOf(c config.Checks, name string) (g health.Gate) {
	for gate, names := range map[health.Gate][]string{
		health.Joins: c.Joins, health.Leadership: c.Leadership, health.Maintenance: c.Maintenance,
	} {
		if slices.Contains(names, name) {
			g |= gate
		}
	}
	return g
}

// observe evaluates a reading. member reports whether this host holds a member.
func (j *judge) observe(ctx context.Context, r *round.Round, member bool) health.Assessment {
	if j.opt.ExternalChecks != nil {
		r.ExternalChecks = j.opt.ExternalChecks.Read(ctx)
	}
	in := health.Input{
		Now: j.now(), Member: member, Disk: j.reading(r.Reading), Etcd: j.local(ctx, r), Network: j.network(r),
		Protected: j.opt.Config.Disk.ProtectedCache,
		Shared:    sharedReading(r, j.opt.Config.Host, j.opt.BootID),
		Discovery: j.discovered(r), ExternalChecks: r.ExternalChecks, Peers: j.peerWrites(r), Wall: r.Wall,
	}
	for _, source := range j.opt.Readings {
		source.fill(ctx, j.opt.Now, r.Reading.Device, &in)
	}
	assessment, changes := j.health.Observe(in)
	j.saveHistory(ctx)
	j.logAbsent(changes)
	for _, c := range changes {
		if c.NotAvailable != "" {
			continue
		}
		j.log.Info("health changed", "component", c.Component, "from", c.From, "to", c.To, "code", c.Code, "text",
			c.Text)
		j.unsaved = true
	}
	j.opt.Probe.SetBurst(policy.MeasuresInBursts(member, assessment))
	return assessment
}

// peerWrites returns what the other voters publish about their writes.
func (j *judge) peerWrites(r *round.Round) health.PeerWritesReading {
	own, _ := r.OwnMember(r.Membership, j.opt.Config.Etcd.PeerURL)
	return j.writes.read(r, j.opt.Config.Host.Name, record.MemberID(own.ID), j.now())
}

// discovered returns the last result of endpoint discovery, with the number of members.
func (j *judge) discovered(r *round.Round) health.DiscoveryReading {
	if j.opt.Discovery == nil {
		return health.DiscoveryReading{}
	}
	d := j.opt.Discovery()
	if r.Listed {
		d.Members = len(r.Membership.Members)
	}
	return d
}

// logAbsent logs which checks are not available. Checks of one component with the same reason share a log line.
func (j *judge) logAbsent(changes []health.Change) {
	for i, c := range changes {
		same := func(o health.Change) bool { return o.NotAvailable == c.NotAvailable && o.Component == c.Component }
		if c.NotAvailable == "" || slices.ContainsFunc(changes[:i], same) {
			continue
		}
		var names []string
		for _, o := range changes[i:] {
			if same(o) {
				names = append(names, o.Check)
			}
		}
		j.log.Info("check not available; ignored", "check", strings.Join(names, ", "), "component",
			c.Component, "why", c.NotAvailable)
	}
}

func (j *judge) reading(from disk.Reading) health.DiskReading {
	now := j.now()
	out := health.DiskReading{
		InFlight: from.InFlightAge, InFlightOp: from.InFlight, NextIn: max(0, min(from.NextDirect, from.NextWAL)),
		Alive: from.Alive, LastCompletion: j.lastCompletion(from, now),
	}
	for _, s := range from.Samples {
		if s.Errno == 0 { // from.Failure reports the error of a failed sample
			out.Samples = append(out.Samples, s)
		}
	}
	if f := from.Failure; f != nil {
		out.Err = &health.DiskError{Op: f.Op, Errno: f.Errno, At: now - f.Age}
	}
	if u := from.Usage; u != nil {
		out.Free, out.Total, out.UsageAge = u.Free, u.Total, u.Age
		out.Inodes, out.InodesFree = u.Inodes, u.InodesFree
	}
	return out
}

// lastCompletion returns when the block device last completed a flush while a write of the probe was in flight. A
// device that completes flushes does not hang.
func (j *judge) lastCompletion(from disk.Reading, now time.Duration) time.Duration {
	if j.opt.BlockProgress == nil || from.Device == 0 {
		return 0
	}
	p, err := j.opt.BlockProgress(from.Device)
	if err != nil {
		return 0
	}
	done := p.Flushes // not writes, because a drive with a hanging flush may still accept writes into its cache
	if done != j.completed && from.InFlight != disk.OpNone {
		j.progress = now
	}
	j.completed = done
	return j.progress
}

// save writes the health state to a file: always if force is set, otherwise after a change and periodically.
func (j *judge) save(force bool) {
	now := j.now()
	if !force && !j.unsaved && now-j.saved < saveEvery {
		return
	}
	data, err := j.health.Snapshot(j.opt.BootID)
	if err == nil {
		err = j.opt.Local.SaveHealth(append(data, '\n'))
	}
	if err != nil {
		j.log.Warn("cannot save the health state; a restarted agent would start from an older one or UNKNOWN",
			"error", err)
	}
	j.saved, j.unsaved = now, false
}
