// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumd/quorumd/agent"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/health"
)

// host is a machine: its clocks, its disk, its etcd, and its agent.
type host struct {
	world                *world
	index                int
	name                 string
	config               config.Config
	powered              bool
	dead                 bool // the host has lost power for good
	boots                int
	booted               time.Duration // when the host last booted
	wallOffsetNanos      atomic.Int64  // the offset of its wall clock
	wallSetAt            atomic.Int64  // when the host's wall clock was last set
	unit                 *unit
	disk                 *disk
	corrupt              corruption
	data                 *data
	files                *files
	agent                *process     // nil while no agent runs
	agentStarts          int          // number of agent processes started so far
	learnerStuck         bool         // a learner on this host never catches up
	latePercent          uint64       // percentage of its calls that are applied late
	lossPercent          uint64       // percentage of its calls whose answer is lost
	maxDelay             atomic.Int64 // a duration: the longest delay of a request or an answer
	dropsKeepalives      bool         // the agent's keepalives get no answer
	trap                 trap
	maintenanceRequested bool // an operator has made a request, and no agent has accepted its end yet
	program              program
	workedOn             bool // an operator works on the host and relies on its etcd staying down
	interruptible        bool // the host's maintenance may be called off
	dataCopy             *dataCopy
	stoppedForPlan       string // ID of the last recovery plan for which etcd was stopped and must not start again
	blockedURL           string // a firewall drops all connections to this peer URL
}

// trap freezes the agent in its next call with that name, before the request is sent or before the call returns.
type trap struct {
	call   string
	before bool
	length time.Duration
}

// uptime is a host's apparent uptime when the world begins or the host boots.
const uptime = 20 * time.Second

func newHost(w *world, index int) *host {
	h := &host{world: w, index: index, name: fmt.Sprintf("n%d", index+1), powered: true, boots: 1}
	h.config = w.plan.config(index)
	h.unit = &unit{host: h, state: inactive, result: "success"}
	h.disk = newDisk(h)
	h.data = &data{host: h}
	h.files = &files{content: map[string]file{}}
	return h
}

func (h *host) peerURL() string   { return h.config.Etcd.PeerURL }
func (h *host) clientURL() string { return h.config.Etcd.ClientURL }
func (h *host) lane(l lane) lane  { return lane(h.index)*lanesOfHost + l }
func (h *host) bootID() string    { return fmt.Sprintf("boot-%d-of-%s", h.boots, h.name) }

// process is one run of an agent. Every request to the world passes the gate, where the agent is killed or frozen. No
// time passes between two requests, so a kill or freeze at any other point would have the same effect.
type process struct {
	host     *host
	agent    *agent.Agent
	survivor *survivorData

	cancel    context.CancelFunc
	dead      atomic.Bool
	frozen    atomic.Int64 // the time until which the agent is frozen
	frozenFor atomic.Int64 // total time for which the agent was frozen
	began     time.Duration
	busy      bool // an operator's request is in progress
}

// gate blocks the calling goroutine while the agent is frozen, and ends it if the agent was killed.
func (p *process) gate(l lane) {
	for {
		if p.dead.Load() {
			runtime.Goexit()
		}
		until := time.Duration(p.frozen.Load())
		w := p.host.world
		if until <= w.now() {
			return
		}
		w.wait(w.moment(until-w.now(), p.host.lane(l)))
	}
}

// gateWithTrap is like gate, but first freezes the agent if the host's trap is set for this call.
func (p *process) gateWithTrap(l lane, call string, before bool) {
	w := p.host.world
	w.mu.Lock()
	if t := p.host.trap; t.call == call && t.before == before {
		p.host.trap = trap{}
		w.freeze(p, t.length, "at "+call)
	}
	w.mu.Unlock()
	p.gate(l)
}

// freeze stops an agent for a while, like SIGSTOP.
func (w *world) freeze(p *process, d time.Duration, where string) {
	p.frozen.Store(int64(w.now() + d))
	p.frozenFor.Add(int64(d))
	w.event(p.host, eventFault, 1, "agent is frozen for %s %s", d.Round(time.Millisecond), where)
}

// kill ends an agent like kill -9.
func (h *host) kill() {
	if h.agent != nil {
		h.agent.dead.Store(true)
		h.agent.cancel() // wakes a loop that waits for its next round
		h.agent = nil
	}
}

// now returns the time since the host's boot by the agent's clock.
func (p *process) now() time.Duration {
	p.gate(laneLoop)
	return p.host.world.now() - p.began
}

