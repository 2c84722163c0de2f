// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
)

// Metrics are the agent's Prometheus metrics. A scrape triggers no measurement: it reads values in memory, and computes
// ages from timestamps.
type Metrics struct {
	fsync      *prometheus.HistogramVec
	steps      *prometheus.CounterVec
	refusals   *prometheus.CounterVec
	operations *prometheus.CounterVec
	rounds     prometheus.Histogram

	probe disk.Prober
	now   func() time.Duration
	last  atomic.Pointer[round.Round]
	ended atomic.Int64 // time since boot at the end of the last round
}

// FsyncBuckets returns the bounds of the fsync histogram in seconds: 0.125 ms to 8.192 s. They include all bounds of
// etcd_disk_wal_fsync_duration_seconds (1 ms to 8.192 s, doubling), so that the two can be compared in one graph.
func FsyncBuckets() []float64 { return prometheus.ExponentialBuckets(0.000125, 2, 17) }

// NewMetrics returns the metrics, for a registry. A scrape reads the write in flight from probe.
func NewMetrics(probe disk.Prober, now func() time.Duration) *Metrics {
	m := &Metrics{
		probe: probe, now: now,
		fsync: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quorumd_disk_fsync_duration_seconds",
			Help: "Time until a probe write was durable, by lane: wal appends as etcd does, direct " +
				"bypasses the page cache.",
			Buckets: FsyncBuckets(), NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
			NativeHistogramMinResetDuration: time.Hour,
		}, []string{"lane"}),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quorumd_steps_total", Help: "Steps attempted, by step and result.",
		}, []string{"step", "result"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quorumd_refusals_total",
			Help: "Number of times that a reason became the main reason for taking no step.",
		}, []string{"reason"}),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quorumd_operations_total", Help: "Operations ended by this agent, by outcome.",
		}, []string{"outcome"}),
		rounds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "quorumd_loop_round_duration_seconds", Help: "Duration of a round of the loop.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}),
	}
	for _, lane := range []disk.Lane{disk.LaneDirect, disk.LaneWAL} { // every series must exist from the start
		m.fsync.WithLabelValues(lane.String())
	}
	for _, info := range policy.Steps() {
		m.steps.WithLabelValues(string(info.Kind), record.StepOK)
		m.steps.WithLabelValues(string(info.Kind), record.StepError)
	}
	for _, info := range policy.Reasons() {
		m.refusals.WithLabelValues(string(info.Code))
	}
	m.operations.WithLabelValues(string(policy.Joined))
	return m
}

// Refused counts a reason that has become the first reason why no step is taken.
func (m *Metrics) Refused(code policy.ReasonCode) { m.refusals.WithLabelValues(string(code)).Inc() }

// operation counts an operation that this agent has completed.
func (m *Metrics) operation(outcome policy.ReasonCode) {
	m.operations.WithLabelValues(string(outcome)).Inc()
}

// Round sets the round from which the metrics are read, and records its fsync samples and its duration.
func (m *Metrics) Round(r *round.Round, took time.Duration) {
	for _, s := range r.Reading.Samples {
		if s.Errno == 0 {
			m.fsync.WithLabelValues(s.Lane.String()).Observe(s.Latency.Seconds())
		}
	}
	m.rounds.Observe(took.Seconds())
	m.last.Store(r)
	m.ended.Store(int64(m.now()))
}

// gauge declares a metric that is read from the last round.
type gauge struct {
	name, help string
	labels     []string
	read       func(m *Metrics, r *round.Round, emit func(value float64, labels ...string))
}

// gauges declares all gauges. If a measured value is unknown, its series is absent rather than zero.
func gauges() []gauge {
	return slices.Concat(hostGauges(), externalCheckGauges(), operationGauges(), clusterGauges(), backupGauges(),
		restoreGauges(), networkGauges(), requestGauges())
}

