// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// spaceHosts is the number of voters in the worlds in which etcd's databases are full.
const spaceHosts = 3

// spaceHost is a host of a spaceWorld.
type spaceHost struct {
	down      bool             // its agent does not run
	permit    bool             // its agent has claimed a permit, which is still valid
	waited    bool             // its agent has observed the current number of permits for longer than a permit is valid
	tried     [spaceHosts]bool // the databases that have been defragmented since the alarm or the compaction
	compacted bool             // its agent has compacted the keys
	claims    bool             // its agent is about to claim a permit
	late      bool             // the permits have changed since the agent decided to claim one
	awaits    int              // the member whose defragmentation its agent awaits, or -1
}

// spaceWorld is one state.
type spaceWorld struct {
	hosts   [spaceHosts]spaceHost
	over    [spaceHosts]bool // the database is over its quota
	alarm   bool
	live    bool // the live data is so large that a defragmentation does not help
	permits int  // the number of unclaimed permits
	leader  int
	lock    int  // the host that holds the lock for an operation, or -1
	corrupt bool // etcd has raised the CORRUPT alarm
	faults  int
	breach  string
}

// spaceScope limits the events to explore, and may seed a mistake.
type spaceScope struct {
	holder  bool // the first host holds the lock when the alarm is raised
	live    bool // the live data needs a compaction
	faults  int
	mistake string
}

func (s spaceScope) initial() spaceWorld {
	w := spaceWorld{
		alarm: true, over: [spaceHosts]bool{true, true, true}, live: s.live, permits: policy.MaxPermits, lock: -1,
	}
	for h := range w.hosts {
		w.hosts[h].awaits = -1
	}
	if s.holder {
		w.lock = 0
	}
	return w
}

func (s spaceScope) view(w *spaceWorld, h int) policy.View {
	me, v := w.hosts[h], voterView(h, spaceHosts)
	v.Cluster.Intact, v.Cluster.Roomy = !w.corrupt, !w.alarm
	v.Space = policy.Space{
		Remediate: true, Permits: w.permits, PermitsFor: long(bit(me.waited)), RoomyFor: long(bit(!w.alarm)),
		Mine: long(bit(me.permit)), Keep: 1, Compacted: policy.Never, Defragmenting: memberOrNone(me.awaits),
	}
	if me.compacted {
		v.Space.Compacted = time.Hour
	}
	for i, tried := range me.tried {
		if tried {
			v.Space.Attempts = append(v.Space.Attempts, policy.DefragAttempt{MemberID: memberID(i)})
		}
	}
	for i, g := range w.hosts {
		m := policy.Member{
			ID: memberID(i), Name: hostName(i), PeerURL: hostName(i), Live: true, Leader: i == w.leader,
			Version: etcdVersion(), LagKnown: true, LiveFor: ages, SteadyFor: ages, Errors: w.alarm,
			Database: policy.Database{Size: 50, InUse: 40, Quota: 100},
		}
		for _, other := range w.hosts {
			m.Live = m.Live && other.awaits != i
		}
		if w.over[i] {
			m.Database.Size = 100
		}
		if s.live && w.over[i] { // what a compaction has released counts as in use until a defragmentation
			m.Database.InUse = 90
		}
		v.Cluster.Members = append(v.Cluster.Members, m)
		if !g.down {
			v.Hosts = append(v.Hosts, policy.Host{
				ID: hostName(i), Name: hostName(i), PeerURL: m.PeerURL, Role: policy.RoleVoter, Health: health.OK,
				Qualified: true, Manage: true, Own: i == h, InOperation: w.lock == i,
			})
		}
	}
	if w.lock >= 0 {
		v.Lock.Held, v.Lock.Mine, v.Lock.Holder = true, w.lock == h, hostName(w.lock)
		v.Lock.ValidFor = long(bit(w.lock == h))
		v.Op = &policy.Op{
			Kind: policy.KindCycle, Work: policy.WorkMaintenance, Host: hostName(w.lock), HostName: hostName(w.lock),
			Phase: policy.PhaseBegun, Token: tokenNow, MemberID: memberID(w.lock), PeerURL: hostName(w.lock),
			SameBoot: true,
		}
	}
	s.change(&v)
	return v
}

func memberOrNone(h int) uint64 {
	if h < 0 {
		return 0
	}
	return memberID(h)
}

