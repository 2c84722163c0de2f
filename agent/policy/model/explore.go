// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

// Scenario is a scope to explore.
type Scenario struct {
	Name      string
	Hosts     int // at most 5
	Voters    int // hosts that are live voters at the start; with 0 a bootstrap is requested
	Target    policy.Target
	Faults    Faults
	Budget    int   // the maximum number of faults in a trace
	MaxStates int   // the exploration stops at this number; 0 for no limit
	Requests  int   // the maximum number of requested host operations
	Work      uint8 // the only work that is requested, apart from a readdress; 0 for any
	Readdress bool  // operators may also request readdresses
	Removals  int   // the maximum number of requested removals
	ResizeTo  int   // an operator resizes the cluster to this size at any moment, and back; 0 for never
	// Retirements limits what operators do about retirements. At most twice this number of times, they retire a host,
	// undo its retirement, or change its successor.
	Retirements int
	// Successor lets operators name the host that replaces the retired one, instead of leaving the choice open.
	Successor   bool
	Transfers   int          // the maximum number of leadership transfers that operators request
	Repair      bool         // dead voters are replaced
	Unhealthy   bool         // unhealthy voters are replaced
	Tardy       bool         // an unhealthy voter that does not answer is too slow rather than hung
	Corrupt     bool         // the alarm is CORRUPT instead of NOSPACE
	Divided     bool         // the CORRUPT alarm means a finding: no majority of the voters has the same data
	CorruptData bool         // an unhealthy voter's data is corrupt; that voter leads while the alarm is raised
	External    bool         // an external manager runs etcd, and stops it when a host is reported safe to stop
	Defrag      bool         // a command is a defragmentation, which deletes the old database at its end
	Learner     LearnerScope // the state of the last host's permanent learner at the start
	MaxLearners uint8        // the limit on learners that every host configures, at most 3; 0 is etcd's default, 1
	Lowered     bool         // the first host's etcd has the limit 1 until an operator restarts it
	NextLimit   uint8        // the limit on learners with which every etcd starts next; 0: unknown
	Unwilling   bool         // the second host is configured without standbys
	Upgrade     bool         // an upgrade is paused: only the first host's member still runs the older version
	Founders    int          // the number of hosts with a bootstrap request if there are no voters; 0 means 1
	// Liveness makes the exploration check from every state whether the cluster reaches its target and becomes
	// quiescent.
	Liveness bool
	// Long marks a scope that takes minutes or most of a typical machine's memory, and is not explored for every
	// change.
	Long bool
}

// LearnerScope selects whether a scenario has a permanent learner, and how it begins.
type LearnerScope uint8

// The scopes. The zero value means that the scenario has no permanent learner.
const (
	NoLearner     LearnerScope = iota
	LearnerJoins               // the learner's host has no member at the start
	LearnerListed              // the permanent learner is a member at the start
	// LearnerDropped starts with the learner next to a standby. The learner's host is no longer configured to have a
	// permanent learner, so the learner is a second standby.
	LearnerDropped
	LearnerThird // the learner's host has no member at the start, and the two previous hosts are standbys
)

// Result holds the figures and the outcome of an exploration.
type Result struct {
	Scenario    Scenario
	States      int
	Transitions int
	Depth       int
	Complete    bool // the exploration found all states, so none remains to be explored
	Breach      *Breach
	Steps       map[policy.StepKind]bool   // the steps that the policy decided on
	Reasons     map[policy.ReasonCode]bool // the reasons that the policy returned
	Phases      map[Phase]bool             // the phases that a view contained
	Took        time.Duration
}

// Phase is a kind of operation and one of its phases.
type Phase struct {
	Kind  string
	Phase policy.OpPhase
}

// Breach is a broken promise, with the shortest trace that breaks it.
type Breach struct {
	Promise string // the promise's number in the design, such as "P2", or "liveness"
	Text    string
	Trace   string
}

// machine is one worker's model: a scenario under rules.
type machine struct {
	Scenario
	rules
	faults     Faults
	budget     int
	inOrder    bool                   // hosts rank by number, as in a liveness run
	bootsHosts bool                   // every host that is down will boot, as in a liveness run with all faults healed
	staysTardy bool                   // an unhealthy voter stays too slow to answer; see ending
	cache      map[observation]uint32 // the decisions for an observation, as an index into choices
	choices    []*[ranks]choice
	numbers    map[[ranks]choice]uint32
	live       map[uint64]struct{} // hashes of worlds from which a liveness run ends as required
	reached    *Result
	scratch    world
	watch      func(e event, before, after *world) // called for every transition; may be nil
}