// wallOffset returns the offset of the wall clock.
func (h *host) wallOffset() time.Duration { return time.Duration(h.wallOffsetNanos.Load()) }

func (h *host) wall() time.Time {
	return h.world.began.Add(h.world.now() + h.wallOffset())
}

// startAgent starts a new agent process.
func (h *host) startAgent() {
	w := h.world
	h.agentStarts++
	p := &process{host: h, began: h.booted - uptime}
	client, err := newClient(p)
	if err != nil {
		w.promises.breach("P8", h, fmt.Sprintf("cannot create the etcd client: %v", err))
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.survivor = cancel, &survivorData{p: p}
	opt := agent.Options{
		Config: h.config, Instance: fmt.Sprintf("%s-%d", h.name, h.boots), BootID: h.bootID(), Version: "sim",
		Etcd: client, Unit: h.unitFor(p), Probe: &probe{p: p, disk: h.disk, began: w.now(), read: w.now()},
		Data: agentData{p, h.data}, Recovery: p.survivor,
		Sources: observe.Sources{EtcdVersion: func(context.Context) (string, error) {
			p.delay(laneVersion)
			return etcdVersion, nil
		}, MaxLearners: p.maxLearners},
		Now: p.now, Monotonic: p.now,
		Wall: func() time.Time {
			p.gate(laneLoop)
			return h.wall()
		},
		Machine: machine{p}, Hooks: commands{p}, Files: agentFiles{p, h.files}, Logger: w.logger(h),
		Stepping: func(step policy.Step, done bool) { w.promises.onStep(p, step, done) },
		Rounded:  func(d policy.Decision, v health.Assessment) { w.promises.afterRound(p, d, v) },
		Noting:   p.delayNote,
	}
	if w.plan.Dead > 0 || w.plan.Readdresses {
		opt.Network, opt.EtcdMetrics, opt.MemberMetrics = &portProbes{p: p}, p.metrics, p.memberMetrics
		opt.Hashes = hasher{client}
	}
	if w.mistake.parts != nil {
		w.mistake.parts(p, &opt)
	}
	a, err := agent.New(opt)
	if err != nil {
		w.promises.breach("P8", h, fmt.Sprintf("cannot create the agent: %v", err))
		return
	}
	p.agent, h.agent = a, p
	w.event(h, eventFault, uint64(h.agentStarts), "agent starts")
	begin := w.moment(time.Duration(1+h.index)*100*time.Millisecond, h.lane(laneLoop))
	go func() {
		defer func() { _ = client.Close() }() // nothing was sent over its connections
		w.wait(begin)
		p.gate(laneLoop)
		_ = a.Run(ctx) // Run always returns nil
	}()
}

// etcdVersion is the version of all etcds.
const etcdVersion = "3.6.16"

// files are the agent's own files.
type files struct {
	mu      sync.Mutex
	content map[string]file
}

type file struct {
	data    []byte
	durable bool
}

// losePower removes all files that are not durable or are in the runtime directory.
func (f *files) losePower() {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.content, func(path string, held file) bool {
		return !held.durable || strings.HasPrefix(path, runtimeDir)
	})
}

// lose removes all files.
func (f *files) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.content)
}

// read returns a file's content; the error is fs.ErrNotExist if there is none.
func (f *files) read(path string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held, ok := f.content[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return held.data, nil
}

// agentFiles are the files as seen by one agent process.
type agentFiles struct {
	p *process
	f *files
}

// MakeDir does nothing, because there are no directories.
func (a agentFiles) MakeDir(string) error { return nil }

// Read returns a file's content.
func (a agentFiles) Read(path string) ([]byte, error) {
	return a.f.read(path)
}

// Write replaces a file. Only the loop writes files that are not durable, and no disk delays these.
func (a agentFiles) Write(path string, data []byte, durable bool) error {
	if durable {
		a.p.delay(laneFile)
	} else {
		a.p.gate(laneLoop)
	}
	a.f.mu.Lock()
	defer a.f.mu.Unlock()
	a.f.content[path] = file{data, durable}
	return nil
}

// Remove removes a file.
func (a agentFiles) Remove(path string) error {
	a.p.delay(laneFile)
	a.f.mu.Lock()
	defer a.f.mu.Unlock()
	delete(a.f.content, path)
	return nil
}

// maxLearners returns the limit on learners of this host's running etcd.
func (p *process) maxLearners(int) (int, error) {
	p.delay(laneVersion)
	return p.host.config.Etcd.MaxLearners(), nil
}
