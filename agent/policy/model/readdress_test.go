// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// readdressHosts is the number of voters in the worlds in which operators change peer URLs. Every peer URL is the old
// or the new one of its host.
const readdressHosts = 3

// The connection that a host's etcd has itself established to another member.
const (
	unconnected uint8 = iota
	connected         // at the registered URL
	outdated          // at a URL that is no longer registered; etcd keeps it, and reports it as active
)

// readdressHost is one of these hosts.
type readdressHost struct {
	conf, reg, env, listens uint8 // the URL: configured, registered, in the environment, and of the running etcd
	envReady                bool  // its agent has written the environment
	runs                    bool
	agentDown               bool
	asked                   bool
	request                 policy.Request
	answered                bool // it has published its record since the operation's record last changed
	to                      [readdressHosts]uint8
	due                     bool                 // its agent is about to send an update of its member
	sent                    bool                 // the update is in flight
	sentURL                 uint8                // the URL that the update registers
	unverified              bool                 // its URL was updated, and not all others have connected since
	by                      [readdressHosts]bool // the members that have
	verified                uint8                // the last URL at which all others have connected
	certificates
}

// certificates are those of a host in the worlds in which the new URLs are https.
type certificates struct {
	process, configured bool // the running etcd has one; the configuration has one
	unfit               bool // it is not valid for the host's address
}

// readdressWorld is one state.
type readdressWorld struct {
	hosts  [readdressHosts]readdressHost
	leader int
	lock   int // the holder, or -1
	op     int // the host of the operation, or -1
	phase  policy.OpPhase
	opURL  uint8 // the URL that was registered when it began
	served bool  // its member has served for as long as it must
	owned  bool  // the record has the token of the current lock
	old    bool  // the record has not changed for longer than every limit
	// restarted means that etcd of the operation's host has started since the operation began.
	restarted bool
	released  bool // an operator has released an operation
	faults    int
	breach    string // the promise that the last event broke
}

// readdressScope limits the events to explore, and may seed a mistake.
type readdressScope struct {
	changed int // how many hosts have another URL in their configuration, and a request
	faults  int
	mistake string
	// https makes every new URL an https one. At first, the running etcd of the last host has no certificate, although
	// it is configured, and the certificate of the second host is not valid for its address. Operators correct that.
	https bool
	cache map[readdressSeen]policy.Decision
}

// readdressSeen is everything on which a decision depends.
type readdressSeen struct {
	host int
	readdressWorld
}

func (s readdressScope) url(host int, which uint8) string {
	if s.https && which == 1 {
		return fmt.Sprintf("https://%s:2380", hostName(host))
	}
	return fmt.Sprintf("http://%s-%d:2380", hostName(host), which)
}

// dials reports whether the etcd of a host can connect to the etcd of another at its registered URL.
func (s readdressScope) dials(w *readdressWorld, from, to int) bool {
	a, b := &w.hosts[from], &w.hosts[to]
	return a.runs && b.runs && b.reg == b.listens &&
		(!s.https || b.reg == 0 || a.process && !a.unfit && b.process && !b.unfit)
}

func (w *readdressWorld) running() (n int) {
	for _, h := range w.hosts {
		if h.runs {
			n++
		}
	}
	return n
}

// leads returns the host that leads, or -1.
func (w *readdressWorld) leads() int {
	if w.running() < 2 {
		return -1
	}
	return w.leader
}