// hostGauges are the metrics of this agent and this host.
func hostGauges() []gauge {
	return []gauge{
		{
			"quorumd_disk_inflight_seconds", "Age of the probe's write in flight; 0 if there is none.",
			nil,
			func(m *Metrics, _ *round.Round, emit func(float64, ...string)) {
				age, _ := m.probe.InFlight()
				emit(age.Seconds())
			},
		},
		{
			"quorumd_loop_age_seconds", "Time since the last round of the loop ended.", nil,
			func(m *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil {
					emit((m.now() - time.Duration(m.ended.Load())).Seconds())
				}
			},
		},
		{
			"quorumd_readings_hung", "Readings of this host that are long overdue.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil {
					emit(float64(r.Hung))
				}
			},
		},
		{
			"quorumd_records_unreadable",
			"Number of unreadable quorumd records in etcd; host records are counted only up to 100.",
			nil,
			readUnreadable,
		},
		{
			"quorumd_health_state", "1 for the health state of this host, 0 for all other states.",
			[]string{"state"},
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				now := health.Unknown
				if r != nil {
					now = r.Assessment.State
				}
				for state := health.Unknown; state <= health.Failed; state++ {
					emit(truth(state == now), state.String())
				}
			},
		},
		{
			"quorumd_health_qualified", "1 if this host has passed its qualification.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				emit(truth(r != nil && r.Assessment.Qualified))
			},
		},
		{
			"quorumd_finding", "1 while this finding is active on this host, even if there are worse ones.",
			[]string{"code", "component"},
			readFindings,
		},
		{
			"quorumd_finding_muted", "1 while this finding is muted on this host, active or not.",
			[]string{"code"},
			readMuted,
		},
		{"quorumd_host_info", "1, with the name of this host as a label.", []string{"host"}, readHost},
		{"quorumd_host_retired", "1 if an operator has retired this host.", nil, readRetired},
		{"quorumd_role", "1 for the role of this host, 0 for all other roles.", []string{"role"}, readRole},
	}
}

// operationGauges are the metrics of the lock, of the operation in flight, and of the reasons that block this host.
func operationGauges() []gauge {
	return []gauge{
		{
			"quorumd_lock_held", "1 if this agent holds the lock.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				emit(truth(r != nil && r.View.Lock.Mine))
			},
		},
		{
			"quorumd_operation_in_flight", "1 if an operation is in flight in the cluster, by kind and phase.",
			[]string{"kind", "phase"},
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.View.Op != nil {
					emit(1, r.View.Op.Kind, string(r.View.Op.Phase))
				}
			},
		},
		{
			"quorumd_operation_host", "1 for the host of the operation in flight.",
			[]string{"host"},
			readOperated,
		},
		{
			"quorumd_operation_age_seconds", "Age of the operation in flight, as seen by this agent.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.View.Op != nil {
					emit(r.View.Op.Elapsed.Seconds())
				}
			},
		},
		{
			"quorumd_operation_overdue",
			"1 while the operation in flight exceeds its announced duration; every host reports it, even if the " +
				"host in question is down.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				emit(truth(r != nil && r.View.Op != nil && r.View.Op.Overdue))
			},
		},
		{
			"quorumd_maintenance", "1 while this host has a request for maintenance, by type of work.",
			[]string{"work"},
			readMaintenance,
		},
		{
			"quorumd_maintenance_overdue", "1 while the maintenance of this host exceeds its announced " +
				"duration.", nil,
			readOverdue,
		},
		{
			"quorumd_rollout", "1 for the state of the cluster's rollout, if there is one.",
			[]string{"state"},
			readRollout,
		},
		{
			"quorumd_reason",
			"1 for the main reason why this host takes no step, and for each reason that needs an operator.",
			[]string{"reason"},
			readReason,
		},
		{
			"quorumd_paused", "1 while the cluster is paused.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				emit(truth(r != nil && r.View.Pause != nil))
			},
		},
	}
}

