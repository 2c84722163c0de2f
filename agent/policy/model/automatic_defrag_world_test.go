// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// These worlds explore when agents request the defragmentation of their own members, and when these operations begin.
// Here an operation only begins and ends; the scopes of the model explore its steps, and the races for the lock.

// The promises that mistakes break.
const (
	defragOnlyIfDue      = "no defragmentation is requested outside a window below 90 % of the quota"
	defragOnlyIfUseful   = "no defragmentation that frees too little is requested"
	defragOnlyOneRequest = "no defragmentation is requested while another host waits"
	defragNotTooSoon     = "no defragmentation is requested too soon after the last one"
	defragStillDue       = "no defragmentation begins after its trigger has ended"
)

type fileState uint8

const (
	compact    fileState = iota // nothing to free
	fragmented                  // worth a defragmentation
	nearlyFull                  // the file has reached 90 % of its quota, and half of it is free
	filled                      // the file has reached 90 % of its quota, and the data in use fills it
)

// database returns the size of a file in this state.
func (f fileState) database() policy.Database {
	d := policy.Database{Size: 400 << 20, InUse: 390 << 20, Quota: 1 << 30}
	switch f {
	case fragmented:
		d.Size = 700 << 20
	case nearlyFull:
		d.Size, d.InUse = 1000<<20, 500<<20
	case filled:
		d.Size, d.InUse = 1000<<20, 960<<20
	}
	return d
}

// How long ago the last request for a defragmentation of a host ended.
const (
	longAgo     uint8 = iota // more than a day, or never
	hoursAgo                 // more than an hour
	momentsAgo               // less than an hour
	defragHosts = 3
)

// defragHost is a host in these worlds.
type defragHost struct {
	file      fileState
	ended     uint8
	forgotten bool                 // its agent has restarted and has no record of ended; only if a mistake is seeded
	due       bool                 // a defragmentation has been due for long enough
	asked     bool                 // it has a request on its disk
	pending   policy.RequestChange // the change in flight to its disk
	down      bool                 // its agent does not run
}

// defragWorld is one state.
type defragWorld struct {
	hosts  [defragHosts]defragHost
	open   bool // a maintenance window is open
	lock   int  // the holder, or -1
	op     int  // the host that is taken down, or -1
	faults int
	breach string
}

// defragScope limits the events to explore, and may seed a mistake.
type defragScope struct {
	files   [defragHosts]fileState
	faults  int
	mistake string
}

func (s defragScope) initial() defragWorld {
	w := defragWorld{lock: -1, op: -1}
	for h := range w.hosts {
		w.hosts[h].file = s.files[h]
	}
	return w
}

func (s defragScope) view(w *defragWorld, h int) policy.View {
	me, v := w.hosts[h], voterView(h, defragHosts)
	v.Space.Automatic = policy.AutomaticDefrag{
		Windows: true, DueFor: long(bit(me.due)), Ended: [...]time.Duration{ages, 2 * time.Hour, 0}[me.ended],
	}
	if !w.open {
		v.Space.Automatic.Shut = "no window is open"
	}
	if me.forgotten {
		v.Space.Automatic.Ended = policy.Never
	}
	if me.asked {
		request := policy.Request{Work: policy.WorkDefrag, By: "quorumd", Reason: "due", Automatic: true}
		asked := request.Asked()
		v.Asked = &asked
		v.Asked.WaitedFor, v.Asked.RebootFor = ages, policy.Never
		v.Asked.Command = policy.Hooks{State: policy.HooksDue}
	}
	for i, g := range w.hosts {
		m := policy.Member{
			ID: memberID(i), Name: hostName(i), PeerURL: hostName(i), Live: w.op != i, Leader: i == 0,
			Version: etcdVersion(), LagKnown: true, LiveFor: ages, SteadyFor: ages, Database: g.file.database(),
		}
		v.Cluster.Members = append(v.Cluster.Members, m)
		if g.down {
			continue
		}
		host := policy.Host{
			ID: hostName(i), Name: hostName(i), PeerURL: m.PeerURL, Role: policy.RoleVoter, Health: health.OK,
			Qualified: true, Manage: true, Own: i == h, InOperation: w.op == i,
		}
		if g.asked {
			host.Wants, host.AskedAt = policy.WorkDefrag, int64(i)
		}
		v.Hosts = append(v.Hosts, host)
	}
	if w.lock >= 0 {
		v.Lock.Held, v.Lock.Mine, v.Lock.Holder = true, w.lock == h, hostName(w.lock)
		v.Lock.ValidFor = long(bit(w.lock == h))
	}
	if w.op >= 0 {
		v.Op = &policy.Op{
			Kind: policy.KindCycle, Work: policy.WorkDefrag, Host: hostName(w.op), HostName: hostName(w.op),
			Phase: policy.PhaseDown, Token: tokenNow, MemberID: memberID(w.op), PeerURL: hostName(w.op), SameBoot: true,
		}
	}
	s.change(&v)
	return v
}

// change seeds a mistake into a view.
func (s defragScope) change(v *policy.View) {
	switch s.mistake {
	case "the window is ignored":
		v.Space.Automatic.Shut = ""
	case "the time of the last defragmentation is ignored":
		v.Space.Automatic.Ended = policy.Never
	case "the data in use is ignored":
		eachMember(v, func(m *policy.Member) { m.Database.InUse = 1 })
	case "a request outlasts its window":
		if v.Asked != nil {
			v.Asked.Automatic = false
		}
	case "another host's lock and operation are ignored":
		if v.Op == nil || v.Op.Host != v.Self.ID {
			v.Op, v.Lock.Held, v.Lock.Mine, v.Lock.ValidFor = nil, v.Asked != nil, v.Asked != nil, ages
			eachMember(v, func(m *policy.Member) { m.Live = true })
		}
	case "hosts in the queue are ignored":
		for i := range v.Hosts {
			v.Hosts[i].Wants = ""
		}
	case "the lock is never free":
		v.Lock.Held, v.Lock.Mine, v.Lock.Holder = true, false, "X"
	case "a defragmentation is never due for long enough":
		v.Space.Automatic.DueFor = 0
	}
}

