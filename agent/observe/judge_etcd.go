// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/network"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// metricsEvery is the interval between two readings of the local etcd's metrics. silentEvery replaces it until that
// etcd has reported its metrics, which takes a moment after a start, and while some member accepts no connection.
// askedEvery replaces it while another host waits for the report on the connections of this host's etcd, in a round in
// which a member falls silent, and for missedKnown after a member stopped accepting connections.
const (
	metricsEvery = 30 * time.Second
	silentEvery  = 5 * time.Second
	askedEvery   = time.Second
	missedKnown  = 30 * time.Second
)

// process returns what is known about the local etcd process.
func (j *judge) process(r *round.Round, unit policy.UnitState) health.EtcdProcess {
	switch unit { //exhaustive:ignore
	case policy.UnitInactive, policy.UnitFailed:
		return health.EtcdProcess{Known: true}
	case policy.UnitActive:
		if r.UnitErr == nil && r.Unit.Since > 0 {
			return health.EtcdProcess{Known: true, Runs: true, Started: j.now() - r.Unit.Since}
		}
	}
	return health.EtcdProcess{}
}

// local returns the last metrics of this host's etcd, completed with figures from the members' statuses.
func (j *judge) local(ctx context.Context, r *round.Round) health.EtcdReading {
	unit := stateOfUnit(r)
	if unit != policy.UnitActive && unit != policy.UnitUnknown {
		j.etcd.Forget() // the counters of the next process start from zero
		j.peers = peers{}
		silent := health.NotAvailable[health.EtcdReading]("etcd does not run here")
		silent.Process = j.process(r, unit)
		silent.Certificates, silent.Requests = j.certificates(ctx, r), j.requests(ctx, r, unit)
		silent.Hashes = r.Hashes
		return silent
	}
	seen := j.metrics(ctx, r)
	seen.Process = j.process(r, unit)
	if j.opt.EtcdMetrics != nil {
		j.peers.read(seen)
		r.Connections = j.peers.connections(j.now(), j.opt.Now(), j.opt.Config.Timing.Interval)
	}
	seen.Alarms, seen.OwnSize, seen.SmallestSize = health.Figure{}, health.Figure{}, health.Figure{}
	seen.FarthestRTT, seen.Certificates = health.Figure{}, j.certificates(ctx, r)
	seen.Requests, seen.Hashes = j.requests(ctx, r, unit), r.Hashes
	own, listed := r.OwnMember(r.Membership, j.opt.Config.Etcd.PeerURL)
	if s, answered := answer(r.Statuses, own.ID); listed && answered {
		seen.Errors = alarms(s.Errors)
		seen.Alarms = known(float64(len(seen.Errors)))
		seen.OwnSize, seen.SmallestSize = known(float64(s.DBSize)), smallest(r, own.ID)
		if own.Learner {
			seen.OwnSize = health.Figure{Absent: "etcd does not defragment learners"}
		}
		seen.Version, seen.FarthestRTT = s.Version, farthest(r, own.ID)
	}
	return seen
}

// alarms returns the errors that etcd reports. It leaves out a missing leader: elections end by themselves, and
// frequent leader changes are a separate finding.
func alarms(errors []string) (all []string) {
	for _, text := range errors {
		if !strings.Contains(text, "no leader") {
			all = append(all, text)
		}
	}
	return all
}

// metrics reads the metrics of this host's etcd in the background, and returns the last result.
func (j *judge) metrics(ctx context.Context, r *round.Round) health.EtcdReading {
	if j.opt.EtcdMetrics == nil {
		return health.EtcdReading{}
	}
	last, _, looked := j.etcd.Get(j.opt.Now(), metricsEvery)
	// another host asks which members are connected, or waits until its own member is connected
	asked := j.opt.Now()-j.etcd.Age(j.opt.Now()) < r.AskedSince ||
		r.AsksConnections()
	every := metricsPace(r, asked, last, looked)
	j.etcd.Refresh(ctx, j.opt.Now, every, lookTimeout, func(ctx context.Context) (health.EtcdReading, error) {
		at := j.now()
		seen := j.opt.EtcdMetrics(ctx)
		if seen.At = at; j.opt.EtcdSettings != nil {
			seen.Settings = j.opt.EtcdSettings(r.Unit.PID)
		}
		return seen, nil
	})
	now := j.opt.Now()
	seen, _, fresh := j.etcd.Get(now, maxAge*metricsEvery)
	if !fresh && j.etcd.Age(now) < math.MaxInt64 {
		return health.NotAvailable[health.EtcdReading]("etcd has not answered for a while")
	}
	return seen
}

