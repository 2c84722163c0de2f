// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/disk"
)

// rule relates several keys to each other.
type rule struct {
	keys  []string // paths of its keys; a problem is reported at the first one that the file sets
	holds bool
	// message states what must be true, why, and what to do, with every key and its value.
	message string
}

// checkRules reports every violated rule. It skips a rule if one of its keys has a problem of its own.
func (d *decoder) checkRules(c *Config) {
	for _, r := range slices.Concat(d.timingRules(&c.Timing), d.diskRules(&c.Disk), maintenanceRules(c),
		d.checksRules(&c.Checks), d.repairRules(c), d.spaceRules(&c.Space), d.backupRules(&c.Backup), bootstrapRules(c),
		d.urlRules(c), d.pathRules(c)) {
		unusable := slices.ContainsFunc(r.keys, func(path string) bool { return d.bad[path] })
		if r.holds || unusable {
			continue
		}
		blamed := r.keys[0]
		for _, path := range slices.Backward(r.keys) {
			if d.setAt[path] > 0 {
				blamed = path
			}
		}
		d.addRule(blamed, d.setAt[blamed], r.message)
	}
}

// show returns a key with its value, and marks a default, because the file does not show it to the operator.
func (d *decoder) show(path string, value any) string {
	if v, ok := value.(time.Duration); ok {
		value = durationfmt.Parseable(v)
	}
	if d.setAt[path] > 0 {
		return fmt.Sprintf("%s (%v)", path, value)
	}
	return fmt.Sprintf("%s (%v, the default)", path, value)
}

func (d *decoder) checksRules(k *Checks) []rule {
	return []rule{{
		[]string{"checks.timeout", "checks.interval"},
		k.Timeout <= k.Interval,
		d.show("checks.timeout", k.Timeout) + " must be at most " + d.show("checks.interval", k.Interval) +
			", because a program is not started again before it has ended; lower timeout or raise interval",
	}}
}

func (d *decoder) timingRules(t *Timing) []rule {
	show := func(name string, value any) string { return d.show("timing."+name, value) }
	keys := func(names ...string) []string {
		for i := range names {
			names[i] = "timing." + names[i]
		}
		return names
	}
	interval, renew := show("interval", t.Interval), show("renewEvery", t.RenewEvery)
	giveUp, margin := show("renewGiveUp", t.RenewGiveUp), show("stepMargin", t.StepMargin)
	ttl, call := show("lockTTL", t.LockTTL), show("callTimeout", t.CallTimeout)
	return []rule{
		{
			keys("renewEvery", "renewGiveUp"), 2*t.RenewEvery < t.RenewGiveUp,
			renew + " must be less than half of " + giveUp +
				", so that one failed renewal does not stop the holder; lower renewEvery or raise renewGiveUp",
		},
		{
			keys("renewGiveUp", "stepMargin", "lockTTL"), t.RenewGiveUp+t.StepMargin < t.LockTTL,
			giveUp + " and " + margin + " together must be less than " + ttl +
				", so that a holder stops before its lock expires; raise lockTTL or lower the others",
		},
		{
			keys("callTimeout", "stepMargin", "renewEvery", "lockTTL"),
			3*t.CallTimeout+t.StepMargin+t.RenewEvery <= t.LockTTL/10*9,
			"three times " + call + ", " + margin + " and " + renew + " together must be at most nine tenths of " +
				ttl + ", so that a step ends before the lock expires; raise lockTTL or lower the others",
		},
		{
			keys("interval", "renewEvery"), t.Interval <= t.RenewEvery,
			interval + " must be at most " + renew +
				", because each round of the loop renews the lock at most once; lower interval or raise renewEvery",
		},
		{
			keys("orphanGrace", "lockTTL"), t.OrphanGrace >= 2*t.LockTTL,
			show("orphanGrace", t.OrphanGrace) + " must be at least twice " + ttl +
				", because an election in etcd extends the lock by its full TTL; raise timing.orphanGrace, or delete " +
				"the line to use the default",
		},
		{
			keys("hostRecordTTL", "interval"), t.HostRecordTTL >= 4*t.Interval,
			show("hostRecordTTL", t.HostRecordTTL) + " must be at least four times " + interval +
				", so that one slow round does not let the record expire; raise hostRecordTTL or lower interval",
		},
		{
			keys("promoteStable", "steadyLag"), t.PromoteStable >= t.SteadyLag,
			show("promoteStable", t.PromoteStable) + " must be at least " + show("steadyLag", t.SteadyLag) +
				", because the lag must stay small for steadyLag within promoteStable; raise promoteStable or " +
				"lower steadyLag",
		},
		{
			keys("learnerStall", "learnerMax"), t.LearnerStall < t.LearnerMax,
			show("learnerStall", t.LearnerStall) + " must be less than " + show("learnerMax", t.LearnerMax) +
				", or it never takes effect; lower learnerStall or raise learnerMax",
		},
		{
			keys("transferTimeout", "interval", "callTimeout"), t.TransferTimeout >= t.Interval+2*t.CallTimeout,
			show("transferTimeout", t.TransferTimeout) + " must be at least " + interval + " and twice " + call +
				" together, or the other voters' reports before a stop are stale when they arrive; raise " +
				"transferTimeout or lower the others",
		},
		{
			keys("transferInterval", "interval", "callTimeout"),
			t.TransferInterval >= t.Interval+t.CallTimeout && t.TransferInterval <= MaxTransferInterval,
			show("transferInterval", t.TransferInterval) + " must be at least " + interval + " and " + call +
				" together, and at most " + durationfmt.Parseable(MaxTransferInterval) +
				", because it doubles with each transfer",
		},
		{
			keys("joinBackoff"), t.JoinBackoff <= MaxJoinBackoff,
			show("joinBackoff", t.JoinBackoff) + " must be at most " + durationfmt.Parseable(MaxJoinBackoff) +
				", because the wait, which doubles each time, stops growing there; lower it",
		},
		{
			keys("lockTTL"), t.LockTTL >= 2*time.Second && t.LockTTL%time.Second == 0,
			ttl + " must be whole seconds and at least 2s, because etcd counts leases in seconds; write for example " +
				"30s",
		},
		{
			keys("hostRecordTTL"), t.HostRecordTTL%time.Second == 0,
			show("hostRecordTTL", t.HostRecordTTL) +
				" must be whole seconds, because etcd counts leases in seconds; write for example 60s",
		},
	}
}

