// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
	"github.com/quorumd/quorumd/health"
)

// Status returns the state of the last completed round. It does not block. If the cluster state is old, which is normal
// on a spare in a large fleet, it makes the next round query etcd.
func (p *Publisher) Status() control.Status {
	if reached := p.reached.Load(); reached != nil &&
		p.opt.Now()-reached.StatusesAt > round.Blink*p.opt.Config.Timing.Interval {
		p.opt.Hurry()
	}
	return p.ClusterState()
}

// ClusterState returns the same document as Status, but never makes the next round query etcd. It is for callers that
// poll.
func (p *Publisher) ClusterState() control.Status {
	c := p.opt.Config
	s := control.Status{
		Time: p.opt.Wall(),
		Host: control.Host{
			ID: c.Host.ID, Name: c.Host.Name, Domain: c.Host.Domain, Mode: string(c.Mode),
			Version: p.opt.Version, BootID: p.opt.BootID,
		},
		Role:    policy.RoleUnknown,
		Cluster: control.Cluster{Name: c.Cluster.Name, Target: c.Cluster.Voters},
		Health:  control.Health{State: health.Unknown.String()},
		Loop: control.Loop{
			IntervalSeconds:   c.Timing.Interval.Seconds(),
			StuckAfterSeconds: (5*c.Timing.Interval + waits*c.Timing.CallTimeout).Seconds(),
		},
		Unit: control.Unit{Name: p.unitName(), Runner: string(c.Etcd.Runner), DataDir: c.Etcd.DataDir},
	}
	r := p.current.Load()
	asked, last := p.files.Asked()
	if last != nil {
		s.LastMaintenance = &last.MaintenanceEnd
	}
	s.Removal, s.LastRemoval = p.removalStatus(r)
	s.Transfer, s.LastTransfer = p.transferStatus(r)
	plan, lastPlan := p.files.Recoveries()
	if s.LastRecovery = lastPlan; plan != nil {
		s.Recovery = &plan.Recovery
	}
	if r == nil {
		s.Reasons = []control.Reason{{
			Code: string(policy.Starting),
			Text: "quorumd has just started and has observed nothing yet",
		}}
		return s
	}
	age := (p.opt.Now() - r.At).Seconds()
	s.Role = r.Decision.Role
	s.Next, s.Reasons = p.decisionStatus(r)
	s.Health = p.healthStatus(r)
	s.Backup = backupStatus(r)
	if asked != nil {
		m := p.Maintenance(r, asked)
		s.Maintenance = &m
	}
	s.Cluster = p.clusterStatus(s.Cluster, r)
	if reached := p.reached.Load(); reached != nil { // the rest was last read from etcd in that round
		s.Hosts = hostsStatus(reached, (p.opt.Now() - reached.HostsAt).Seconds(), p.opt.Config.Timing.HostRecordTTL)
		markFormer(s.Hosts, c.Host.ID, reached)
		ownRow(s.Hosts, c.Host.ID, r)
		s.Hosts, s.Omitted = boundHosts(s.Hosts, c.Host.ID, reached)
		s.Lock, s.Op, s.Pause = recordsStatus(reached)
		s.Retired = RetiredHosts(reached)
		if reached.Rollout != nil {
			rollout := RolloutOf(*reached.Rollout, reached.Op)
			s.Rollout = &rollout
		}
	}
	s.Unit.State, s.Unit.Since, s.Unit.Detail = cmp.Or(string(r.View.Unit.State), "unknown"),
		r.Wall.Add(-r.View.Unit.Since), r.View.Unit.Detail
	if v := r.View.Self.Etcd; v.Known() {
		s.Unit.EtcdVersion = v.String()
	}
	s.Loop.AgeSeconds, s.Loop.Rounds, s.Loop.Steps = &age, r.Number, r.Did.Steps
	return s
}

// waits is the maximum number of call timeouts in two consecutive rounds. It covers two rounds, because while a round
// runs, the status shows the previous round.
const waits = 10

// remedy returns what an operator of this host can do about a reason.
func (p *Publisher) remedy(r *round.Round, code policy.ReasonCode) string {
	return strings.ReplaceAll(policy.Remedy(r.View, code), policy.OurUnit, p.unitName())
}

func (p *Publisher) unitName() string {
	if p.opt.Config.Etcd.Runner != "systemd" {
		return "etcd"
	}
	return p.opt.Config.Etcd.Unit
}

func (p *Publisher) decisionStatus(r *round.Round) (control.Next, []control.Reason) {
	d := r.Decision
	next := control.Next{Step: string(d.Step.Kind)}
	if next.Step != "" {
		next.Text = d.Step.Text()
	}
	var reasons []control.Reason
	cautions := d.Cautions()
	for _, reason := range d.Reasons {
		reasons = append(reasons, control.Reason{
			Caution: slices.Contains(cautions, reason),

			Code: string(reason.Code), Text: reason.Text, Remedy: p.remedy(r, reason.Code),
			Since: r.Wall.Add(-r.ReasonFor[reason.Code]), Progress: progressOf(r, reason),
		})
	}
	return next, reasons
}

