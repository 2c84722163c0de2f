// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	clusterName = "demo" // as testbed.Host names it
	// bound limits an action that takes seconds on an idle machine.
	bound = 120 * time.Second
	// pollEvery is the interval at which a condition is checked.
	pollEvery = 50 * time.Millisecond
	// callTimeout bounds one call of a test.
	callTimeout = 2 * time.Second
)

// worldOptions describe a world.
type worldOptions struct {
	hosts    int // n1, n2, …
	voters   int // the target; 3 if 0
	standbys int
	proxied  bool              // whether a testbed.Proxy is in front of every client and peer URL
	fronts   bool              // whether a front is in front of every client URL
	powered  bool              // whether killing a whole host also loses unsynced writes
	set      map[string]string // configuration keys of every host, "section.key"
	each     func(i int, o *testbed.HostOptions)
}

// world is a set of hosts, and what the test has observed of them.
type world struct {
	t     *testing.T
	dir   string
	hosts []*host // n1, n2, …
	// whether an agent was killed: the history may then lack the beginning of its operation
	killed bool
	data   testbed.DataDirs // every data directory ever seen
}

// host is a host of a world.
type host struct {
	*testbed.Host
	w           *world
	leash       leashed
	clientProxy *testbed.Proxy // these two are nil unless the world is proxied
	peerProxy   *testbed.Proxy
	front       *front            // nil unless the world has fronts
	etcd        *clientv3.Client  // a client of this host's etcd alone, past the proxy
	running     bool              // whether its agent should be running
	off         bool              // whether nothing runs on it
	disks       []*testbed.Mount  // empty unless the world is powered
	real        string            // the etcd to which Options.Etcd links
	files       testbed.CertFiles // certificate files of the client in the field etcd; empty without TLS
}

// newWorld creates hosts and starts none. Everything is removed when the test ends; if the test has failed, the state
// of the world is logged.
func newWorld(t *testing.T, o worldOptions) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "q") // other users cannot enter t.TempDir; see strangers
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, data: testbed.DataDirs{}}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	ports := testbed.FreePorts(t, 4*o.hosts)
	for i := range o.hosts {
		w.hosts = append(w.hosts, w.newHost(i, ports[4*i:4*i+4], o))
	}
	var endpoints []string
	for _, h := range w.hosts {
		endpoints = append(endpoints, h.Options.ClientURL)
	}
	for i, h := range w.hosts {
		h.Options.Endpoints = endpoints
		if o.each != nil {
			o.each(i+1, &h.Options)
		}
		if o.powered {
			h.trackUnsynced()
		}
		made, err := testbed.NewHost(h.Options)
		if err != nil {
			t.Fatal(err)
		}
		h.Host = made
	}
	if o.fronts {
		for _, h := range w.hosts {
			h.front = newFront(h)
		}
		w.hosts[0].openFront() // bootstrap opens the others: until then, no other host may answer
	}
	t.Cleanup(w.close)
	return w
}

func (w *world) newHost(i int, ports []int, o worldOptions) *host {
	w.t.Helper()
	name := fmt.Sprintf("n%d", i+1)
	url := func(address string) string { return "http://" + address }
	client, peer := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	h := &host{w: w}
	options := testbed.HostOptions{
		Name: name, Dir: filepath.Join(w.dir, name), Agent: []string{os.Args[0], "run"},
		Etcd:      testbed.Etcd(w.t, testbed.Small),
		ClientURL: url(client), PeerURL: url(peer), ListenClientURL: url(client), ListenPeerURL: url(peer),
		Metrics: fmt.Sprintf("127.0.0.1:%d", ports[2]), Set: settings(o),
	}
	if o.proxied {
		h.clientProxy, h.peerProxy = testbed.NewProxy(w.t, client), testbed.NewProxy(w.t, peer)
		options.ClientURL, options.PeerURL = url(h.clientProxy.Addr()), url(h.peerProxy.Addr())
	}
	if o.fronts {
		options.ClientURL = url(fmt.Sprintf("127.0.0.1:%d", ports[3]))
	}
	h.real, options.Etcd = options.Etcd, filepath.Join(w.dir, name+"-etcd")
	if err := os.Symlink(h.real, options.Etcd); err != nil {
		w.t.Fatal(err)
	}
	h.leash = leashed(filepath.Join(w.dir, name+"-leash"))
	if err := os.Mkdir(string(h.leash), 0o755); err != nil {
		w.t.Fatal(err)
	}
	options.Env = []string{leash + "=" + string(h.leash)}
	h.Host = &testbed.Host{Options: options}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{url(client)}, Logger: zap.NewNop()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = etcd.Close() }) // an error does not matter, because etcd has ended
	h.etcd = etcd
	return h
}

