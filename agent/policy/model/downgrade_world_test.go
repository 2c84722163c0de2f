// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// downgradeHosts is the number of voters in the worlds in which etcd is downgraded.
const downgradeHosts = 3

// downgradeHost is a host of a downgradeWorld.
type downgradeHost struct {
	old       bool // its binary is of the older version
	runs      bool
	lowered   bool // its database has the storage version of the older etcd
	agentDown bool
	asked     bool
	request   policy.Request
	command   policy.HookState
	answered  bool // it has published its record since the operation's record last changed
	due       bool // its agent is about to enable the job
}

// downgradeWorld is one state.
type downgradeWorld struct {
	hosts  [downgradeHosts]downgradeHost
	leader int
	lower  bool // the cluster version is that of the older etcd
	job    bool // etcd's downgrade job is enabled
	long   bool // the job has been enabled, and every member has answered, for so long that etcd has reacted
	off    bool // no job has been enabled, and the rollout has not changed, for so long that all calls have ended
	others bool // an operator has enabled the job with etcdctl
	lock   int  // the holder, or -1
	op     int  // the host of the operation, or -1
	phase  policy.OpPhase
	served bool // the operation's member has served for the required time
	owned  bool // the operation record has the token of the current lock
	aged   bool // the operation record has not changed for longer than every limit
	joins  bool // another host is about to join, and no longer checks whether the job is enabled

	state   policy.RolloutState
	waiting uint8 // the hosts on which the rollout is not done yet, one bit per host
	noted   bool  // according to the rollout's record, quorumd has enabled the job
	faults  int
	breach  string // the promise that the last event broke
}

// downgradeScope limits the events to explore, and may seed a mistake.
type downgradeScope struct {
	others  bool // an operator has enabled the job with etcdctl before the rollout started
	joins   bool // another host is about to join when the rollout starts
	aborts  bool // an operator may abort the rollout
	faults  int
	mistake string
	cache   map[downgradeSeen]policy.Decision
}

// downgradeSeen is everything on which a decision depends.
type downgradeSeen struct {
	host int
	downgradeWorld
}

// all reports whether a condition is true for every host.
func (w *downgradeWorld) all(is func(downgradeHost) bool) bool {
	return !slices.ContainsFunc(w.hosts[:], func(h downgradeHost) bool { return !is(h) })
}

func (w *downgradeWorld) running() (n int) {
	for _, h := range w.hosts {
		n += int(bit(h.runs))
	}
	return n
}

// starts reports whether a host's etcd can start.
func (w *downgradeWorld) starts(h int) bool { return !w.hosts[h].old || w.lower && w.hosts[h].lowered }

func (s downgradeScope) view(w *downgradeWorld, h int) policy.View {
	me, v := w.hosts[h], voterView(h, downgradeHosts)
	v.Self.Etcd, v.Unit.State = newMinor, policy.UnitInactive
	if me.old {
		v.Self.Etcd = oldMinor
	}
	if me.runs {
		v.Unit.State = policy.UnitActive
	}
	if me.asked {
		asked := me.request.Asked()
		asked.Command, asked.Rollout = policy.Hooks{State: me.command}, rolloutID
		asked.RebootFor, asked.WaitedFor = policy.Never, ages
		v.Asked = &asked
	}
	if w.running() < 2 {
		return withoutQuorum(v)
	}
	if w.job {
		v.Cluster.Job = policy.DowngradeJob{Enabled: true, Target: minorOf(oldMinor), For: long(bit(w.long))}
	} else {
		v.Cluster.Job.For = long(bit(w.off))
	}
	for i := range w.hosts {
		s.addHost(&v, w, h, i)
	}
	if w.lock >= 0 {
		v.Lock.Held, v.Lock.Mine, v.Lock.Holder = true, w.lock == h, hostName(w.lock)
		v.Lock.ValidFor = long(bit(w.lock == h))
	}
	switch {
	case w.op >= 0:
		v.Op = &policy.Op{
			Kind: policy.KindCycle, Work: policy.WorkCommand, Host: hostName(w.op), HostName: hostName(w.op),
			Phase: w.phase, Token: tokenNow, MemberID: memberID(w.op), SameBoot: true, WrittenFor: long(bit(w.aged)),
		}
		if !w.owned {
			v.Op.Token = tokenPast
		}
	case w.joins:
		v.Op = &policy.Op{Kind: policy.KindJoin, Host: "D", HostName: "D", Phase: policy.PhaseBegun, Token: tokenNow}
	}
	v.Rollout = &policy.Rollout{
		ID: rolloutID, Work: policy.WorkCommand, Runs: w.state == policy.RolloutRunning, Due: true, Began: time.Minute,
		Over:    w.state == policy.RolloutAborted || w.state == policy.RolloutDone,
		Upgrade: oldMinor.String(), Downgrade: true, Job: w.noted, WithoutSnapshot: true,
		UnchangedFor: long(bit(w.off)),
	}
	for i := range w.hosts {
		if w.waiting>>i&1 != 0 {
			v.Rollout.Waiting = append(v.Rollout.Waiting, hostName(i))
		}
	}
	s.change(&v)
	return v
}