func newMachine(sc Scenario, r rules) *machine {
	return &machine{
		Scenario: sc, rules: r, faults: sc.Faults, budget: sc.Budget, cache: map[observation]uint32{},
		numbers: map[[ranks]choice]uint32{}, live: map[uint64]struct{}{},
		reached: &Result{
			Steps: map[policy.StepKind]bool{}, Reasons: map[policy.ReasonCode]bool{}, Phases: map[Phase]bool{},
		},
	}
}

// decide returns the real policy's decisions for an observation, one for every rank. It calls the policy once for each
// observation and rank.
func (m *machine) decide(s *observation) *[ranks]choice {
	if n, ok := m.cache[*s]; ok {
		return m.choices[n]
	}
	var all [ranks]choice
	for r := range ranks {
		v := m.viewOf(s, r)
		if m.view != nil {
			m.view(&v)
		}
		d := policy.Decide(v)
		if m.decision != nil {
			m.decision(&d)
		}
		m.reached.Steps[d.Step.Kind] = true
		if v.Op != nil {
			m.reached.Phases[Phase{v.Op.Kind, v.Op.Phase}] = true
		}
		for _, r := range d.Reasons {
			m.reached.Reasons[r.Code] = true
		}
		m.reached.Reasons[d.Step.Outcome] = true
		all[r] = s.choose(&v, d)
		all[r].quiet = m.quiet(v, d)
		all[r].inVain = m.beginsInVain(s, r, d.Step)
	}
	n, ok := m.numbers[all]
	if !ok {
		n = uint32(len(m.choices))
		m.numbers[all], m.choices = n, append(m.choices, &all)
	}
	m.cache[*s] = n
	return m.choices[n]
}

// viewOf returns the view for an observation, with the settings of the scenario.
func (m *machine) viewOf(s *observation, r rank) policy.View {
	v := s.view(m.target(s.resized), r)
	s.upgradeView(&v)
	if m.Repair {
		v.Limits.DeadGrace, v.Limits.RepairsPerDay = 10*time.Minute, 2
	}
	if m.Unhealthy {
		v.Limits.UnhealthyGrace, v.Limits.RepairsPerDay = 10*time.Minute, 2
	}
	if s.isUnwilling(int(s.self)) {
		v.Target.Standbys = 0
	}
	v.Self.Drives = !m.External
	v.Self.NextLearners, v.Self.NextLearnersFrom = int(m.NextLimit), "/etc/etcd.env"
	if m.Defrag && v.Asked != nil && v.Asked.Work == policy.WorkCommand {
		v.Asked.Work, v.Asked.Program = policy.WorkDefrag, ""
	}
	switch {
	case m.CorruptData:
		m.addCorruptData(s, &v)
	default:
		m.addAlarm(s, &v)
	}
	return v
}

// beginsInVain reports whether a host begins a join, a replacement or a leave that it would roll back or end in the
// next round, although nothing has changed.
func (m *machine) beginsInVain(s *observation, r rank, step policy.Step) bool {
	kinds := map[policy.StepKind]string{
		policy.StepBeginJoin: policy.KindJoin, policy.StepBeginReplace: policy.KindReplace,
		policy.StepBeginLeave: policy.KindLeave,
	}
	kind, begins := kinds[step.Kind]
	if !begins || m.decision != nil || kind == policy.KindJoin && s.hosts[s.self].list != unlisted {
		return false // beginning in vain is useful if the host has a learner, because the rollback removes it
	}
	v := m.viewOf(s, r)
	v.Op = &policy.Op{
		Kind: kind, Host: v.Self.ID, HostName: v.Self.Name, PeerURL: v.Self.PeerURL, Target: step.Target,
		Phase: policy.PhaseBegun, Token: v.Lock.Token, SameBoot: true,
	}
	switch kind {
	case policy.KindReplace:
		v.Op.Replaces = step.MemberID
	case policy.KindLeave:
		v.Op.MemberID = step.MemberID
	}
	if m.view != nil {
		m.view(&v)
	}
	next := policy.Decide(v).Step
	return next.Kind == policy.StepRollBack || next.Kind == policy.StepEndOp
}