func (s readdressScope) view(w *readdressWorld, h int) policy.View {
	me, name := w.hosts[h], hostName(h)
	quorum := w.running() >= 2
	v := policy.View{
		Self: policy.Self{
			ID: name, Name: name, PeerURL: s.url(h, me.reg), Mode: policy.Manage, Drives: true,
			Etcd: etcdVersion(), DataMount: mount, MemberID: memberID(h), ClusterID: clusterID,
		},
		Target: policy.Target{Voters: readdressHosts, Configured: readdressHosts}, Limits: limits(), IdleFor: ages,
		Unit: policy.Unit{
			State: policy.UnitInactive, Since: ages, Ran: true, EnvReady: me.envReady,
			SinceStart: policy.Never,
		},
		Data: policy.Data{
			State: policy.DataMember, ClusterID: clusterID, MemberID: memberID(h), Free: 1 << 40, FreeKnown: true,
			Mount: mount,
		},
		Health: policy.Health{State: health.OK, Qualified: true}, Clock: policy.Clock{Known: true},
		Bootstrap: policy.Bootstrap{Done: true, Listed: true, LastCluster: clusterID},
		Cluster:   policy.Cluster{ExpectedID: clusterID},
	}
	if me.runs {
		v.Unit.State = policy.UnitActive
	}
	if me.asked {
		asked := me.request.Asked()
		asked.OverFor, asked.RebootFor, asked.WaitedFor = long(bit(asked.Over)), policy.Never, ages
		if quorum {
			asked.Released, _ = me.request.Gone(w.op == h, false, true)
		}
		v.Asked = &asked
	}
	if !quorum {
		v.Cluster.Error = "no voter answers"
		return v
	}
	v.Self.PeerFiles = policy.PeerFiles{Configured: me.configured, Checked: true}
	if me.unfit {
		v.Self.PeerFiles.Problem = "the certificate lacks the address"
	}
	if me.conf != me.reg {
		v.Self.NewPeerURL = s.url(h, me.conf)
	}
	v.Cluster = policy.Cluster{
		Reachable: true, Listed: true, Fresh: true, ID: clusterID, ExpectedID: clusterID, StableFor: ages,
		DBSize: 1 << 20, Intact: true, Roomy: true,
	}
	v.HostsFresh, v.Lock = true, policy.Lock{Known: true, Token: tokenNow}
	for i := range w.hosts {
		g := &w.hosts[i]
		m := policy.Member{
			ID: memberID(i), Name: hostName(i), PeerURL: s.url(i, g.reg), Live: g.runs, Leader: i == w.leads(),
			Version: etcdVersion(), LagKnown: g.runs, LiveFor: long(bit(g.runs)), SteadyFor: long(bit(g.runs)),
		}
		if i == h && w.op == h {
			m.LiveFor, m.SteadyFor = long(bit(w.served)), long(bit(w.served))
		}
		if g.agentDown {
			v.Cluster.Members = append(v.Cluster.Members, m)
			continue
		}
		if m.PeerTLS = policy.PeerTLSNone; g.process && g.runs {
			m.PeerTLS = policy.PeerTLSReady
		}
		if s.mistake == "the configuration counts instead of the running process" && g.configured {
			m.PeerTLS = policy.PeerTLSReady
		}
		v.Cluster.Members = append(v.Cluster.Members, m)
		record := policy.Host{
			ID: hostName(i), Name: hostName(i), PeerURL: m.PeerURL, Role: policy.RoleVoter, Health: health.OK,
			Qualified: true, Manage: true, Answered: g.answered, Own: i == h,
			InOperation: g.asked && g.request.Seen && w.op == i,
		}
		if g.asked && !g.request.Asked().Over {
			record.Wants, record.AskedAt = policy.WorkReaddress, 1
		}
		v.Hosts = append(v.Hosts, record)
	}
	if w.lock >= 0 {
		v.Lock.Held, v.Lock.Mine, v.Lock.Holder = true, w.lock == h, hostName(w.lock)
		v.Lock.ValidFor = long(bit(w.lock == h))
	}
	if w.op >= 0 {
		v.Op = &policy.Op{
			Kind: policy.KindCycle, Work: policy.WorkReaddress, Host: hostName(w.op), HostName: hostName(w.op),
			Phase: w.phase, Token: tokenNow, MemberID: memberID(w.op), PeerURL: s.url(w.op, w.opURL),
			SameBoot: true, Restarted: w.restarted && w.op == h && me.runs, WrittenFor: long(bit(w.old)),
		}
		if !w.owned {
			v.Op.Token = tokenPast
		}
	}
	s.change(&v)
	v.Self.Conflict = policy.Conflict(v)
	if s.mistake == "the request is not required" && v.Self.NewPeerURL != "" {
		v.Self.Conflict = ""
		if v.Asked == nil {
			v.Asked = &policy.Asked{
				Request: policy.Request{
					Work: policy.WorkReaddress, Reason: "it differs", By: "quorumd", Seen: true,
				},
				RebootFor: policy.Never, WaitedFor: ages,
			}
		}
	}
	return v
}