// addHost adds a host and its member to the view of host h.
func (s downgradeScope) addHost(v *policy.View, w *downgradeWorld, h, i int) {
	g := &w.hosts[i]
	m := policy.Member{
		ID: memberID(i), Name: hostName(i), PeerURL: hostName(i), Live: g.runs, Leader: g.runs && i == w.leader,
		Version: newMinor, Storage: minorOf(newMinor), LagKnown: g.runs,
		LiveFor: long(bit(g.runs)), SteadyFor: long(bit(g.runs)),
	}
	if g.old {
		m.Version = oldMinor
	}
	if g.lowered {
		m.Storage = minorOf(oldMinor)
	}
	if i == h && w.op == h {
		m.LiveFor, m.SteadyFor = long(bit(w.served)), long(bit(w.served))
	}
	v.Cluster.Members = append(v.Cluster.Members, m)
	if g.agentDown {
		return
	}
	record := policy.Host{
		ID: hostName(i), Name: hostName(i), PeerURL: m.PeerURL, Role: policy.RoleVoter, Health: health.OK,
		Qualified: true, Manage: true, Answered: g.answered, Own: i == h,
		InOperation: g.asked && g.request.Seen && w.op == i,
	}
	if g.asked && !g.request.Asked().Over {
		record.Wants, record.AskedAt = policy.WorkCommand, 1
	}
	v.Hosts = append(v.Hosts, record)
}

// change seeds a mistake into a view.
func (s downgradeScope) change(v *policy.View) {
	switch s.mistake {
	case "neither the job nor the storage versions are read":
		v.Cluster.Job = policy.DowngradeJob{Enabled: true, Target: minorOf(oldMinor), For: ages}
		eachMember(v, func(m *policy.Member) { m.Storage = minorOf(oldMinor) })
	case "etcd lowers the cluster version at once":
		v.Cluster.Job.For = ages
	case "the storage versions are ignored":
		if v.Cluster.Job.Enabled {
			eachMember(v, func(m *policy.Member) { m.Storage = minorOf(oldMinor) })
		}
	case "a member that is down counts as live":
		eachMember(v, func(m *policy.Member) { m.Live, m.LagKnown, m.LiveFor, m.SteadyFor = true, true, ages, ages })
	case "an abort leaves the job":
		v.Rollout.Job = false
	case "every job is quorumd's":
		v.Rollout.Job = true
	case "operations in flight are ignored":
		if v.Op != nil && v.Op.Kind == policy.KindJoin {
			v.Op = nil
		}
	case "the job is cancelled while a host is down":
		if v.Rollout.Over {
			v.Op = nil
		}
	case "the lowered cluster version is forgotten":
		own := v.Self.PeerURL
		eachMember(v, func(m *policy.Member) {
			if m.PeerURL != own {
				m.Version = newMinor
			}
		})
	}
}

func (s downgradeScope) decide(w *downgradeWorld, h int) policy.Decision {
	key := downgradeSeen{h, *w}
	key.faults, key.breach, key.others, key.lower = 0, "", false, false
	for i := range key.hosts { // no agent observes due
		key.hosts[i].due = false
	}
	d, known := s.cache[key]
	if !known {
		d = policy.Decide(s.view(w, h))
		s.cache[key] = d
	}
	return d
}

func (s downgradeScope) initial() downgradeWorld {
	w := downgradeWorld{
		lock: -1, op: -1, state: policy.RolloutRunning, waiting: 1<<downgradeHosts - 1, job: s.others, others: s.others,
		joins: s.joins,
	}
	for h := range w.hosts {
		w.hosts[h].runs = true
	}
	return w
}