// clusterStatus returns the cluster as last observed, with its age.
func (p *Publisher) clusterStatus(out control.Cluster, r *round.Round) control.Cluster {
	out.Reachable, out.Error = r.View.Cluster.Reachable, r.View.Cluster.Error
	now := r
	if reached := p.reached.Load(); !out.Reachable && reached != nil {
		r = reached
	}
	v := r.View.Cluster
	if !v.Reachable {
		return out
	}
	age := (p.opt.Now() - r.StatusesAt).Seconds()
	out.AgeSeconds = &age
	out.ID = memberText(v.ID)
	out.Target, out.Size = r.View.Target.Voters, SizeOf(r.Size)
	voters, live := v.Counts()
	if !out.Reachable {
		live = min(now.Answering(), policy.Quorum(voters)-1) // even if a majority answers now, this host has no quorum
	}
	out.Voters, out.Standbys, out.FaultTolerance = voters, policy.Standbys(r.View), policy.Tolerance(voters, live)
	if out.Reachable {
		out.DomainLoss = policy.DomainLoss(r.View)
	}
	var lowest policy.Version
	for _, m := range v.Members {
		member := control.Member{
			ID: memberText(m.ID), Name: m.Name, Role: policy.RoleVoter,
			Leader: m.Leader && out.Reachable, Live: m.Live,
			DBSize: r.Statuses[m.ID].DBSize,
		}
		if !m.Live && out.Reachable {
			down := m.DownFor.Seconds()
			member.DownSeconds = &down
		}
		if !out.Reachable {
			member.Live = now.Answered(m.ID)
		}
		listed, _ := r.Membership.ByID(m.ID)
		member.ClientURLs, member.PeerURLs = listed.ClientURLs, listed.PeerURLs
		if m.Learner {
			member.Role = control.RoleLearner
		}
		if m.LagKnown {
			member.Lag = &m.Lag
		}
		if m.Version.Known() {
			member.Version = m.Version.String()
			if !lowest.Known() || m.Version.Less(lowest) {
				lowest = m.Version
			}
		}
		out.Members = append(out.Members, member)
	}
	if lowest.Known() {
		out.Version = lowest.String()
	}
	return out
}

// memberText returns a member ID as etcdctl prints it.
func memberText(id uint64) string { return record.MemberID(id).String() }

// hostsStatus lists the hosts that had a record in etcd when it was last read, age seconds ago. A record expires ttl
// after its host's last renewal.
func hostsStatus(r *round.Round, age float64, ttl time.Duration) []control.HostRecord {
	var out []control.HostRecord
	line := policy.JoinQueue(r.View)
	for _, h := range r.Hosts {
		host := control.HostRecord{
			ID: h.ID, Name: h.Name, Domain: h.Domain, Role: policy.Role(h.Role), Health: h.Health,
			HealthText: h.HealthText,
			P99Seconds: h.FsyncP99, Mode: h.Mode, Version: h.AgentVersion, AgeSeconds: &age, EtcdVersion: h.EtcdVersion,
			Waiting: h.Waiting, Rank: slices.Index(line, h.ID) + 1, Sees: h.Sees,
		}
		if h.MemberID == 0 {
			host.SilentSeconds = unrenewedSeconds(r.Renewals, h.ID, ttl)
		} else {
			host.MemberID = h.MemberID.String()
			host.SilentSeconds = silentSeconds(r.View.Cluster.Members, uint64(h.MemberID), ttl)
		}
		if i := slices.IndexFunc(r.Retired, func(retired round.Retired) bool { return retired.Host == h.ID }); i >= 0 {
			host.Retired = RetiredOf(r.View, r.Retired[i]).State
		}
		out = append(out, host)
	}
	return out
}

// silentSeconds returns how long a host may have been gone: the time since its member last answered, at most the TTL of
// its record. It returns nil if the member answers or is unknown.
func silentSeconds(members []policy.Member, id uint64, ttl time.Duration) *float64 {
	for _, m := range members {
		if m.ID == id && !m.Live {
			silent := min(m.DownFor, ttl).Seconds()
			return &silent
		}
	}
	return nil
}

// unrenewedSeconds returns how long a host without a member may have been gone: the time since its record was last
// renewed, at most the TTL. It returns nil if no renewal is overdue, or if the time is unknown.
func unrenewedSeconds(found round.HostState[map[string]time.Duration], id string, ttl time.Duration) *float64 {
	since, known := found.Value[id]
	if !found.OK || !known || since < 2*ttl/Renewals {
		return nil
	}
	silent := min(since+found.Age, ttl).Seconds()
	return &silent
}