// clusterGauges are the metrics of the cluster as last observed by this agent.
func clusterGauges() []gauge {
	return []gauge{
		{
			"quorumd_cluster_reachable", "1 if a voter answered in the last round.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				emit(truth(r != nil && r.View.Cluster.Reachable))
			},
		},
		{
			"quorumd_cluster_age_seconds",
			"Time since this agent last queried etcd; a minute or more on a spare in a large fleet.", nil,
			readClusterAge,
		},
		{"quorumd_hosts_age_seconds", "Time since this agent last read the records of all hosts.", nil, readHostsAge},
		{
			"quorumd_idle", "1 while this host is a spare with others ahead of it, and so queries etcd " +
				"rarely.", nil,
			readResting,
		},
		{
			"quorumd_cluster_voters",
			"Number of voters: all in the member list (listed), and those that answer (live).",
			[]string{"state"},
			readVoters,
		},
		{
			"quorumd_cluster_size", "How many voters the cluster should have: as last resized by an operator, " +
				"otherwise as configured on this host.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.View.Cluster.Reachable {
					emit(float64(r.View.Target.Voters))
				}
			},
		},
		{
			"quorumd_cluster_fault_tolerance", "Fault tolerance: how many more voters may fail; negative " +
				"without a quorum.", nil,
			func(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
				if r != nil && r.View.Cluster.Reachable {
					emit(float64(policy.Tolerance(r.View.Cluster.Counts())))
				}
			},
		},
	}
}

func readFindings(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	if r == nil {
		return
	}
	for _, f := range r.Assessment.Findings {
		emit(1, string(f.Code), string(f.Component))
	}
}

func readUnreadable(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	if r != nil && r.Reachable {
		emit(float64(len(r.Unreadable)))
	}
}

func readRole(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	now := policy.RoleUnknown
	if r != nil {
		now = r.Decision.Role
	}
	for _, role := range []policy.Role{
		policy.RoleUnknown, policy.RoleSpare, policy.RoleJoining, policy.RoleStandby,
		policy.RoleLearner, policy.RoleVoter,
	} {
		emit(truth(role == now), string(role))
	}
}

func readRetired(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	if r != nil && r.View.Cluster.Reachable {
		emit(truth(slices.ContainsFunc(r.View.Retired, func(h policy.Retired) bool {
			return h.Host == r.View.Self.ID
		})))
	}
}

func readMaintenance(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	for _, work := range policy.Works() {
		emit(truth(r != nil && r.View.Asked != nil && r.View.Asked.Work == work), string(work))
	}
}

func readOverdue(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	emit(truth(r != nil && r.View.Asked != nil && r.View.Asked.Overdue))
}

func readRollout(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	if r != nil && r.Rollout != nil {
		emit(1, r.Rollout.State)
	}
}

func readReason(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	if r == nil || len(r.Decision.Reasons) == 0 {
		return
	}
	emitted := map[policy.ReasonCode]bool{}
	for _, reason := range append(r.Decision.Reasons[:1:1], r.Decision.Cautions()...) {
		if !emitted[reason.Code] {
			emit(1, string(reason.Code))
		}
		emitted[reason.Code] = true
	}
}

func readHost(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	if r != nil {
		emit(1, r.View.Self.Name)
	}
}

func readOperated(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	if r != nil && r.Op != nil {
		emit(1, r.Op.HostName)
	}
}

func readClusterAge(m *Metrics, r *round.Round, emit func(float64, ...string)) {
	if r != nil {
		emit((m.now() - r.EtcdAt).Seconds())
	}
}

func readHostsAge(m *Metrics, r *round.Round, emit func(float64, ...string)) {
	if r != nil && r.HostsAt != 0 {
		emit((m.now() - r.HostsAt).Seconds())
	}
}

func readResting(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	emit(truth(r != nil && r.View.Resting))
}

func readVoters(_ *Metrics, r *round.Round, emit func(float64, ...string)) {
	if r == nil || !r.View.Cluster.Reachable {
		return
	}
	voters, live := r.View.Cluster.Counts()
	emit(float64(voters), "listed")
	emit(float64(live), "live")
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (g gauge) desc() *prometheus.Desc { return prometheus.NewDesc(g.name, g.help, g.labels, nil) }

// Describe sends all descriptions to a registry.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(out)
	}
	for _, g := range gauges() {
		out <- g.desc()
	}
}

// Collect sends all values.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(out)
	}
	r := m.last.Load()
	for _, g := range gauges() {
		g.read(m, r, func(value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(g.desc(), prometheus.GaugeValue, value, labels...)
		})
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.fsync, m.steps, m.refusals, m.operations, m.rounds}
}