// act lets a host's agent take one step.
func (s downgradeScope) act(w *downgradeWorld, h int) {
	d, g := s.decide(w, h), &w.hosts[h]
	switch d.Notes.Request.Change {
	case policy.RequestTurn:
		g.asked, g.command = true, policy.HooksDue
		g.request = policy.Request{Work: policy.WorkCommand, Program: "install", By: "root", Reason: "a downgrade"}
	case policy.RequestSeen:
		g.request.Begun = true
		g.request = g.request.Recorded()
	case policy.RequestEnds:
		g.asked, g.request, g.command = false, policy.Request{}, ""
	case policy.RequestAgain:
		w.state = policy.RolloutStopped
	}
	step, holds := d.Step, w.lock == h
	if step.Kind.Info().Locked && !holds {
		return
	}
	switch step.Kind {
	case policy.StepNone:
	case policy.StepTakeLock:
		if w.lock < 0 {
			w.lock, w.owned = h, false
		}
	case policy.StepReleaseLock:
		if holds {
			w.lock = -1
		}
	case policy.StepEnableDowngrade:
		if w.running() < downgradeHosts {
			w.breach = "the job is enabled only while every member answers"
		}
		// the rollout's record has not changed since the agent read it, so the write succeeds
		g.due, w.noted = true, s.mistake != "the job is not recorded"
	case policy.StepCancelDowngrade:
		switch {
		case w.others:
			w.breach = "no job of an operator is cancelled"
		case w.op >= 0:
			w.breach = "the job is not cancelled while a host is down"
		}
		if w.noted = w.noted && w.job; s.mistake == "a call takes effect at once" {
			w.noted = false
		}
		w.job = false
	default:
		s.carry(w, h, d)
	}
}

// carry takes a step of the operation that takes a host down.
func (s downgradeScope) carry(w *downgradeWorld, h int, d policy.Decision) {
	g := &w.hosts[h]
	changed := func() {
		for i := range w.hosts {
			w.hosts[i].answered = false
		}
		w.owned, w.aged = true, false
	}
	switch step := d.Step; step.Kind {
	case policy.StepBeginCycle:
		g.request = g.request.Begins()
		w.op, w.phase, w.served = h, policy.PhaseBegun, false
		changed()
	case policy.StepSetPhase:
		w.phase = step.Phase
		changed()
	case policy.StepTransferLeadership:
		w.leader = int(step.MemberID) - 1
	case policy.StepTakeDown:
		if !w.lower || !g.old && !g.lowered {
			w.breach = "no etcd is stopped before the older one can start"
		}
		if w.running() < downgradeHosts && g.runs {
			w.breach = "one member at a time is down"
		}
		if next, valid := g.request.StopsEtcd(); valid {
			g.request = next
			w.stops(h)
		}
	case policy.StepRunCommand:
		g.old, g.command = true, policy.HooksDone
	case policy.StepStartUnit:
		if w.starts(h) {
			g.runs = true
		}
		g.request = g.request.EtcdStarted()
	case policy.StepEndOp:
		w.op, w.phase, w.served = -1, "", false
		changed()
		switch {
		case step.Outcome == policy.Cycled:
			if w.waiting &^= 1 << h; w.waiting == 0 && w.state == policy.RolloutRunning {
				w.state = policy.RolloutDone
			}
		case step.Outcome == policy.CommandFailed && w.state == policy.RolloutRunning:
			w.state = policy.RolloutStopped
		}
		if d.Notes.Request.Change == policy.RequestEnding {
			g.asked, g.request, g.command = false, policy.Request{}, ""
		} else {
			g.request = g.request.GivenUp()
		}
	default:
		w.breach = "a downgrade changes no member: " + string(step.Kind)
	}
}

// stops ends the etcd of a host.
func (w *downgradeWorld) stops(h int) {
	w.hosts[h].runs, w.served = false, w.served && w.op != h
	for i := range w.hosts {
		if w.leader == h && w.hosts[i].runs {
			w.leader = i
		}
	}
}

// successors returns the worlds after each possible event.
func (s downgradeScope) successors(w downgradeWorld) (next []downgradeWorld, events []string) {
	add := func(text string, change func(n *downgradeWorld)) {
		n := w
		change(&n)
		n.long = n.long && n.job && n.running() == downgradeHosts
		n.off = n.off && !n.job && n.noted == w.noted && n.state == w.state
		if n != w {
			next, events = append(next, n), append(events, text)
		}
	}
	s.etcdEvents(&w, add)
	if w.joins {
		add("the other host joins", func(n *downgradeWorld) {
			if n.joins = false; n.job {
				n.breach = "no host joins while the job is enabled"
			}
		})
	}
	if s.aborts && (w.state == policy.RolloutRunning || w.state == policy.RolloutStopped) {
		add("an operator aborts the downgrade", func(n *downgradeWorld) { n.state = policy.RolloutAborted })
	}
	for h := range w.hosts {
		g, name := w.hosts[h], hostName(h)
		if g.due {
			add("the call of "+name+" enables the job", func(n *downgradeWorld) {
				n.hosts[h].due = false
				if n.job = n.job || n.running() >= 2; n.joins && !w.job {
					n.breach = "the job is not enabled while a host joins"
				}
			})
			add("the call of "+name+" is lost", func(n *downgradeWorld) { n.hosts[h].due = false })
		}
		if !g.agentDown && !g.due {
			add("the agent of "+name+" acts", func(n *downgradeWorld) { s.act(n, h) })
		}
		if w.op == h && !w.aged {
			add("the record of "+name+" gets old", func(n *downgradeWorld) { n.aged = true })
		}
		if w.op >= 0 && !g.agentDown && w.running() >= 2 {
			add(name+" publishes its record", func(n *downgradeWorld) { n.hosts[h].answered = true })
		}
		if w.op == h && g.runs && !w.served && w.running() == downgradeHosts {
			add(name+" has served for long enough", func(n *downgradeWorld) { n.served = true })
		}
		if !g.runs && !g.request.Stopped && w.starts(h) {
			add("etcd of "+name+" starts", func(n *downgradeWorld) { n.hosts[h].runs = true })
		}
		if g.old && !g.runs && !w.starts(h) { // the cluster version was raised again
			add("an operator installs the newer etcd on "+name, func(n *downgradeWorld) { n.hosts[h].old = false })
		}
		if g.agentDown {
			add("the agent of "+name+" starts", func(n *downgradeWorld) { n.hosts[h].agentDown = false })
			if w.lock == h {
				add("the lock of "+name+" expires", func(n *downgradeWorld) { n.lock = -1 })
			}
		}
		if w.faults < s.faults {
			s.faultsOf(&w, h, add)
		}
	}
	return next, events
}