// address returns the host and port of a URL.
func address(url string) string {
	_, after, _ := strings.Cut(url, "://")
	return after
}

// settings returns the configuration keys that all hosts of a world have in common. The limits for the disk are loose,
// because most tests are not about the disk.
func settings(o worldOptions) map[string]string {
	voters := o.voters
	if voters == 0 {
		voters = 3
	}
	s := map[string]string{
		"cluster.voters": fmt.Sprint(voters), "cluster.standbys": fmt.Sprint(o.standbys),
		"disk.qualifySamples": "30", "disk.window": "20",
		"disk.fsyncClear": "1s", "disk.fsyncWarm": "2s", "disk.fsyncSlow": "5s", "disk.stall": "20s",
		// Many worlds share the machine. They probe the disk less often than in production, and ignore CPU starvation.
		"disk.directInterval": "5s", "disk.walInterval": "5s", "disk.starved": "100",
	}
	maps.Copy(s, o.set)
	return s
}

// quickTimes returns short times for worlds with one voter. With more voters etcd refuses membership changes until the
// other voters have been connected for 5 s.
func quickTimes() map[string]string {
	return map[string]string{
		"timing.interval": "200ms", "timing.callTimeout": "750ms", "timing.lockTTL": "4s", "timing.renewEvery": "500ms",
		"timing.renewGiveUp": "2500ms", "timing.stepMargin": "300ms", "timing.hostRecordTTL": "3s",
		"timing.settle":   "300ms",
		"timing.cooldown": "0s", "timing.promoteStable": "600ms", "timing.steadyLag": "600ms",
		"timing.learnerStall": "20s",
		"timing.learnerMax":   "60s", "timing.orphanGrace": "8s", "timing.joinBackoff": "1s",
	}
}

// close ends all processes, and shows the state of the world if the test has failed.
func (w *world) close() {
	if w.t.Failed() {
		w.dump()
	}
	var wait sync.WaitGroup
	for _, h := range w.hosts {
		wait.Go(func() {
			if err := h.end(); err != nil {
				w.t.Errorf("cannot end %s: %v", h.Options.Name, err)
			}
		})
	}
	wait.Wait()
}

// end kills the agent, then etcd, and waits until they are gone.
func (h *host) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := h.KillAgent(ctx); err != nil {
		return err
	}
	if _, err := h.KillEtcd(ctx); err != nil {
		return err
	}
	return h.Stop(ctx)
}

// start starts the agents of these hosts, or of all.
func (w *world) start(hosts ...*host) {
	w.t.Helper()
	if len(hosts) == 0 {
		hosts = w.hosts
	}
	for _, h := range hosts {
		if err := h.Start(); err != nil {
			w.t.Fatal(err)
		}
		if h.off {
			h.setReachable(true)
		}
		h.running, h.off = true, false
	}
}

// setReachable sets whether the proxies of the host accept connections. Without proxies it does nothing.
func (h *host) setReachable(yes bool) {
	for _, p := range []*testbed.Proxy{h.clientProxy, h.peerProxy} {
		if p != nil {
			p.Set(testbed.Faults{Refuse: !yes})
		}
	}
}