// initial returns the initial world of a scenario.
func (sc Scenario) initial() world {
	w := world{n: sc.Hosts, lock: -1, stable: 1, idleTime: 1}
	for i := range sc.Voters {
		w.hosts[i] = host{list: voter, named: 1, unit: active, data: current, recorded: 1}
	}
	w.limit = sc.MaxLearners
	if sc.Learner == LearnerJoins || sc.Learner == LearnerListed || sc.Learner == LearnerThird {
		w.permanent = uint8(sc.Hosts)
	}
	listed := host{list: learner, named: 1, unit: active, data: current, recorded: 1, progress: steady}
	switch sc.Learner {
	case LearnerListed:
		w.hosts[sc.Hosts-1] = listed
	case LearnerDropped:
		w.hosts[sc.Hosts-1], w.hosts[sc.Hosts-2] = listed, listed
	case LearnerThird:
		w.hosts[sc.Hosts-2], w.hosts[sc.Hosts-3] = listed, listed
	}
	w.lowered, w.unwilling, w.oldest = bit(sc.Lowered), 2*bit(sc.Unwilling), bit(sc.Upgrade)
	for i := range max(1, sc.Founders) {
		w.hosts[i].request = bit(sc.Voters == 0)
	}
	w.tidy()
	return w
}

// ref is the number of a state in the table: the shard, and the index in that shard.
type ref uint32

const shards = 8

func refTo(shard, index int) ref { return ref(index*shards + shard) }

func (r ref) shard() int { return int(r % shards) }
func (r ref) index() int { return int(r / shards) }

// node is a state that was found, and its predecessor.
type node struct {
	key    key
	parent ref
}

// candidate is a successor to insert into the table unless the table contains it.
type candidate struct {
	node
	hash  uint64
	found breach
}

// before orders breaches, so that the number of workers does not decide which one is reported.
func (f candidate) before(g candidate) bool {
	if f.found != g.found {
		return f.found < g.found
	}
	return slices.Compare(f.key[:], g.key[:]) < 0
}

// shard is a part of the table: states in the order of their discovery, found by open addressing.
type shard struct {
	nodes []node
	table []uint32 // index into nodes plus 1
}

// worker expands states and queues their successors for the table, by shard.
type worker struct {
	*machine
	out         [shards][]candidate
	transitions int
}

// explorer is one exploration: a breadth-first search through the table.
type explorer struct {
	sc       Scenario
	workers  []*worker
	shards   [shards]shard
	result   Result
	breachAt candidate
	broken   bool
}

func explore(ctx context.Context, sc Scenario, r rules, workers int) Result {
	return newExplorer(sc, r, workers).run(ctx)
}

func newExplorer(sc Scenario, r rules, workers int) *explorer {
	x := &explorer{sc: sc, result: Result{
		Scenario: sc, Steps: map[policy.StepKind]bool{}, Phases: map[Phase]bool{},
		Reasons: map[policy.ReasonCode]bool{},
	}}
	for range max(1, workers) {
		x.workers = append(x.workers, &worker{machine: newMachine(sc, r)})
	}
	for i := range x.shards {
		x.shards[i].grow(1 << 10)
	}
	return x
}

func (x *explorer) run(ctx context.Context) Result {
	began := time.Now()
	w := x.sc.initial()
	k := w.canonical()
	h := hash(&k)
	x.shards[h%shards].insert(candidate{node: node{key: k}, hash: h})
	x.search(ctx)
	if x.broken {
		x.result.Breach = x.trace(x.breachAt)
	}
	x.result.States = x.states()
	for _, m := range x.workers {
		x.result.Transitions += m.transitions
		maps.Copy(x.result.Steps, m.reached.Steps)
		maps.Copy(x.result.Phases, m.reached.Phases)
		maps.Copy(x.result.Reasons, m.reached.Reasons)
	}
	x.result.Took = time.Since(began)
	return x.result
}

func (x *explorer) states() int {
	n := 0
	for i := range x.shards {
		n += len(x.shards[i].nodes)
	}
	return n
}

// batch is the maximum number of states of a shard that are expanded before their successors are added to the table.
const batch = 1 << 14

func (x *explorer) search(ctx context.Context) {
	var from [shards]int
	for !x.broken {
		to, more := x.ends(), false
		for i := range to {
			more = more || from[i] < to[i]
		}
		if !more {
			break
		}
		for from != to && !x.broken {
			if ctx.Err() != nil || (x.sc.MaxStates > 0 && x.states() >= x.sc.MaxStates) {
				return
			}
			x.expandBatch(&from, to)
		}
		if x.ends() != to {
			x.result.Depth++
		}
	}
	x.result.Complete = !x.broken
}