// markFormer hides the content of records whose member the cluster does not list. After a recovery, the records of lost
// hosts reappear with etcd's data, and their leases start over.
func markFormer(hosts []control.HostRecord, own string, r *round.Round) {
	if !r.Listed {
		return
	}
	listed := map[string]bool{"": true}
	for _, m := range r.Membership.Members {
		listed[memberText(m.ID)] = true
	}
	for i, h := range hosts {
		if h.ID == own || listed[h.MemberID] {
			continue
		}
		hosts[i] = control.HostRecord{
			ID: h.ID, Name: h.Name, Domain: h.Domain, Role: policy.RoleUnknown, Health: health.Unknown.String(),
			HealthText: "its host record names member " + h.MemberID + ", which the cluster does not list",
			Mode:       h.Mode, Version: h.Version, EtcdVersion: h.EtcdVersion, MemberID: h.MemberID, Former: true,
		}
	}
}

// ownRow updates the row of the host that serves the status to its current state, which may be newer than its record,
// so that the row agrees with the rest of the status.
func ownRow(hosts []control.HostRecord, id string, now *round.Round) {
	for i := range hosts {
		h := &hosts[i]
		if h.ID != id {
			continue
		}
		h.Sees, h.SilentSeconds = seenNow(now), nil
		h.Health, h.HealthText = now.Assessment.State.String(), string(now.Assessment.Code)
		if now.View.Cluster.Reachable { // otherwise keep the values last read from etcd
			h.Role, h.Waiting = now.Decision.Role, string(now.Decision.Waiting)
		}
	}
}

func recordsStatus(r *round.Round) (l control.Lock, op *control.Op, pause *control.Pause) {
	if r.Lock != nil {
		l = control.Lock{Holder: r.Lock.Host, HolderName: r.Lock.Name, Mine: r.View.Lock.Mine}
		if l.Mine {
			l.ValidForSeconds = r.View.Lock.ValidFor.Seconds()
		}
	}
	if r.Op != nil {
		op = &control.Op{
			Kind: r.Op.Kind, Host: r.Op.Host, HostName: r.Op.HostName, Target: r.Op.Target, Phase: r.Op.Phase,
			Started: r.Op.Started, Deadline: r.Op.Until, Reason: r.Op.Reason, By: r.Op.By,
			Orphaned:      r.View.Op != nil && r.View.Op.OrphanedFor > 0,
			Interruptible: r.Op.Interruptible,
		}
		if r.Op.MemberID != 0 {
			op.MemberID = r.Op.MemberID.String()
		}
		if len(r.Decision.Reasons) > 0 && r.Decision.Role == policy.RoleJoining {
			op.Progress = r.Decision.Reasons[0].Text
		}
	}
	if r.View.Pause != nil {
		pause = &control.Pause{By: r.Pause.By, Reason: r.Pause.Reason, Since: r.Pause.Since, Until: r.Pause.Until}
	}
	return l, op, pause
}

func (p *Publisher) healthStatus(r *round.Round) control.Health {
	assessment := r.Assessment
	wall := func(moment time.Duration) time.Time { return wallOf(r, moment) }
	out := control.Health{
		State: assessment.State.String(), Since: wall(assessment.Since),
		Text: assessment.Text, Remedy: assessment.Remedy,
		Qualified: assessment.Qualified,
	}
	for _, f := range assessment.Findings {
		out.Findings = append(out.Findings, control.Finding{
			Code: string(f.Code), Component: string(f.Component), State: f.State.String(), Text: f.Text,
			Remedy: f.Remedy,
			Since:  wall(f.Since), Muted: muted(r, f.Code), Cause: string(f.Cause), Why: f.Why,
		})
	}
	out.Mutes = r.Mutes
	out.NotAvailable = assessment.NotAvailable
	out.Disk = control.Disk{
		WAL: lane(assessment.Figures.WAL), Direct: lane(assessment.Figures.Direct),
		LimitSeconds: p.opt.Config.Disk.FsyncWarm.Seconds(),
	}
	out.Disk.LeftOut, out.Disk.Samples = uint64(assessment.Figures.LeftOut), uint64(assessment.Figures.Samples)
	out.Devices = devices(assessment.Figures.Devices)
	for _, c := range assessment.Figures.Certificates {
		out.Certificates = append(out.Certificates, control.Certificate{
			Of: string(c.Of), Name: c.Name, Until: c.Until, State: c.State().String(),
		})
	}
	age, op := p.opt.Probe.InFlight()
	out.Disk.InFlightSeconds, out.Disk.InFlightOp = age.Seconds(), op
	if u := r.Reading.Usage; u != nil {
		out.Disk.FreeBytes = u.Free
	}
	if f := assessment.Figures; f.WAL.Count+f.Direct.Count > 0 {
		seconds := (f.Age + p.opt.Now() - r.At).Seconds()
		out.Disk.AgeSeconds = &seconds
	}
	return out
}

func lane(f health.LaneFigures) control.Lane {
	return control.Lane{P50: f.P50.Seconds(), P99: f.P99.Seconds(), Max: f.Max.Seconds(), Count: uint64(f.Count)}
}