// change seeds a mistake into a view.
func (s spaceScope) change(v *policy.View) {
	switch s.mistake {
	case "a defragmentation for another agent is ignored":
		if !v.Cluster.Roomy {
			eachMember(v, func(m *policy.Member) { m.Live = true })
		}
	case "the next permit is claimed at once":
		v.Space.PermitsFor = ages
	case "a held lock is ignored":
		if !v.Lock.Mine {
			v.Lock.Held = false
		}
	case "the sizes are ignored":
		eachMember(v, func(m *policy.Member) { m.Database.Size = m.Database.InUse })
	case "the leader counts as an ordinary member":
		eachMember(v, func(m *policy.Member) { m.Leader = false })
	case "live data is defragmented":
		eachMember(v, func(m *policy.Member) { m.Database.InUse = 0 })
	case "the CORRUPT alarm is ignored":
		v.Cluster.Intact = true
	case "every agent has a permit":
		v.Space.Mine = ages
	case "permits are not written again":
		v.Space.RoomyFor = 0
	case "the history is not kept":
		v.Space.Keep = 0
	}
}

// act lets a host's agent take one step.
func (s spaceScope) act(w *spaceWorld, h int) {
	d, g := policy.Decide(s.view(w, h)), &w.hosts[h]
	may := g.permit || w.lock == h
	switch d.Step.Kind {
	case policy.StepClaimPermit:
		g.claims = true
	case policy.StepWritePermits:
		if !w.alarm {
			w.counted(policy.MaxPermits)
			w.observed() // there has been no alarm for a minute
		}
	case policy.StepCompact:
		g.compacted, g.tried, w.live = true, [spaceHosts]bool{}, false
		w.breaks(!may, "only the agent that may free space compacts")
	case policy.StepLeadElsewhere:
		w.leader = int(d.Step.MemberID) - 1
		w.breaks(!may, "only the agent that may free space transfers leadership")
	case policy.StepDefragmentOnline:
		s.defragments(w, h, int(d.Step.MemberID)-1)
		w.breaks(!may, "only the agent that may free space defragments")
	case policy.StepDisarmNoSpace:
		w.breaks(w.over != [spaceHosts]bool{}, "the alarm is disarmed only when every database has space")
		w.breaks(!may, "only the agent that may free space disarms the alarm")
		w.alarm = false
		w.observed()
	}
	switch d.Step.Kind {
	case policy.StepCompact, policy.StepLeadElsewhere, policy.StepDefragmentOnline, policy.StepDisarmNoSpace:
		w.breaks(w.corrupt, "no agent frees space while members hold different data")
	}
}

// claimed lets the transaction of an agent delete a permit. Another agent may have claimed it, or taken the lock.
func (s spaceScope) claimed(w *spaceWorld, h int) {
	late := w.hosts[h].late && s.mistake != "the claim does not compare the permit"
	held := w.lock >= 0 && s.mistake != "the claim does not compare the lock"
	w.hosts[h].claims, w.hosts[h].late = false, false
	if late || held || w.permits == 0 {
		return
	}
	for i, g := range w.hosts {
		w.breaks(i != h && g.permit, "one agent at a time may free space")
		w.breaks(w.lock == i && i != h, "no permit counts besides the lock")
	}
	w.hosts[h].permit = true
	w.counted(w.permits - 1)
}

// counted changes the number of permits, which every agent then observes.
func (w *spaceWorld) counted(permits int) {
	w.permits = permits
	for i := range w.hosts {
		w.hosts[i].waited, w.hosts[i].late = false, w.hosts[i].claims
	}
}

// observed lets every agent observe that the alarm is over, so that its permit and its compaction no longer count.
func (w *spaceWorld) observed() {
	for i := range w.hosts {
		w.hosts[i].permit, w.hosts[i].compacted, w.hosts[i].tried = false, false, [spaceHosts]bool{}
	}
}

// raised begins a new alarm, for which no earlier defragmentation counts.
func (w *spaceWorld) raised() {
	w.alarm = true
	for i := range w.hosts {
		w.hosts[i].tried = [spaceHosts]bool{}
	}
}