// metricsPace returns the interval between two readings of the local etcd's metrics. looked means that there is a last
// reading.
func metricsPace(r *round.Round, asked bool, last health.EtcdReading, looked bool) time.Duration {
	missed := func(s network.Reading) bool { return s.Missed }
	lately := func(s network.Reading) bool { return s.Missed && r.At-s.MissedAt <= missedKnown }
	switch {
	case asked, r.FellSilent, slices.ContainsFunc(r.Probes, lately):
		return askedEvery
	case looked && !last.HasLeader.Known, slices.ContainsFunc(r.Probes, missed):
		return silentEvery
	}
	return metricsEvery
}

// smallest returns the size of the smallest database among the other voters.
func smallest(r *round.Round, own uint64) health.Figure {
	least := health.Figure{Absent: "no other voter reports the size of its database"}
	for _, m := range r.Membership.Members {
		s, answered := answer(r.Statuses, m.ID)
		if size := known(float64(s.DBSize)); answered && m.ID != own && !m.Learner &&
			(!least.Known || size.Value < least.Value) {
			least = size
		}
	}
	return least
}

// farthest returns the longest response time among the other voters, in seconds.
func farthest(r *round.Round, own uint64) health.Figure {
	most := health.Figure{Absent: "no other voter answers"}
	for _, m := range r.Membership.Members {
		if s, answered := answer(r.Statuses, m.ID); answered && m.ID != own && !m.Learner {
			most = known(max(most.Value, s.RTT.Seconds()))
		}
	}
	return most
}

// answer returns the status of a member, and false if the member reported no usable status.
func answer(all map[uint64]cluster.Status, id uint64) (cluster.Status, bool) {
	s, asked := all[id]
	return s, asked && s.Err == nil && s.MemberID == id && s.DBSize >= 0
}

func known(value float64) health.Figure { return health.Figure{Value: value, Known: true} }

// certificatesEvery is the interval between two checks of the certificates. expiredEvery replaces it while one of
// them has expired, because an operator is likely to renew it soon, and after a silent member has answered again.
const (
	certificatesEvery = 10 * time.Minute
	expiredEvery      = 15 * time.Second
)

// certificates checks the certificates that connections to etcd depend on, in the background, and returns the last
// result. Every host checks its own files. A host with a member also checks the certificates that all members present
// to clients and peers.
func (j *judge) certificates(ctx context.Context, r *round.Round) health.CertificateReading {
	if j.opt.Certificates == nil {
		return health.CertificateReading{}
	}
	if urls := j.membersURLs(r); !slices.Equal(urls, j.shows) {
		j.shows = urls
		j.shown.Forget()
	}
	urls, every := j.shows, certificatesEvery
	if j.hasReturned(r) {
		j.returned = j.opt.Now()
	}
	last, _, _ := j.shown.Get(j.opt.Now(), certificatesEvery)
	if slices.ContainsFunc(last.All, expired) || j.shown.Age(j.opt.Now()) > j.opt.Now()-j.returned {
		every = expiredEvery
	}
	j.shown.Refresh(ctx, j.opt.Now, every, lookTimeout,
		func(ctx context.Context) (health.CertificateReading, error) {
			return j.opt.Certificates(ctx, urls), nil
		})
	now := j.opt.Now()
	seen, _, fresh := j.shown.Get(now, maxAge*certificatesEvery)
	if !fresh && j.shown.Age(now) < math.MaxInt64 {
		return health.CertificateReading{Absent: "the last reading is out of date"}
	}
	return seen
}

func expired(c health.Certificate) bool { return c.Left <= 0 }

// hasReturned reports whether a member that was silent in the last round answers now.
func (j *judge) hasReturned(r *round.Round) (returned bool) {
	answers := map[uint64]bool{}
	for _, m := range r.Membership.Members {
		if _, ok := answer(r.Statuses, m.ID); ok {
			answers[m.ID] = true
			returned = returned || !j.answered[m.ID]
		}
	}
	j.answered = answers
	return returned
}

// membersURLs returns the URLs at which the members present certificates; none if this host is not a member. While the
// member list is unknown, it returns the last known URLs or, without any, this host's own client URL if its etcd runs.
func (j *judge) membersURLs(r *round.Round) []string {
	c := j.opt.Config.Etcd
	_, member := r.OwnMember(r.Membership, c.PeerURL)
	switch {
	case !r.Listed && len(j.shows) > 0:
		return j.shows
	case !r.Listed && stateOfUnit(r) == policy.UnitActive:
		return []string{c.ClientURL}
	case !member:
		return nil
	}
	urls := []string{c.ClientURL, c.PeerURL}
	for _, m := range r.Membership.Members {
		urls = append(append(urls, m.ClientURLs...), m.PeerURLs...)
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}