// act lets a host's agent decide, and take one step. The change of its request is in flight from then on.
func (s defragScope) act(w *defragWorld, h int) {
	g := &w.hosts[h]
	d := policy.Decide(s.view(w, h))
	trigger := g.file == nearlyFull || g.file == fragmented && w.open
	switch d.Notes.Request.Change {
	case policy.RequestDefrag:
		w.breaks(!trigger && g.file != fragmented, defragOnlyIfUseful)
		w.breaks(!trigger, defragOnlyIfDue)
		w.breaks(g.ended == momentsAgo || g.ended == hoursAgo && g.file != nearlyFull,
			defragNotTooSoon)
		for i, other := range w.hosts {
			w.breaks(i != h && !other.down && other.asked, defragOnlyOneRequest)
		}
		g.pending = policy.RequestDefrag
	case policy.RequestWithdrawn:
		g.pending = policy.RequestWithdrawn
	}
	switch d.Step.Kind {
	case policy.StepTakeLock:
		if w.lock < 0 {
			w.lock = h
		}
	case policy.StepReleaseLock:
		w.lock = -1
	case policy.StepBeginCycle:
		w.breaks(w.op >= 0 || w.lock != h, "one member at a time is down")
		w.breaks(!trigger, defragStillDue)
		w.op = h
	}
}

func (w *defragWorld) breaks(broken bool, promise string) {
	if broken && w.breach == "" {
		w.breach = promise
	}
}

// written applies the pending change of a host's request to its disk.
func (w *defragWorld) written(h int) {
	g := &w.hosts[h]
	switch {
	case g.pending == policy.RequestDefrag:
		g.asked = true
	case w.op != h: // otherwise the operation has begun since the decision
		g.asked = false
	}
	g.pending = policy.RequestStays
}

// ends ends a host's request, and its operation if that is in flight.
func (s defragScope) ends(w *defragWorld, h int, file fileState) {
	g := &w.hosts[h]
	g.file, g.asked, g.ended, g.pending = file, false, momentsAgo, policy.RequestStays
	if w.op == h {
		w.op, w.lock = -1, -1
	}
}

// successors returns the worlds after each possible event.
func (s defragScope) successors(w defragWorld) (next []defragWorld, events []string) {
	add := func(text string, change func(n *defragWorld)) {
		n := w
		change(&n)
		for h := range n.hosts { // the time for which a defragmentation has been due starts over when it is not due
			n.hosts[h].due = n.hosts[h].due && !n.hosts[h].down && policy.DefragDue(s.view(&n, h))
		}
		if n != w {
			next, events = append(next, n), append(events, text)
		}
	}
	for h, g := range w.hosts {
		name := hostName(h)
		if g.down {
			add("the agent of "+name+" starts", func(n *defragWorld) {
				n.hosts[h].down = false
				n.hosts[h].forgotten = s.mistake == "a restarted agent has forgotten the last defragmentation"
			})
			continue
		}
		switch {
		case w.op == h:
			add("the defragmentation of "+name+" is done", func(n *defragWorld) { s.ends(n, h, compact) })
		case g.pending != policy.RequestStays:
			add("the request of "+name+" is written", func(n *defragWorld) { n.written(h) })
			fallthrough
		default:
			add("the agent of "+name+" acts", func(n *defragWorld) { s.act(n, h) })
			add("a defragmentation of "+name+" has been due for a while", func(n *defragWorld) {
				n.hosts[h].due = true
			})
		}
		if g.ended > longAgo {
			add("time passes on "+name, func(n *defragWorld) { n.hosts[h].ended-- })
		}
	}
	if w.lock >= 0 && w.op < 0 && w.hosts[w.lock].down {
		add("the lock expires", func(n *defragWorld) { n.lock = -1 })
	}
	add("a window opens or closes", func(n *defragWorld) { n.open = !n.open })
	if w.faults < s.faults {
		s.faultsOf(&w, add)
	}
	return next, events
}

func (s defragScope) faultsOf(w *defragWorld, add func(string, func(*defragWorld))) {
	fault := func(text string, change func(n *defragWorld)) {
		add(text, func(n *defragWorld) { n.faults++; change(n) })
	}
	for h, g := range w.hosts {
		name := hostName(h)
		if !g.down {
			fault("the agent of "+name+" crashes", func(n *defragWorld) {
				n.hosts[h].down, n.hosts[h].pending = true, policy.RequestStays
			})
		}
		if w.op == h {
			fault("the defragmentation of "+name+" fails", func(n *defragWorld) { s.ends(n, h, g.file) })
		} else if g.asked {
			fault("an operator cancels the request of "+name, func(n *defragWorld) { s.ends(n, h, g.file) })
		}
		if w.op != h && g.file < filled {
			fault("clients fill the file of "+name, func(n *defragWorld) { n.hosts[h].file++ })
		}
	}
}

// done reports whether nothing is left to free, and nothing is in flight.
func (w *defragWorld) done() bool {
	for _, g := range w.hosts {
		if g.file == fragmented || g.file == nearlyFull || g.asked || g.pending != policy.RequestStays {
			return false
		}
	}
	return w.op < 0 && w.lock < 0
}