// set changes a key of the configuration, "section.key", from the next start of the agent on.
func (h *host) set(key, value string) {
	h.w.t.Helper()
	h.Options.Set[key] = value
	if err := h.WriteConfig(); err != nil {
		h.w.t.Fatal(err)
	}
}

// breakEtcd replaces the etcd binary with a program that prints etcd's version if asked for it, and otherwise runs a
// line of shell. A running etcd is not affected.
func (h *host) breakEtcd(does string) {
	h.w.t.Helper()
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *--version*) echo 'etcd Version: 3.6.16'; exit 0;; esac\n%s\n",
		does)
	temp := h.Options.Etcd + ".new"
	if err := errors.Join(os.WriteFile(temp, []byte(script), 0o755), os.Rename(temp, h.Options.Etcd)); err != nil {
		h.w.t.Fatal(err)
	}
}

// repairEtcd restores the etcd binary.
func (h *host) repairEtcd() {
	h.w.t.Helper()
	temp := h.Options.Etcd + ".new"
	if err := errors.Join(os.Symlink(h.real, temp), os.Rename(temp, h.Options.Etcd)); err != nil {
		h.w.t.Fatal(err)
	}
}

// bootstrap makes the running agent of n1 bootstrap the cluster.
func (w *world) bootstrap() {
	w.t.Helper()
	n1 := w.hosts[0]
	w.refuse(true) // a proxy accepts connections without an etcd, which would look like a cluster
	defer w.refuse(false)
	var last error
	w.eventually("n1 accepts the request to bootstrap", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		_, last = n1.Client.Bootstrap(ctx, clusterName)
		return last == nil
	})
	w.eventually("n1 is a voter", func() bool { return n1.role() == policy.RoleVoter })
	for _, h := range w.hosts[1:] {
		h.openFront()
	}
}

// refuse sets whether the client proxies of all hosts but n1 refuse connections. Without proxies it does nothing.
func (w *world) refuse(yes bool) {
	for _, h := range w.hosts[1:] {
		if h.clientProxy != nil {
			h.clientProxy.Set(testbed.Faults{Refuse: yes})
		}
	}
}

// eventually waits within the usual bound until cond holds.
func (w *world) eventually(what string, cond func() bool) {
	w.t.Helper()
	w.within(bound, what, cond)
}

// within waits until cond holds. Meanwhile it records the data directories.
func (w *world) within(limit time.Duration, what string, cond func() bool) {
	w.t.Helper()
	var next time.Time
	testbed.Eventually(w.t, limit, what, func() bool {
		if time.Now().Before(next) {
			return false
		}
		w.noteData()
		w.checkAgents()
		holds := cond()
		next = time.Now().Add(pollEvery)
		return holds
	})
}

// checkAgents ends the test if an agent that should be running has exited: the awaited condition would never hold.
func (w *world) checkAgents() {
	w.t.Helper()
	for _, h := range w.hosts {
		if !h.running {
			continue
		}
		select {
		case <-h.Ended():
			w.t.Fatalf("the agent of %s has ended", h.Options.Name)
		default:
		}
	}
}

// never checks for the given time that cond does not hold.
func (w *world) never(span time.Duration, what string, cond func() bool) {
	w.t.Helper()
	end := time.Now().Add(span)
	w.within(span+bound, "the time is over", func() bool {
		if cond() {
			w.t.Fatalf("it happened: %s", what)
		}
		return time.Now().After(end)
	})
}

// members returns the member list by a linearizable read, from the first host whose etcd answers; nil if none does.
func (w *world) members() []*etcdserverpb.Member {
	for _, h := range w.hosts {
		if list, err := h.members(); err == nil {
			return list
		}
	}
	return nil
}

// get reads one of quorumd's records; "" if it does not exist. It also reports whether etcd has answered.
func (w *world) get(key string) (value string, ok bool) {
	for _, h := range w.hosts {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		answer, err := h.etcd.Get(ctx, key)
		cancel()
		switch {
		case err != nil:
		case len(answer.Kvs) == 0:
			return "", true
		default:
			return string(answer.Kvs[0].Value), true
		}
	}
	return "", false
}