// diskRules require that the limits for an fsync rise from fsyncClear to fail, that the probe does not wear out the
// disk, and that a qualifying run fills the window.
func (d *decoder) diskRules(k *Disk) []rule {
	limits := []struct {
		path  string
		value time.Duration
	}{
		{"disk.fsyncClear", k.FsyncClear},
		{"disk.fsyncWarm", k.FsyncWarm},
		{"disk.fsyncSlow", k.FsyncSlow},
		{"disk.stall", k.Stall},
		{"disk.fail", k.Fail},
	}
	var rules []rule
	for i, high := range limits[1:] {
		low := limits[i]
		rules = append(rules, rule{
			[]string{low.path, high.path},
			low.value < high.value,
			d.show(low.path, low.value) + " must be less than " + d.show(high.path, high.value) +
				", because the limits rise in the order fsyncClear, fsyncWarm, fsyncSlow, stall, fail; lower " +
				low.path + " or raise " + high.path,
		})
	}
	for _, lane := range []struct {
		path  string
		value time.Duration
	}{{"disk.directInterval", k.DirectInterval}, {"disk.walInterval", k.WALInterval}} {
		rules = append(rules, rule{
			[]string{lane.path},
			lane.value >= disk.MinInterval,
			d.show(lane.path, lane.value) + " must be at least " + durationfmt.Parseable(disk.MinInterval) +
				", or the probe wears out the disk; raise it",
		})
	}
	return append(rules, rule{
		[]string{"disk.qualifySamples", "disk.window"},
		k.QualifySamples >= k.Window,
		d.show("disk.qualifySamples", k.QualifySamples) + " must be at least " + d.show("disk.window", k.Window) +
			", the number of samples behind one health state; raise qualifySamples or lower window",
	})
}

// maintenanceRules require a window if quorumd may request reboots or defragmentations automatically.
func maintenanceRules(c *Config) []rule {
	m := &c.Maintenance
	return []rule{{
		[]string{"maintenance.windows", "space.defrag"},
		c.Space.Defrag != DefragWindows || len(m.Windows) > 0,
		"maintenance.windows is empty, but space.defrag is windows; add a window, such as \"Mon..Fri 02:00-04:00\", " +
			"or set space.defrag: off",
	}, {
		[]string{"maintenance.windows", "maintenance.autoReboot"},
		!m.AutoReboot || len(m.Windows) > 0,
		"maintenance.windows is empty, but maintenance.autoReboot is true and requests a reboot only in a window; " +
			"add one, such as \"Mon..Fri 02:00-04:00\", or remove autoReboot",
	}}
}

// minGrace is the minimum of repair.dead and repair.unhealthy. Each voter's host needs about that long to check another
// voter often enough to report it dead.
const minGrace = 30 * time.Second