// change seeds a mistake into a view.
func (s readdressScope) change(v *policy.View) {
	own := v.Op != nil && v.Op.Host == v.Self.ID
	switch s.mistake {
	case "the new URL is not verified":
		for i := range v.Hosts {
			v.Hosts[i].Answered = v.Hosts[i].Answered || own && v.Op.Phase == policy.PhaseVerify
		}
	case "the other voters' URLs are not checked before":
		for i := range v.Hosts {
			v.Hosts[i].Answered = v.Hosts[i].Answered || own && v.Op.Phase == policy.PhaseReady
		}
	case "the answers about the URL before an undo count":
		if own && v.Op.Phase == policy.PhaseVerify && v.Self.NewPeerURL != "" {
			v.Op.Phase = policy.PhaseBack
		}
	case "an operator's end cancels an updated URL":
		if own {
			v.Op.PeerURL = v.Self.PeerURL
		}
	case "a host without an agent counts as connected":
		if own && v.Op.Phase == policy.PhaseVerify {
			for _, m := range v.Cluster.Members {
				present := slices.ContainsFunc(v.Hosts, func(h policy.Host) bool { return h.PeerURL == m.PeerURL })
				if !present {
					v.Hosts = append(v.Hosts, policy.Host{ID: m.Name, Name: m.Name, PeerURL: m.PeerURL, Answered: true})
				}
			}
		}
	case "a member without a certificate is ignored":
		eachMember(v, func(m *policy.Member) { m.PeerTLS = policy.PeerTLSReady })
	case "the certificate's address is not checked":
		v.Self.PeerFiles.Problem = ""
	case "the environment is not written":
		v.Unit.EnvReady = true
	case "a voter is stopped while another one is down":
		eachMember(v, func(m *policy.Member) { m.Live, m.LagKnown, m.LiveFor, m.SteadyFor = true, true, ages, ages })
	case "the member list is ignored":
		if v.Asked != nil {
			v.Self.NewPeerURL = ""
		}
	case "a member is recognized by its URL alone":
		if v.Self.NewPeerURL != "" && v.Asked == nil {
			v.Self.PeerURL, v.Self.NewPeerURL, v.Data.State = v.Self.NewPeerURL, "", policy.DataEmpty
			v.Self.Name, v.Self.MemberID, v.Target.Voters = "new", 0, 3
			v.Target.Standbys = 1
			v.Unit.State, v.Data.MemberID, v.Self.ClusterID = policy.UnitInactive, 0, 0
		}
	}
}

func (s readdressScope) decide(w *readdressWorld, h int) policy.Decision {
	key := readdressSeen{h, *w}
	key.faults, key.breach, key.released = 0, "", false
	for i := range key.hosts { // no agent observes these
		key.hosts[i].by, key.hosts[i].verified = [readdressHosts]bool{}, 0
		key.hosts[i].due = false
		key.hosts[i].unverified, key.hosts[i].sent, key.hosts[i].sentURL = false, false, 0
		key.hosts[i].to, key.hosts[i].listens, key.hosts[i].env = [readdressHosts]uint8{}, 0, 0
		if i != h {
			key.hosts[i].envReady, key.hosts[i].conf, key.hosts[i].unfit = false, 0, false
		}
	}
	d, known := s.cache[key]
	if !known {
		d = policy.Decide(s.view(w, h))
		s.cache[key] = d
	}
	return d
}

// stops ends the etcd of a host: all its connections end.
func (w *readdressWorld) stops(h int) {
	w.hosts[h].runs = false
	for i := range w.hosts {
		w.hosts[i].to[h], w.hosts[h].to[i] = unconnected, unconnected
	}
	if w.op == h {
		w.served = false
	}
	for i := range w.hosts {
		if w.leader == h && w.hosts[i].runs {
			w.leader = i
		}
	}
}

func (w *readdressWorld) starts(h int) {
	g := &w.hosts[h]
	g.runs, g.listens, w.restarted, g.process = true, g.env, w.restarted || w.op == h, g.configured
	if !w.hosts[w.leader].runs {
		w.leader = h
	}
}

// recordChanged marks a change of the operation's record, which all hosts have to read again.
func (w *readdressWorld) recordChanged() {
	for i := range w.hosts {
		w.hosts[i].answered = false
	}
	w.owned, w.old = true, false
}