// absent reports whether etcd has answered and has no such record.
func (w *world) absent(key string) bool {
	value, ok := w.get(key)
	return ok && value == ""
}

// busy reports whether an operation is in flight; false if etcd does not answer.
func (w *world) busy() bool {
	value, ok := w.get(w.keys().Op())
	return ok && value != ""
}

func (w *world) keys() record.Keys { return record.KeysFor(clusterName) }

// has reports whether the member list has that many voters and learners, all of them started.
func (w *world) has(voters, learners int) bool {
	for _, m := range w.members() {
		switch {
		case m.Name == "":
			return false
		case m.IsLearner:
			learners--
		default:
			voters--
		}
	}
	return voters == 0 && learners == 0
}

// is reports whether a host is in etcd's member list, and whether it is a learner there.
func (w *world) is(h *host) (listed, learner bool) {
	for _, m := range w.members() {
		if m.PeerURLs[0] == h.Options.PeerURL {
			return true, m.IsLearner
		}
	}
	return false, false
}

func (w *world) isVoter(h *host) bool {
	listed, learner := w.is(h)
	return listed && !learner
}

// dump logs the state of the world.
func (w *world) dump() {
	for _, m := range w.members() {
		w.t.Logf("member %x %s learner=%v", m.ID, m.Name, m.IsLearner)
	}
	if lines, err := w.history(); err == nil {
		for _, l := range lines {
			w.t.Logf("history: %s %s %s %s: %s", l.Time.Format("15:04:05.000"), l.Name, l.Kind, l.Code, l.Text)
		}
	}
	for _, h := range w.hosts {
		if s, ok := h.status(); ok {
			w.t.Logf("%s is %s, next %q, reasons %v", h.Options.Name, s.Role, s.Next.Step, s.Reasons)
		}
		w.t.Logf("the agent's log of %s ends with\n%s", h.Options.Name, tail(h.LogPath(), 60))
		w.t.Logf("etcd's log of %s ends with\n%s", h.Options.Name, tail(filepath.Join(h.Options.Dir, "etcd.log"), 15))
	}
}

func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// withHooks makes a world of three voters whose hosts serve reboot agents and have hooks that record each run.
func withHooks(t *testing.T) *world {
	t.Helper()
	ports := testbed.FreePorts(t, 3)
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, each: func(i int, o *testbed.HostOptions) {
		o.Set["fleetlock.listen"] = fmt.Sprintf("127.0.0.1:%d", ports[i-1])
		o.Set["maintenance.hooks"], o.Set["maintenance.hookTimeout"] = filepath.Join(o.Dir, "hooks"), "20s"
	}})
	for _, h := range w.hosts {
		h.hook("before", `echo "before $QUORUMD_WORK of $QUORUMD_HOST by $QUORUMD_BY" >>../log`)
		h.hook("after", `echo "after $QUORUMD_WORK of $QUORUMD_HOST by $QUORUMD_BY" >>../log`)
	}
	w.start(w.hosts...)
	w.bootstrap()
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
	w.waitRolesAgree()
	return w
}

// command writes a program for commands.d of the host: lines of shell that run in the directory of the hooks.
func (h *host) command(name, script string) {
	h.w.t.Helper()
	dir := filepath.Join(h.Options.Dir, "hooks", "commands.d")
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\ncd "+filepath.Dir(dir)+"\n"+script+"\n"), 0o755)
	}
	if err != nil {
		h.w.t.Fatal(err)
	}
}

// rollout waits until the rollout is in the given state, and returns it.
func (w *world) rollout(state string) control.Rollout {
	w.t.Helper()
	var got control.Rollout
	w.eventually("the rollout is "+state, func() bool {
		s, ok := w.hosts[2].status()
		if ok && s.Rollout != nil {
			got = *s.Rollout
		}
		return got.State == state
	})
	return got
}