func (s spaceScope) defragments(w *spaceWorld, h, m int) {
	for i, g := range w.hosts {
		w.breaks(g.awaits >= 0 && (i != h || g.awaits != m), "one member at a time is defragmented")
	}
	w.breaks(w.leader == m && w.over == [spaceHosts]bool{true, true, true}, "the leader is defragmented last")
	w.breaks(w.live, "no defragmentation that cannot help")
	w.hosts[h].awaits = m
}

func (w *spaceWorld) breaks(broken bool, promise string) {
	if broken && w.breach == "" {
		w.breach = promise
	}
}

// successors returns the worlds after each possible event.
func (s spaceScope) successors(w spaceWorld) (next []spaceWorld, events []string) {
	add := func(text string, change func(n *spaceWorld)) {
		n := w
		change(&n)
		if n != w {
			next, events = append(next, n), append(events, text)
		}
	}
	for h, g := range w.hosts {
		name := hostName(h)
		if g.awaits >= 0 {
			add("the defragmentation that "+name+" awaits is done", func(n *spaceWorld) {
				n.over[g.awaits] = n.live
				n.hosts[h].awaits, n.hosts[h].tried[g.awaits] = -1, true
			})
		}
		if g.tried != [spaceHosts]bool{} {
			add("the defragmentations by "+name+" are old", func(n *spaceWorld) {
				n.hosts[h].tried = [spaceHosts]bool{}
			})
		}
		if g.compacted {
			add("more history is old enough for a compaction by "+name, func(n *spaceWorld) {
				n.hosts[h].compacted, n.hosts[h].tried = false, [spaceHosts]bool{}
			})
		}
		if g.down {
			add("the agent of "+name+" starts", func(n *spaceWorld) { n.hosts[h].down = false })
			if w.lock == h {
				add("the lock of "+name+" expires", func(n *spaceWorld) { n.lock = -1 })
			}
			continue
		}
		if g.claims {
			add("the claim of "+name+" arrives", func(n *spaceWorld) { s.claimed(n, h) })
			continue
		}
		if w.lock < 0 && !w.alarm {
			add(name+" takes the lock", func(n *spaceWorld) { n.lock = h })
		}
		add("the agent of "+name+" acts", func(n *spaceWorld) { s.act(n, h) })
		if w.lock == h && !w.alarm {
			add("the operation of "+name+" ends", func(n *spaceWorld) { n.lock = -1 })
		}
	}
	add("a permit ends", func(n *spaceWorld) { // all defragmentations that began under it have a time limit
		for h := range n.hosts {
			if n.hosts[h].permit = false; n.lock != h {
				n.hosts[h].awaits = -1
			}
			n.hosts[h].waited = !n.hosts[h].down
		}
	})
	if w.corrupt {
		add("an operator disarms the CORRUPT alarm", func(n *spaceWorld) { n.corrupt = false })
	}
	if !w.alarm && w.over != [spaceHosts]bool{} {
		add("etcd raises the NOSPACE alarm again", func(n *spaceWorld) { n.raised() })
	}
	if w.faults < s.faults {
		s.faultsOf(&w, add)
	}
	return next, events
}

func (s spaceScope) faultsOf(w *spaceWorld, add func(string, func(*spaceWorld))) {
	fault := func(text string, change func(n *spaceWorld)) {
		add(text, func(n *spaceWorld) { n.faults++; change(n) })
	}
	for h, g := range w.hosts {
		if !g.down {
			fault("the agent of "+hostName(h)+" crashes", func(n *spaceWorld) {
				n.hosts[h] = spaceHost{down: true, awaits: g.awaits} // the member continues its defragmentation
			})
		}
	}
	if !w.corrupt {
		fault("etcd raises the CORRUPT alarm", func(n *spaceWorld) { n.corrupt = true })
	}
	if !w.alarm && w.permits == policy.MaxPermits {
		fault("clients fill the databases again", func(n *spaceWorld) {
			n.over, n.live = [spaceHosts]bool{true, true, true}, s.live
			n.raised()
		})
	}
	if w.alarm {
		fault("an operator disarms the NOSPACE alarm too early", func(n *spaceWorld) {
			n.alarm = false
			n.observed()
		})
	}
}

// done reports whether etcd accepts writes, and the permits for the next alarm exist.
func (w *spaceWorld) done() bool {
	return !w.alarm && w.over == [spaceHosts]bool{} && w.permits == policy.MaxPermits
}