// updated applies an update of the member list.
func (s readdressScope) updated(w *readdressWorld, h int) {
	g := &w.hosts[h]
	g.sent = false
	if w.running() < 2 || g.reg == g.sentURL {
		return
	}
	for i, other := range w.hosts {
		if s.https && g.sentURL == 1 && i != h && !other.process {
			w.breach = "no https while a member has no certificate"
		}
	}
	if s.https && g.sentURL == 1 && g.unfit {
		w.breach = "no https with an unsuitable certificate"
	}
	// the way back to a URL at which etcd still listens needs no verification
	g.reg, g.unverified, g.by = g.sentURL, g.sentURL != g.verified || g.sentURL != g.listens, [readdressHosts]bool{}
	for i := range w.hosts {
		if w.hosts[i].to[h] == connected {
			w.hosts[i].to[h] = outdated
		}
	}
}

// tidy clears what is verified, and reports two unverified members.
func (w *readdressWorld) tidy() {
	bad := 0
	for i := range w.hosts {
		g := &w.hosts[i]
		if g.unverified {
			for j := range w.hosts {
				g.by[j] = g.by[j] || j == i || w.hosts[j].to[i] == connected
			}
			g.unverified = g.by != [readdressHosts]bool{true, true, true}
		}
		if !g.unverified {
			g.verified, g.by = g.reg, [readdressHosts]bool{}
		}
		bad += int(bit(w.hosts[i].unverified))
	}
	if bad > 1 && w.breach == "" {
		w.breach = "two members whose URLs are unverified"
	}
}

// act lets a host's agent take one step.
func (s readdressScope) act(w *readdressWorld, h int) {
	d, g := s.decide(w, h), &w.hosts[h]
	if d.Notes.Request.Change == policy.RequestSeen && g.asked {
		g.request.Begun = true
		g.request = g.request.Recorded()
	}
	if d.Notes.Request.Change == policy.RequestEnds {
		g.asked, g.request = false, policy.Request{}
	}
	step, holds := d.Step, w.lock == h
	if step.Kind.Info().Locked && !holds && s.mistake != "a step does not confirm the lock" {
		return
	}
	switch step.Kind {
	case policy.StepNone:
	case policy.StepTakeLock:
		if w.lock < 0 && w.running() >= 2 {
			w.lock, w.owned = h, false
		}
	case policy.StepReleaseLock:
		if holds {
			w.lock = -1
		}
	case policy.StepBeginCycle, policy.StepRecordAgain:
		if w.op >= 0 {
			w.breach = "one operation at a time"
		}
		g.request = g.request.Begins()
		w.op, w.phase, w.opURL, w.served, w.restarted = h, policy.PhaseBegun, g.reg, false, false
		w.recordChanged()
	case policy.StepSetPhase:
		w.phase = step.Phase
		w.recordChanged()
	case policy.StepTransferLeadership:
		w.leader = int(step.MemberID) - 1
	case policy.StepUpdateMember:
		g.due, g.sentURL = true, g.conf
	case policy.StepTakeDown:
		if w.running() < readdressHosts && g.runs {
			w.breach = "quorum first"
		}
		next, valid := g.request.StopsEtcd()
		if g.request = next; valid {
			w.stops(h)
		}
	case policy.StepWriteEnv:
		g.env, g.envReady = g.conf, true
	case policy.StepStartUnit:
		if !g.runs {
			w.starts(h)
		}
		g.request = g.request.EtcdStarted()
	case policy.StepEndOp:
		if g.unverified || g.listens != g.reg && g.runs && step.Outcome == policy.Cycled {
			w.breach = "an operation ends only once the new URL is verified"
		}
		w.ended()
		if d.Notes.Request.Change == policy.RequestEnding {
			g.asked, g.request = false, policy.Request{}
		} else {
			g.request = g.request.GivenUp()
		}
	default:
		w.breach = "a changed URL changes no member: " + string(step.Kind)
	}
}

// ended deletes the record of the operation.
func (w *readdressWorld) ended() {
	w.op, w.phase, w.opURL, w.served, w.restarted = -1, "", 0, false, false
	w.recordChanged()
}