// maxCleanFor is the longest time that the policy makes an ejected host wait before it may join again.
const maxCleanFor = 24 * time.Hour

// maxRetain is the maximum of space.retain. An agent may free space only for a limited time. During that time it has to
// wait until revisions are this old, and then act; see policy.PermitValid.
const maxRetain = 10 * time.Minute

// spaceRules require that a compaction is possible while an agent may free space.
func (d *decoder) spaceRules(s *Space) []rule {
	return []rule{{
		[]string{"space.retain"},
		s.Retain <= maxRetain,
		d.show("space.retain", s.Retain) + " must be at most " + durationfmt.Parseable(maxRetain) +
			", because an agent may free space only for a limited time; lower it",
	}}
}

// repairRules require that no voter is replaced too soon, and that repair.cleanFor is at most maxCleanFor.
func (d *decoder) repairRules(c *Config) []rule {
	dead, ttl := c.Repair.Dead, c.Timing.HostRecordTTL
	return []rule{{
		[]string{"repair.dead", "timing.hostRecordTTL"},
		dead == 0 || time.Duration(dead) >= max(minGrace, 2*ttl),
		d.show("repair.dead", dead) + " must be off, or at least " + durationfmt.Parseable(minGrace) + " and twice " +
			d.show("timing.hostRecordTTL", ttl) + ", because etcd keeps the record of a silent host for " +
			"hostRecordTTL; raise dead",
	}, {
		[]string{"repair.unhealthy"},
		c.Repair.Unhealthy == 0 || time.Duration(c.Repair.Unhealthy) >= minGrace,
		d.show(
			"repair.unhealthy", c.Repair.Unhealthy,
		) + " must be off, or at least " + durationfmt.Parseable(minGrace) +
			", because a short burst of load does not make a disk unhealthy; raise it",
	}, {
		[]string{"repair.cleanFor"},
		c.Repair.CleanFor <= maxCleanFor,
		d.show("repair.cleanFor", c.Repair.CleanFor) + " must be at most " + durationfmt.Parseable(maxCleanFor) +
			", because the wait, which doubles each time, stops growing there; lower it",
	}}
}

// minRate is the minimum of backup.rate, per second. A snapshot job counts as hung only at a much lower rate.
const minRate Size = 1 << 20

// minBackupInterval is the minimum of backup.every and backup.restoreTest: it leaves time to save a large database.
const minBackupInterval = time.Minute

// backupRules require at most one store, complete S3 settings, a store for scheduled jobs, enough time between those
// jobs, and a minimum rate.
func (d *decoder) backupRules(b *Backup) []rule {
	return []rule{{
		[]string{"backup.every", "backup.store.directory"},
		b.Every == 0 || b.Store.Directory != "" || b.Store.S3 != nil,
		d.show("backup.every", b.Every) + " requests snapshots, but there is no store for them; set " +
			"backup.store.directory or backup.store.s3",
	}, {
		[]string{"backup.store.directory"},
		b.Store.Directory == "" || b.Store.S3 == nil,
		"backup.store.directory (" + b.Store.Directory + ") and backup.store.s3 are both set; remove one of the two",
	}, {
		[]string{"backup.store.s3"},
		b.Store.S3 == nil || b.Store.S3.Endpoint != "" && b.Store.S3.Bucket != "" && b.Store.S3.CredentialsFile != "",
		"backup.store.s3 needs endpoint, bucket and credentialsFile; set all three",
	}, {
		[]string{"backup.every"},
		b.Every == 0 || time.Duration(b.Every) >= minBackupInterval,
		d.show("backup.every", b.Every) + " must be off, or at least " +
			durationfmt.Parseable(minBackupInterval) + "; raise it",
	}, {
		[]string{"backup.restoreTest"},
		b.RestoreTest == 0 || time.Duration(b.RestoreTest) >= minBackupInterval,
		d.show("backup.restoreTest", b.RestoreTest) + " must be off, or at least " +
			durationfmt.Parseable(minBackupInterval) + "; raise it",
	}, {
		[]string{"backup.rate"},
		b.Rate >= minRate,
		d.show("backup.rate", b.Rate) + " is less than " + minRate.String() + "; raise it",
	}, {
		[]string{"backup.restoreTest", "backup.store.directory"},
		b.RestoreTest == 0 || b.Store.Directory != "" || b.Store.S3 != nil,
		d.show("backup.restoreTest", b.RestoreTest) + " requests restore tests, but there is no store for snapshots; " +
			"set backup.store.directory or backup.store.s3",
	}}
}
