// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// The states of the connection of a host's etcd to another member.
const (
	unconnected uint8 = iota
	connected         // this etcd has connected to the registered URL
	outdated          // etcd reports it as active, but it is to an old URL, or the other etcd has established it
)

// readdressHosts is the number of voters in the worlds in which operators change peer URLs. Every peer URL is the old
// or the new one of its host.
const readdressHosts = 3

// readdressHost is a host of a readdressWorld.
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
	by                      [readdressHosts]bool // the members that have connected since
	verified                uint8                // the last URL at which all others have connected
	certificates
}

// certificates describes the certificates of a host in the worlds in which the new URLs are https.
type certificates struct {
	process, configured bool // the running etcd has a certificate; the configuration names one
	unfit               bool // the configured certificate is not valid for the host's address
}

// readdressWorld is one state.
type readdressWorld struct {
	hosts  [readdressHosts]readdressHost
	leader int
	lock   int // the holder, or -1
	op     int // the host of the operation, or -1
	phase  policy.OpPhase
	opURL  uint8 // the URL that was registered when the operation began
	served bool  // the operation's member has served for the required time
	owned  bool  // the operation record has the token of the current lock
	old    bool  // the operation record has not changed for longer than every limit
	// restarted means that etcd of the operation's host has started since the operation began.
	restarted bool
	released  bool // an operator has released an operation
	faults    int
	breach    string // the promise that the last event broke
}

// readdressScope limits the events to explore, and may seed a mistake.
type readdressScope struct {
	changed int // the number of hosts with a changed URL in their configuration and a request for a readdress
	faults  int
	mistake string
	// https makes every new URL an https one. At first, the running etcd of the last host has no certificate, although
	// one is configured, and the certificate of the second host is not valid for the host's address. Operators correct
	// that.
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
	me, v := w.hosts[h], voterView(h, readdressHosts)
	quorum := w.running() >= 2
	v.Self.PeerURL, v.Unit.State = s.url(h, me.reg), policy.UnitInactive
	v.Unit.EnvReady, v.Unit.EnvBegun = me.envReady, me.envReady
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
		return withoutQuorum(v)
	}
	v.Self.PeerFiles = policy.PeerFiles{Configured: me.configured, Checked: true}
	if me.unfit {
		v.Self.PeerFiles.Problem = "the certificate lacks the address"
	}
	if me.conf != me.reg {
		v.Self.NewPeerURL = s.url(h, me.conf)
	}
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
	case "the other voters' URLs are not checked first":
		for i := range v.Hosts {
			v.Hosts[i].Answered = v.Hosts[i].Answered || own && v.Op.Phase == policy.PhaseReady
		}
	case "answers about the previous URL count after an undo":
		if own && v.Op.Phase == policy.PhaseVerify && v.Self.NewPeerURL != "" {
			v.Op.Phase = policy.PhaseBack
		}
	case "ending the request cancels an updated URL":
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
	for i := range key.hosts { // no agent observes these fields
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

// tidy marks members whose URLs are verified, and records a breach if two are unverified.
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
		w.breach = "two members have unverified URLs"
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

// quiet reports whether all requests have ended, every agent and every etcd runs, no update is in flight, and every
// registered URL is verified and in use.
func (w *readdressWorld) quiet() bool {
	for _, h := range w.hosts {
		if h.asked || !h.runs || h.unverified || h.agentDown || h.sent || h.listens != h.reg {
			return false
		}
	}
	return true
}