// sends sends the update that an agent has decided on, unless its host no longer holds the lock.
func (s readdressScope) sends(w *readdressWorld, h int) {
	g := &w.hosts[h]
	g.due, g.sent = false, w.lock == h || s.mistake == "a step does not confirm the lock"
	switch {
	case !g.sent:
	case w.lock != h:
		w.breach = "no change without the lock"
	case !g.asked || w.op != h:
		w.breach = "no change without a request"
	}
}

// successors returns the worlds after each possible event.
func (s readdressScope) successors(w readdressWorld) (next []readdressWorld, events []string) {
	add := func(text string, change func(n *readdressWorld)) {
		n := w
		change(&n)
		n.tidy()
		if n != w {
			next, events = append(next, n), append(events, text)
		}
	}
	quorum := w.running() >= 2
	for h := range w.hosts {
		g, name := w.hosts[h], hostName(h)
		if g.due {
			add("the agent of "+name+" sends the update", func(n *readdressWorld) { s.sends(n, h) })
		}
		if !g.runs && !g.request.Stopped {
			add("etcd of "+name+" starts", func(n *readdressWorld) { n.starts(h) })
		}
		if w.op == h && !w.old {
			add("the record of "+name+" gets old", func(n *readdressWorld) { n.old = true })
		}
		if !g.agentDown && !g.sent && !g.due {
			add("the agent of "+name+" acts", func(n *readdressWorld) { s.act(n, h) })
		}
		if w.op >= 0 && !g.agentDown && quorum && s.publishes(&w, h) {
			add(name+" publishes its record", func(n *readdressWorld) {
				n.hosts[h].answered = true
				for i := range n.hosts { // GET /version was answered by the members in question
					if s.https && i != h && (i == w.op) == (w.phase == policy.PhaseVerify) && s.dials(&w, h, i) {
						n.hosts[i].by[h] = n.hosts[i].unverified
					}
				}
			})
		}
		for i := range w.hosts {
			switch {
			case i == h || !g.runs || !w.hosts[i].runs:
			case g.to[i] != connected && s.dials(&w, h, i) && (s.https || g.to[i] == unconnected):
				add(name+" connects to "+hostName(i), func(n *readdressWorld) { n.hosts[h].to[i] = connected })
			// the other host's connection to this one makes it look active here
			case s.https && g.to[i] == unconnected && w.hosts[i].to[h] == connected:
				add(hostName(i)+" looks active to "+name, func(n *readdressWorld) { n.hosts[h].to[i] = outdated })
			}
		}
		if s.https {
			s.corrections(&w, h, add)
		}
		if g.sent {
			add("the update of "+name+" lands", func(n *readdressWorld) { s.updated(n, h) })
			add("the update of "+name+" is lost", func(n *readdressWorld) { n.hosts[h].sent = false })
		}
		if g.agentDown {
			add("the agent of "+name+" starts", func(n *readdressWorld) { n.hosts[h].agentDown = false })
			if w.lock == h {
				add("the lock of "+name+" expires", func(n *readdressWorld) { n.lock = -1 })
			}
		}
		if w.op == h && g.runs && !w.served && quorum {
			add(name+" has served for long enough", func(n *readdressWorld) { n.served = true })
		}
		if w.faults < s.faults {
			s.faultsOf(&w, h, add)
		}
	}
	return next, events
}

// publishes reports whether a host's agent answers the operation's record; see round.AnswersNow.
func (s readdressScope) publishes(w *readdressWorld, h int) bool {
	g := w.hosts[h]
	if s.mistake == "a record is published before the connection" {
		return true
	}
	answers := func(i int) bool { // GET /version
		return s.mistake == "an active connection counts as an answer" || !s.https || w.hosts[i].reg == 0 ||
			g.configured && !g.unfit && w.hosts[i].process && !w.hosts[i].unfit && w.hosts[i].listens == 1
	}
	switch w.phase {
	case policy.PhaseVerify:
		probed := w.hosts[w.op].reg == w.hosts[w.op].listens // by the agent, at the registered URL
		return h == w.op || g.to[w.op] != unconnected && probed && answers(w.op)
	case policy.PhaseReady:
		for i := range w.hosts {
			if i != h && i != w.op && (g.to[i] == unconnected || w.hosts[i].reg != w.hosts[i].listens || !answers(i)) {
				return false // the agent's own probe of the registered URL fails
			}
		}
		return true
	}
	return false
}