// etcdEvents adds what etcd does by itself. The leader checks the versions of all members every few seconds.
func (s downgradeScope) etcdEvents(w *downgradeWorld, add func(string, func(*downgradeWorld))) {
	if w.running() == downgradeHosts {
		switch old := w.all(func(h downgradeHost) bool { return h.old }); {
		case w.job && old:
			add("etcd ends the job", func(n *downgradeWorld) { n.job, n.others = false, false })
		case w.job && !w.lower:
			add("the cluster version is lowered", func(n *downgradeWorld) { n.lower = true })
		case w.job && !w.long:
			add("the job has been enabled for long", func(n *downgradeWorld) { n.long = true })
		case !w.job && w.lower && w.all(func(h downgradeHost) bool { return !h.old }):
			add("the cluster version is raised", func(n *downgradeWorld) { n.lower = false })
		}
	}
	over := w.state == policy.RolloutAborted || w.state == policy.RolloutDone
	if !w.job && !w.off && over && w.all(func(h downgradeHost) bool { return !h.due }) {
		add("no job has been enabled for a while", func(n *downgradeWorld) { n.off = true })
	}
	for h, g := range w.hosts {
		if g.runs && !g.old && g.lowered != w.lower {
			add("the storage version of "+hostName(h)+" follows the cluster version", func(n *downgradeWorld) {
				n.hosts[h].lowered = n.lower
			})
		}
	}
}

func (s downgradeScope) faultsOf(w *downgradeWorld, h int, add func(string, func(*downgradeWorld))) {
	g, name := w.hosts[h], hostName(h)
	fault := func(text string, change func(n *downgradeWorld)) {
		add(text, func(n *downgradeWorld) { n.faults++; change(n) })
	}
	if !g.agentDown {
		fault("the agent of "+name+" crashes", func(n *downgradeWorld) {
			n.hosts[h].agentDown, n.hosts[h].answered = true, false
		})
	}
	if g.runs && w.running() == downgradeHosts {
		fault("etcd of "+name+" crashes", func(n *downgradeWorld) { n.stops(h) })
	}
	if g.command == policy.HooksDue && w.op == h && w.phase == policy.PhaseDown {
		fault("the command of "+name+" fails", func(n *downgradeWorld) { n.hosts[h].command = policy.HooksFailed })
	}
	if w.job && h == 0 {
		fault("an operator cancels the job with etcdctl", func(n *downgradeWorld) { n.job, n.others = false, false })
	}
}

// ended reports whether no host is down and the downgrade either waits for an operator, or is over and has left no job
// of quorumd.
func (w downgradeWorld) ended() bool {
	over := w.state == policy.RolloutAborted || w.state == policy.RolloutDone
	over = over && (!w.job || w.others)
	return w.op < 0 && w.running() == downgradeHosts && (w.state == policy.RolloutStopped || over)
}

func (s downgradeScope) explore() (string, int) {
	s.cache = map[downgradeSeen]policy.Decision{}
	return worlds[downgradeWorld]{
		first: s.initial(), successors: s.successors, liveness: "every downgrade ends, and leaves no job",
		breach: func(w downgradeWorld) string { return w.breach },
		faults: func(w downgradeWorld) int { return w.faults },
		ends:   downgradeWorld.ended,
	}.explore()
}

// minorOf returns a version without its patch.
func minorOf(v policy.Version) policy.Version { return policy.Version{Major: v.Major, Minor: v.Minor} }
