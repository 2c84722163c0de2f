// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"
)

// localEtcd is the etcd on the bench: what it reports, and the buckets for its writes from now on.
type localEtcd struct {
	EtcdReading

	fsyncs, commits int
}

const metricsEvery = 30 * time.Second

// wellEtcd returns a healthy etcd with all readings.
func wellEtcd() localEtcd {
	var bounds []float64
	for b := 0.001; len(bounds) < 14; b *= 2 {
		bounds = append(bounds, b)
	}
	h := Histogram{Known: true, Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
	return localEtcd{EtcdReading: EtcdReading{
		WALFsync: h, BackendCommit: h, HasLeader: known(1), LeaderChanges: known(4), ProposalsFailed: known(7),
		SlowApplies: known(20), HeartbeatFailures: known(2),
		DBSize: known(1.2 * (1 << 30)), DBInUse: known(1 << 30), Quota: known(2 << 30),
		Alarms: known(0), OwnSize: known(1.2 * (1 << 30)), SmallestSize: known(1 << 30),
		Version: "3.6.16", FarthestRTT: known(0.004), Settings: EtcdSettings{Known: true}, Requests: answering(),
		Hashes:       sameData(),
		Certificates: certificatesWith(90 * day),
	}}
}

// asked queries the simulated etcd if a reading is due. etcd has written 1000 times since the last reading.
func (m *localEtcd) asked(now time.Duration) {
	if !m.WALFsync.Known || now-m.At < metricsEvery {
		return
	}
	m.At = now
	for h, bucket := range map[*Histogram]int{&m.WALFsync: m.fsyncs, &m.BackendCommit: m.commits} {
		h.Counts = slices.Clone(h.Counts) // a copy, because the judge keeps the previous reading
		h.Counts[bucket] += 1000
	}
}

// Indexes of the histogram buckets that the simulated writes fall into.
const (
	over4ms  = 3
	over8ms  = 4
	over16ms = 5
	over32ms = 6
)

// etcdEdges walks the rules of the checks of the local etcd.
func etcdEdges() []edge {
	set := func(f func(m *localEtcd), span time.Duration) func(*bench) {
		return func(b *bench) {
			f(&b.etcd)
			b.each(span, quiet)
		}
	}
	then := func(all ...func(*bench)) func(*bench) {
		return func(b *bench) {
			for _, do := range all {
				do(b)
			}
		}
	}
	nothing := func(*localEtcd) {}
	const minute, second = time.Minute, time.Second
	count := func(of func(*localEtcd) *Figure) func(n float64) func(*localEtcd) {
		return func(n float64) func(*localEtcd) { return func(m *localEtcd) { of(m).Value += n } }
	}
	leaders := count(func(m *localEtcd) *Figure { return &m.LeaderChanges })
	failed := count(func(m *localEtcd) *Figure { return &m.ProposalsFailed })
	applies := count(func(m *localEtcd) *Figure { return &m.SlowApplies })
	late := count(func(m *localEtcd) *Figure { return &m.HeartbeatFailures })
	rises := func(when string, n func(float64) func(*localEtcd), limit float64) edge {
		return edge{when, set(n(limit), minute), set(n(1), second)}
	}
	falls := func(when string, n func(float64) func(*localEtcd), limit float64) edge {
		return edge{when, then(set(n(limit+1), second), set(nothing, 15*minute-second)), set(nothing, second)}
	}
	alarms := func(n float64) func(*localEtcd) {
		return func(m *localEtcd) {
			m.Alarms, m.Errors = known(n), slices.Repeat([]string{"alarm:NOSPACE"}, int(n))
		}
	}
	release := func(version string) func(*localEtcd) { return func(m *localEtcd) { m.Version = version } }
	flag := func(name, value string) func(*localEtcd) {
		return func(m *localEtcd) { m.Settings = EtcdSettings{Known: true, Flags: map[string]string{name: value}} }
	}
	far := func(rtt float64) func(*localEtcd) { return func(m *localEtcd) { m.FarthestRTT = known(rtt) } }
	times := func(n float64) func(*localEtcd) {
		return func(m *localEtcd) { m.SmallestSize = known(m.OwnSize.Value / n) }
	}
	led := func(n float64) func(*localEtcd) { return func(m *localEtcd) { m.HasLeader = known(n) } }
	return slices.Concat([]edge{
		{
			"the member has no leader", then(set(led(1), minute), set(led(0), noLeaderFor-second)),
			set(nothing, second),
		},
		{
			"the member has a leader", then(set(led(0), second), set(led(1), minute-second)),
			set(nothing, second),
		},
		rises("leader changes over 3", leaders, 3), falls("leader changes at most 1", leaders, 1),
		rises("failed proposals over 5", failed, 5), falls("failed proposals at most 0", failed, 0),
		rises("requests that took over 100 ms over 50", applies, 50),
		falls("requests that took over 100 ms at most 10", applies, 10),
		rises("late heartbeats over 5", late, 5), falls("late heartbeats at most 0", late, 0),
		{"etcd reports an alarm", set(alarms(0), minute), set(alarms(1), second)},
		{
			"etcd reports no alarm",
			then(set(alarms(1), minute), set(alarms(0), minute-second)), set(nothing, second),
		},
		{
			"database size over 3",
			then(set(times(3), minute), set(times(3.1), 60*minute-second)), set(nothing, second),
		},
		{
			"database size at most 2",
			then(set(times(2.1), minute), set(times(2), minute-second)), set(nothing, second),
		},
		{
			"patch releases behind the first fixed release of its minor version over 0", set(release("3.6.14"), minute),
			set(release("3.6.13"), second),
		},
		{
			"patch releases behind the first fixed release of its minor version at most 0",
			then(set(release("3.6.13"), minute), set(release("3.6.14"), minute-second)), set(nothing, second),
		},
		{"a setting is risky", set(flag("max-wals", "1"), minute), set(flag("max-wals", "0"), second)},
		{
			"no setting is risky",
			then(set(flag("max-wals", "0"), minute), set(flag("max-wals", "5"), minute-second)), set(nothing, second),
		},
		{
			"round-trip time to the farthest voter over 50 %",
			then(set(far(0.050), minute), set(far(0.051), 10*minute-second)), set(nothing, second),
		},
		{
			"round-trip time to the farthest voter at most 40 %",
			then(set(far(0.041), minute), set(far(0.040), 10*minute-second)), set(nothing, second),
		},
	}, quotaEdges(), certificateEdges(),
		writeEdges("p99 of etcd's WAL fsync", "etcd-fsync", [3]int{over8ms, over16ms, over4ms},
			func(m *localEtcd) *int { return &m.fsyncs }),
		writeEdges("p99 of etcd's backend commit", "etcd-commit", [3]int{over16ms, over32ms, over8ms},
			func(m *localEtcd) *int { return &m.commits }))
}

// writeEdges walks the rules of the check of one of etcd's histograms. buckets are the worst that is still fine, the
// first that is not, and the worst that ends the finding.
func writeEdges(what, name string, buckets [3]int, of func(*localEtcd) *int) []edge {
	figure := func(b *bench) Figure {
		i := slices.IndexFunc(b.j.checks, func(c *check) bool { return c.Name == name })
		return b.j.checks[i].evidence.(*level).figure
	}
	until := func(b *bench, holds func() bool) {
		for range 3600 {
			if holds() {
				return
			}
			b.each(time.Second, quiet)
		}
		b.t.Fatalf("%s stays at %+v", what, figure(b))
	}
	turns := func(b *bench, bucket int) {
		*of(&b.etcd) = bucket
		was := figure(b)
		until(b, func() bool { return figure(b) != was })
	}
	return []edge{
		{
			what + " over",
			func(b *bench) {
				*of(&b.etcd) = buckets[0]
				b.each(2*etcdWritesSpan, quiet)
				turns(b, buckets[1])
				b.each(etcdWritesBad-2*time.Second, quiet)
			},
			func(b *bench) { b.each(time.Second, quiet) },
		},
		{
			what + " at most",
			func(b *bench) {
				*of(&b.etcd) = buckets[0]
				b.each(2*etcdWritesSpan, quiet)
				turns(b, buckets[2])
				b.each(etcdWritesSpan-2*time.Second, quiet)
			},
			func(b *bench) { b.each(time.Second, quiet) },
		},
	}
}

func quotaEdges() []edge {
	sized := func(part float64) func(*bench) {
		return func(b *bench) {
			b.etcd.DBSize.Value = part * b.etcd.Quota.Value
			b.each(time.Second, quiet)
		}
	}
	grows := func(b *bench, halfHours int) {
		for range halfHours {
			b.now += 30 * time.Minute
			b.etcd.DBInUse.Value += 10 << 20 // half a GiB a day
			b.look()
		}
	}
	return []edge{
		{"quota used over 80 %", sized(0.8), sized(0.801)},
		{"quota used at most 70 %, and", sized(0.701), sized(0.7)},
		{
			"quota used at most 70 %, but time until the quota is reached below 5 days",
			func(b *bench) {
				sized(0.701)(b)
				grows(b, 13)
				i := slices.IndexFunc(b.j.checks, func(c *check) bool { return c.Name == "etcd-quota" })
				b.j.checks[i].Code = EtcdQuotaLow
			},
			sized(0.7),
		},
		{
			"time until the quota is reached below 3 days",
			func(b *bench) { grows(b, 11) }, func(b *bench) { grows(b, 1) },
		},
	}
}

// weather changes etcd at random. It never lowers a counter.
func (m *localEtcd) weather(chance func(percent int) bool) {
	m.fsyncs, m.commits = 0, 0
	if chance(30) {
		m.fsyncs = over16ms
	}
	if chance(30) {
		m.commits = over32ms
	}
	for _, f := range []*Figure{&m.LeaderChanges, &m.ProposalsFailed, &m.SlowApplies, &m.HeartbeatFailures} {
		if chance(10) {
			f.Value += 60
		}
	}
	m.DBSize, m.Certificates = known(1<<30), certificatesWith(90*day)
	m.Alarms, m.Errors = known(0), nil
	if chance(10) {
		m.DBSize = known(1.9 * (1 << 30))
	}
	for _, left := range []time.Duration{20 * day, 3 * day, 0} {
		if chance(10) {
			m.Certificates = certificatesWith(left)
		}
	}
	m.Requests = answering()
	if chance(5) {
		m.Requests = unanswered(2, 2)
	}
	m.Hashes = sameData()
	for _, other := range []HashesReading{differentData(1), differentData(2)} {
		if chance(10) {
			m.Hashes = other
		}
	}
	m.Version, m.Settings, m.HasLeader = "3.6.16", EtcdSettings{Known: true}, known(1)
	if chance(10) {
		m.HasLeader = known(0)
	}
	if chance(10) {
		m.Version, m.Settings.Flags = "3.5.2", map[string]string{"auto-tls": "true"}
	}
	if chance(10) {
		m.Alarms, m.Errors = known(1), []string{"alarm:NOSPACE"}
	}
}