// corrections are what operators do so that every host has a suitable certificate, while no operation is in flight.
func (s readdressScope) corrections(w *readdressWorld, h int, add func(string, func(*readdressWorld))) {
	g, name := &w.hosts[h], hostName(h)
	if g.unfit {
		add("an operator renews the certificate of "+name, func(n *readdressWorld) { n.hosts[h].unfit = false })
	}
	if !g.process && g.runs && w.op < 0 && w.running() == readdressHosts && w.lock < 0 {
		add("etcd of "+name+" is restarted with its certificate", func(n *readdressWorld) {
			n.stops(h)
			n.starts(h)
		})
	}
}

func (s readdressScope) faultsOf(w *readdressWorld, h int, add func(string, func(*readdressWorld))) {
	g, name := w.hosts[h], hostName(h)
	fault := func(text string, change func(n *readdressWorld)) {
		add(text, func(n *readdressWorld) { n.faults++; change(n) })
	}
	if !g.agentDown {
		fault("the agent of "+name+" crashes", func(n *readdressWorld) {
			n.hosts[h].agentDown, n.hosts[h].envReady, n.hosts[h].answered = true, false, false
			n.hosts[h].due = false
		})
	}
	if g.runs && w.running() == readdressHosts {
		fault("etcd of "+name+" crashes", func(n *readdressWorld) { n.stops(h) })
	}
	if g.due && w.lock == h {
		fault("the lock of "+name+" expires, because its agent is paused", func(n *readdressWorld) { n.lock = -1 })
	}
	if w.op == h && !g.sent && !g.due {
		fault("an operator releases the operation of "+name, func(n *readdressWorld) {
			n.ended()
			n.released = true
		})
	}
	if g.asked && !g.request.Ended && !g.agentDown {
		fault("an operator ends the request of "+name, func(n *readdressWorld) {
			next, cancelled, _ := n.hosts[h].request.Finished(false, false)
			if n.hosts[h].request = next; cancelled {
				n.hosts[h].asked, n.hosts[h].request = false, policy.Request{}
			}
		})
	}
	if !g.agentDown {
		fault("an operator changes the configuration of "+name, func(n *readdressWorld) {
			n.hosts[h].conf, n.hosts[h].envReady = 1-n.hosts[h].conf, false
		})
	}
}

func (s readdressScope) initial() readdressWorld {
	w := readdressWorld{lock: -1, op: -1}
	for h := range w.hosts {
		g := &w.hosts[h]
		g.runs = true
		if s.https {
			g.certificates = certificates{process: h != readdressHosts-1, configured: true, unfit: h == 1}
		}
		for i := range w.hosts {
			if i != h {
				g.to[i] = connected
			}
		}
		if h < s.changed {
			g.conf = 1
			g.asked = !slices.Contains([]string{
				"a member is recognized by its URL alone", "the request is not required",
			}, s.mistake)
			if g.asked {
				g.request = policy.Request{Work: policy.WorkReaddress, By: "root", Reason: "testing"}
			}
		}
	}
	return w
}