// ends returns the current length of each shard.
func (x *explorer) ends() (ends [shards]int) {
	for i := range x.shards {
		ends[i] = len(x.shards[i].nodes)
	}
	return ends
}

// expandBatch expands up to batch states of every shard and advances from. If it finds several breaches, it keeps the
// first in the order of candidate.before.
func (x *explorer) expandBatch(from *[shards]int, to [shards]int) {
	var list []ref
	for s := range from {
		end := min(to[s], from[s]+batch)
		for i := from[s]; i < end; i++ {
			list = append(list, refTo(s, i))
		}
		from[s] = end
	}
	share := (len(list) + len(x.workers) - 1) / len(x.workers)
	x.inParallel(func(i int) {
		x.expandSome(x.workers[i], list[min(len(list), i*share):min(len(list), (i+1)*share)])
	})
	for _, m := range x.workers {
		for s := range m.out {
			for _, f := range m.out[s] {
				if f.found != fine && (!x.broken || f.before(x.breachAt)) {
					x.broken, x.breachAt = true, f
				}
			}
		}
	}
	x.inParallel(func(i int) {
		for s := i; s < shards; s += len(x.workers) {
			for _, m := range x.workers {
				for _, f := range m.out[s] {
					x.shards[s].insert(f)
				}
			}
		}
	})
}

func (x *explorer) inParallel(work func(i int)) {
	var wait sync.WaitGroup
	for i := range x.workers {
		wait.Go(func() { work(i) })
	}
	wait.Wait()
}

func (x *explorer) expandSome(m *worker, list []ref) {
	for s := range m.out {
		m.out[s] = m.out[s][:0]
	}
	for _, r := range list {
		from := &x.shards[r.shard()].nodes[r.index()].key
		w := unpack(from, x.sc.Hosts)
		if x.sc.Liveness {
			if found := m.checkLiveness(&w); found != fine {
				m.out[0] = append(m.out[0], candidate{node: node{key: *from, parent: r}, found: found})
				return
			}
		}
		m.expand(&w, func(e event, next *world, found breach) {
			m.transitions++
			if m.watch != nil {
				m.watch(e, &w, next)
			}
			k := next.canonical()
			if found == fine && k == *from {
				return
			}
			h := hash(&k)
			m.out[h%shards] = append(m.out[h%shards], candidate{node: node{key: k, parent: r}, hash: h, found: found})
		})
	}
}

// insert adds a state unless the table contains it.
func (s *shard) insert(f candidate) {
	mask := uint64(len(s.table) - 1)
	for at := f.hash >> 8 & mask; ; at = (at + 1) & mask {
		i := s.table[at]
		if i == 0 {
			s.nodes = append(s.nodes, f.node)
			s.table[at] = uint32(len(s.nodes))
			break
		}
		if s.nodes[i-1].key == f.key {
			return
		}
	}
	if 4*len(s.nodes) > 3*len(s.table) {
		s.grow(2 * len(s.table))
	}
}

func (s *shard) grow(size int) {
	s.table = make([]uint32, size)
	mask := uint64(size - 1)
	for i := range s.nodes {
		at := hash(&s.nodes[i].key) >> 8 & mask
		for s.table[at] != 0 {
			at = (at + 1) & mask
		}
		s.table[at] = uint32(i + 1)
	}
}

// hash returns a hash of a key. The hash only locates a state in the table, which compares whole keys.
func hash(k *key) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, v := range k {
		high, low := bits.Mul64(v^h, 0xd6e8feb86659fd93)
		h = high ^ low ^ bits.RotateLeft64(h, 23)
	}
	return h
}

// Explore explores a scenario of the real policy and protocol until it reaches the fixpoint, the first breach or the
// scenario's bound, or until the context ends.
func Explore(ctx context.Context, sc Scenario, workers int) Result {
	return explore(ctx, sc, rules{}, workers)
}

// Explore explores the smallest scope in which the mistake has an effect.
func (m Mistake) Explore(ctx context.Context) Result { return explore(ctx, m.Scenario(), m.rules, 1) }

// String returns the name, the figures and the outcome of an exploration on one line.
func (r Result) String() string {
	end := "bound reached"
	if r.Complete {
		end = "fixpoint"
	}
	if r.Breach != nil {
		end = "breaks " + r.Breach.Promise
	}
	return fmt.Sprintf("%-48s %12d states %12d transitions %4d deep %8.1f s  %s",
		r.Scenario.Name, r.States, r.Transitions, r.Depth, r.Took.Seconds(), end)
}