// explore returns the first broken promise with its trace, or an empty string, and the number of states. It also finds
// worlds from which no course of events without faults ends with every host done.
func (s readdressScope) explore() (string, int) {
	s.cache = map[readdressSeen]policy.Decision{}
	type edge struct {
		from  int
		event string
	}
	first := s.initial()
	all, number, came := []readdressWorld{first}, map[readdressWorld]int{first: 0}, []edge{{-1, ""}}
	var before [][]int // predecessors without a fault
	trace := func(i int) string {
		var lines []string
		for ; came[i].from >= 0; i = came[i].from {
			lines = append(lines, came[i].event)
		}
		slices.Reverse(lines)
		return strings.Join(lines, "\n")
	}
	before = append(before, nil)
	for i := 0; i < len(all); i++ {
		next, events := s.successors(all[i])
		for k, n := range next {
			at, known := number[n]
			if !known {
				at = len(all)
				all, number[n], came = append(all, n), at, append(came, edge{i, events[k]})
				before = append(before, nil)
			}
			if n.breach != "" {
				return n.breach + "\n" + trace(at), len(all)
			}
			if n.faults == all[i].faults {
				before[at] = append(before[at], i)
			}
		}
	}
	ends, queue := make([]bool, len(all)), []int{}
	for i, w := range all {
		if w.op < 0 && w.quiet() || w.released { // after a release, operators repair what is left
			ends[i], queue = true, append(queue, i)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, p := range before[queue[0]] {
			if !ends[p] {
				ends[p], queue = true, append(queue, p)
			}
		}
	}
	if i := slices.Index(ends, false); i >= 0 {
		return fmt.Sprintf("every request ends\n%s\n%+v", trace(i), all[i]), len(all)
	}
	return "", len(all)
}

// quiet reports whether all requests have ended, every etcd runs, and every URL is verified.
func (w *readdressWorld) quiet() bool {
	for _, h := range w.hosts {
		if h.asked || !h.runs || h.unverified || h.agentDown || h.sent || h.listens != h.reg {
			return false
		}
	}
	return true
}

func TestNeverTwoMembersHaveUnverifiedURLsInAnyOrderOfEvents(t *testing.T) {
	t.Parallel()
	for _, s := range []readdressScope{
		{changed: 1},
		{changed: 2},
		{changed: 3},
		{changed: 2, faults: 1},
		{changed: 1, faults: 2}, // such as an undo while another voter is down
		{changed: 2, https: true},
		{changed: 2, faults: 1, https: true},
	} {
		broken, states := s.explore()
		t.Logf("%d changed URLs, %d faults, https %t: %d states", s.changed, s.faults, s.https, states)
		if broken != "" {
			t.Fatalf("%+v: %s", s, broken)
		}
	}
}

func TestEveryMistakeInAReaddressBreaksItsPromise(t *testing.T) {
	t.Parallel()
	for mistake, promise := range map[string]string{
		"the new URL is not verified":                   "an operation ends only once the new URL is verified",
		"a record is published before the connection":   "an operation ends only once the new URL is verified",
		"a host without an agent counts as connected":   "an operation ends only once the new URL is verified",
		"an operator's end cancels an updated URL":      "an operation ends only once the new URL is verified",
		"the environment is not written":                "every request ends",
		"a voter is stopped while another one is down":  "quorum first",
		"the request is not required":                   "no change without a request",
		"a member is recognized by its URL alone":       "a changed URL changes no member",
		"a step does not confirm the lock":              "no change without the lock",
		"the member list is ignored":                    "every request ends",
		"the other voters' URLs are not checked before": "two members whose URLs are unverified",
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			s := readdressScope{changed: 2, faults: 1, mistake: mistake}
			broken, states := s.explore()
			if got, _, _ := strings.Cut(broken, "\n"); got == "" || !strings.HasPrefix(got, promise) {
				t.Errorf("%d states: broke %q, want %q", states, broken, promise)
			}
		})
	}
}

func TestAnUndoWhileAnotherVoterIsDownIsVerifiedAgain(t *testing.T) {
	t.Parallel()
	s := readdressScope{changed: 1, faults: 2, mistake: "the answers about the URL before an undo count"}
	broken, states := s.explore()
	if !strings.HasPrefix(broken, "an operation ends only once the new URL is verified") {
		t.Errorf("%d states: broke %q", states, broken)
	}
}

func TestEveryMistakeInAChangeToHTTPSBreaksItsPromise(t *testing.T) {
	t.Parallel()
	const (
		without  = "no https while a member has no certificate"
		verified = "an operation ends only once the new URL is verified"
	)
	for mistake, promise := range map[string]string{
		"a member without a certificate is ignored":               without,
		"the configuration counts instead of the running process": without,
		"the certificate's address is not checked":                "no https with an unsuitable certificate",
		"an active connection counts as an answer":                verified,
		"the other voters' URLs are not checked before":           "two members whose URLs are unverified",
	} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			s := readdressScope{changed: 2, faults: 1, mistake: mistake, https: true}
			broken, states := s.explore()
			if got, _, _ := strings.Cut(broken, "\n"); got == "" || !strings.HasPrefix(got, promise) {
				t.Errorf("%d states: broke %q, want %q", states, broken, promise)
			}
		})
	}
}
