// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// Exit codes, as in sysexits.h.
const (
	exitUsage       = 64
	exitUnavailable = 69
	exitNoPerm      = 77
	exitConfig      = 78
)

// commandResult is a program's exit code and output.
type commandResult struct {
	code   int
	output string // stdout and stderr
}

// check checks the exit code, and that the output contains these texts, however its lines are wrapped.
func (e commandResult) check(t *testing.T, what string, code int, output ...string) {
	t.Helper()
	if e.code != code {
		t.Errorf("%s: exit code %d, want %d: %s", what, e.code, code, e.output)
	}
	all := e.oneLine()
	for _, text := range output {
		if !strings.Contains(all, text) {
			t.Errorf("%s: the output lacks %q: %s", what, text, e.output)
		}
	}
}

// person is a user who runs programs: the user of this test if credential is nil.
type person struct{ credential *syscall.Credential }

// oneLine returns the output as one line.
func (e commandResult) oneLine() string { return strings.Join(strings.Fields(e.output), " ") }

func me() person { return person{} }

// myName is the user name that the agent records for requests of this test.
func myName(t *testing.T) string {
	t.Helper()
	uid := os.Geteuid()
	if uid == 0 {
		return "root"
	}
	name := fmt.Sprintf("uid %d", uid)
	if me, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		name += " (" + me.Username + ")"
	}
	return name
}

// run runs a program until it exits. The program may be in a directory that the user cannot read.
func (p person) run(t *testing.T, program string, args ...string) commandResult {
	t.Helper()
	file, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	command := exec.CommandContext(ctx, "/proc/self/fd/3", args...)
	command.ExtraFiles = []*os.File{file}
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential, Pdeathsig: syscall.SIGKILL}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err = command.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return commandResult{command.ProcessState.ExitCode(), output.String()}
}

// runAgent runs a host's agent, which must exit.
func (p person) runAgent(h *host) commandResult {
	h.w.t.Helper()
	return p.run(h.w.t, os.Args[0], "run", "--config", h.ConfigPath())
}

// runCtl runs quorumctl as built by make.
func (p person) runCtl(t *testing.T, args ...string) commandResult {
	t.Helper()
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "bin", "quorumctl")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("cannot find quorumctl: %v; run `make build`", err)
	}
	return p.run(t, path, args...)
}

// ctl runs quorumctl against the agent of a host.
func (p person) ctl(h *host, args ...string) commandResult {
	h.w.t.Helper()
	return p.runCtl(h.w.t, append([]string{"--socket", h.Options.Socket()}, args...)...)
}

// configure writes the configuration with the given keys changed.
func (h *host) configure(set map[string]string) {
	h.w.t.Helper()
	h.Options.Set = maps.Clone(h.Options.Set)
	maps.Copy(h.Options.Set, set)
	if err := h.WriteConfig(); err != nil {
		h.w.t.Fatal(err)
	}
}

// oneVoter makes a world whose target is one voter and one standby, starts n1, and bootstraps the cluster.
func oneVoter(t *testing.T, hosts int, each func(int, *testbed.HostOptions)) *world {
	t.Helper()
	w := newWorld(t, worldOptions{hosts: hosts, voters: 1, standbys: 1, set: quickTimes(), each: each})
	w.start(w.hosts[0])
	w.bootstrap()
	return w
}

// expectSameProcess records the host's etcd process. The returned function checks that the same process still runs and
// serves.
func (h *host) expectSameProcess() func(after string) {
	h.w.t.Helper()
	before := h.etcdPID()
	if before == 0 {
		h.w.t.Fatal("no etcd runs")
	}
	return func(after string) {
		h.w.t.Helper()
		h.w.eventually(after+": etcd accepts writes", h.writes)
		if pid := h.etcdPID(); pid != before {
			h.w.t.Errorf("%s: etcd was process %d and is %d", after, before, pid)
		}
	}
}

func TestAnInvalidConfigurationIsRefusedWithAllMistakesAndEtcdIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := oneVoter(t, 1, nil)
	h := w.hosts[0]
	untouched := h.expectSameProcess()
	h.stop()
	good := h.Options.Set

	mistakes := map[string]string{ // each key with the value to put into the file
		"timing.intervall": "1s",                  // unknown
		"disk.window":      "many",                // wrong type
		"timing.interval":  "soon",                // not a duration
		"etcd.peerURL":     "ftp://127.0.0.1:238", // a URL that etcd does not support
		"cluster.voters":   "4",                   // even
	}
	h.configure(mistakes)
	var output []string
	for key, value := range mistakes {
		output = append(output, fmt.Sprintf("%s:%d: %s: ", h.ConfigPath(), h.lineOf(key, value), key))
	}
	me().runAgent(h).check(t, "five mistakes", exitConfig, output...)
	me().runCtl(t, "config", "check", h.ConfigPath()).check(t, "five mistakes",
		exitConfig, append(output, "5 mistakes")...)
	untouched("five mistakes")

	h.Options.Set = good
	for name, c := range map[string]struct {
		set  map[string]string
		says string
	}{
		"no certificate": {
			tlsSet("/nowhere/ca.crt", "", ""),
			"cluster.tls.ca: /nowhere/ca.crt does not exist",
		},
		"no PEM":                   {tlsSet(h.ConfigPath(), "", ""), "is not PEM"},
		"a certificate and no key": {tlsSet("", h.ConfigPath(), ""), "is set without cluster.tls.key"},
		"no web configuration": {
			map[string]string{"metrics.webConfig": "/nowhere/web.yml"},
			"metrics.webConfig: /nowhere/web.yml does not exist",
		},
	} {
		h.configure(c.set)
		if _, tls := c.set["cluster.tls"]; tls {
			h.configure(h.httpsSet())
		}
		me().runAgent(h).check(t, name, exitConfig, c.says)
		me().runCtl(t, "config", "check", h.ConfigPath()).check(t, name, exitConfig, c.says)
		untouched(name)
		h.Options.Set = good
	}

	if err := os.Remove(h.ConfigPath()); err != nil {
		t.Fatal(err)
	}
	me().runAgent(h).check(t, "no file", exitConfig, "cannot read the configuration", h.ConfigPath())
	untouched("no file")

	h.configure(nil)
	w.start(h)
	w.eventually("the agent runs again", func() bool { return h.waitsFor(policy.Idle) })
	untouched("all of it")
}

// lineOf returns the line number of a key in its section of the configuration file.
func (h *host) lineOf(key, value string) int {
	h.w.t.Helper()
	text, err := os.ReadFile(h.ConfigPath())
	if err != nil {
		h.w.t.Fatal(err)
	}
	section, name, _ := strings.Cut(key, ".")
	in := ""
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, " ") {
			in = strings.TrimSuffix(line, ":")
		}
		if in == section && line == "  "+name+": "+value {
			return i + 1
		}
	}
	h.w.t.Fatalf("%s: %s is not in the file", key, value)
	return 0
}

func tlsSet(ca, cert, key string) map[string]string {
	return map[string]string{"cluster.tls": fmt.Sprintf("{ca: %q, cert: %q, key: %q}", ca, cert, key)}
}

// httpsSet returns the settings that make all URLs https, for configurations with TLS files.
func (h *host) httpsSet() map[string]string {
	https := strings.Replace(h.Options.ClientURL, "http:", "https:", 1)
	return map[string]string{
		"etcd.clientURL": https, "etcd.listenClientURL": https,
		"cluster.endpoints": "[" + https + "]",
	}
}

func TestASecondAgentIsRefusedAndTheFirstIsUnaffected(t *testing.T) {
	t.Parallel()
	w := oneVoter(t, 1, nil)
	h := w.hosts[0]
	w.eventually("the first host is idle", func() bool { return h.waitsFor(policy.Idle) && h.healthy() })
	untouched := h.expectSameProcess()
	me().runAgent(h).check(t, "the socket is served", exitUnavailable,
		fmt.Sprintf("already served by pid %d", h.AgentPID()))

	second := *h.Host
	second.Options.Dir = filepath.Join(w.dir, "second")
	if _, err := testbed.NewHost(second.Options); err != nil { // both use the same metrics port
		t.Fatal(err)
	}
	me().run(t, os.Args[0], "run", "--config", second.ConfigPath()).
		check(t, "the port is in use", exitUnavailable, "cannot listen for HTTP", "change metrics.listen")

	before, _ := h.status()
	w.eventually("the first continues", func() bool {
		s, ok := h.status()
		return ok && s.Loop.Rounds > before.Loop.Rounds+5 && h.waitsFor(policy.Idle) && h.healthy()
	})
	untouched("a second agent")
}

func TestAClusterWithADifferentIDIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := oneVoter(t, 2, func(i int, o *testbed.HostOptions) {
		if i == 2 {
			o.Set["cluster.id"] = "cdf818194e3a8c32" // the ID of every etcd cluster with default settings
		}
	})
	n1, n2 := w.hosts[0], w.hosts[1]
	untouched := n1.expectSameProcess()
	w.start(n2)
	w.eventually("the new host is refused", func() bool { return n2.waitsFor(policy.ClusterIDMismatch) })

	w.eventually("the voter has recorded its cluster", func() bool { return n1.waitsFor(policy.Idle) })
	n1.stop()
	n1.configure(map[string]string{"cluster.id": "cdf818194e3a8c32"})
	w.start(n1)
	w.eventually("the voter reports it", func() bool { return n1.waitsFor(policy.ClusterIDMismatch) })
	w.never(2*time.Second, "one of them acts, or publishes a host record", func() bool {
		s1, _ := n1.status()
		s2, _ := n2.status()
		return s1.Loop.Steps+s2.Loop.Steps > 0 || n2.etcdPID() != 0 ||
			w.hasRecord(w.keys().Host("host-n1")) || w.hasRecord(w.keys().Host("host-n2"))
	})
	untouched("wrong cluster IDs")
}

func TestDataOfAnotherClusterIsLeftInPlace(t *testing.T) {
	t.Parallel()
	other := oneVoter(t, 1, nil).hosts[0]
	other.stop()
	other.killEtcd()
	w := oneVoter(t, 2, nil)
	n2 := w.hosts[1]
	copyData(t, other, n2)
	w.start(n2)
	w.eventually("the new host is refused", func() bool { return n2.healthy() && n2.waitsFor(policy.DataUnusable) })
	before := n2.dataDirs()
	w.never(2*time.Second, "n2 acts", func() bool {
		s, ok := n2.status()
		listed, _ := w.is(n2)
		return (ok && s.Loop.Steps > 0) || listed || n2.etcdPID() != 0
	})
	if after := n2.dataDirs(); len(after) != 1 || !maps.Equal(before, after) {
		t.Errorf("the data was %v and is %v", before, after)
	}
	w.verify(1, 0)
}

// copyData copies the data of a host whose etcd is stopped to another host.
func copyData(t *testing.T, from, to *host) {
	t.Helper()
	from.w.eventually("etcd has ended", func() bool { return from.etcdPID() == 0 })
	if err := os.CopyFS(to.DataDir(), os.DirFS(from.DataDir())); err != nil {
		t.Fatal(err)
	}
}

func TestHostsWithTheSameNameDoNotJoinUntilOneIsRenamed(t *testing.T) {
	t.Parallel()
	w := oneVoter(t, 3, func(i int, o *testbed.HostOptions) {
		if i > 1 {
			o.Set["host.name"] = "twin"
			o.Set["disk.qualifySamples"] = "100" // long enough that each observes the other before either is ready
		}
	})
	n2, n3 := w.hosts[1], w.hosts[2]
	w.start(n2, n3)
	w.eventually("both are refused", func() bool {
		return n2.healthy() && n3.healthy() && n2.waitsFor(policy.HostConflict) && n3.waitsFor(policy.HostConflict)
	})
	w.never(2*time.Second, "one of them joins", func() bool {
		return !w.has(1, 0) || w.hasRecord(w.keys().Lock()) || n2.etcdPID()+n3.etcdPID() != 0
	})
	n3.stop()
	n3.configure(map[string]string{"host.name": "n3"})
	w.start(n3)
	w.verify(1, 1)
}

func TestAHostWithTheNameOfAMemberDoesNotJoin(t *testing.T) {
	t.Parallel()
	w := oneVoter(t, 2, func(i int, o *testbed.HostOptions) { o.Set["host.name"] = "n1" })
	n1, n2 := w.hosts[0], w.hosts[1]
	w.start(n2)
	w.eventually("n2 is refused", func() bool { return n2.healthy() && n2.waitsFor(policy.HostConflict) })
	n1.kill() // the same must hold while the member's agent is down
	w.eventually("the member's host record has expired", func() bool { return w.absent(w.keys().Host("host-n1")) })
	w.never(2*time.Second, "n2 joins", func() bool {
		return !w.has(1, 0) || n2.etcdPID() != 0 || !n2.waitsFor(policy.HostConflict)
	})
	w.start(n1)
	w.verify(1, 0)
}

func TestOnlyOneOfTwoAgentsWithTheSameHostIDJoins(t *testing.T) {
	t.Parallel()
	w := oneVoter(t, 3, func(i int, o *testbed.HostOptions) {
		if i > 1 {
			o.Set["host.id"] = "cloned"
		}
	})
	n2, n3 := w.hosts[1], w.hosts[2]
	w.start(n2, n3)
	w.verify(1, 1)
	joined, refused := n2, n3
	if listed, _ := w.is(n3); listed {
		joined, refused = n3, n2
	}
	w.eventually(refused.Options.Name+" is refused", func() bool { return refused.waitsFor(policy.HostConflict) })
	w.never(2*time.Second, refused.Options.Name+" acts", func() bool {
		s, ok := refused.status()
		return (ok && s.Loop.Steps > 0) || refused.etcdPID() != 0
	})
	w.eventually(joined.Options.Name+", which has joined, is idle", func() bool { return joined.waitsFor(policy.Idle) })
	w.verify(1, 1)
}

// hasRecord reports whether etcd contains a record.
func (w *world) hasRecord(key string) bool {
	value, ok := w.get(key)
	return ok && value != ""
}

func TestAClusterIsBootstrappedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 3, voters: 1, standbys: 1, set: quickTimes()})
	n1, n2, n3 := w.hosts[0], w.hosts[1], w.hosts[2]
	w.start(n1, n2)
	w.eventually("both have observed the cluster", func() bool {
		return n1.hasReason(policy.ClusterUnreachable) && n2.healthy()
	})
	me().ctl(n1, "bootstrap").check(t, "without --yes", 0, "nothing has changed")
	me().ctl(n1, "bootstrap", "--yes").check(t, "asked", 0)
	if again := me().ctl(n1, "bootstrap", "--yes"); again.code != 0 { // the cluster may answer by then
		again.check(t, "asked twice", 70, "a cluster answers already")
	}
	w.verify(1, 1)
	id := n1.clusterID()
	refusals := func(what, because string, h *host) {
		t.Helper()
		before := n1.clusterID()
		me().ctl(h, "bootstrap", "--yes").check(t, what, 70, because)
		_, err := h.Client.Bootstrap(t.Context(), clusterName)
		if refusal := (*control.Error)(nil); !errors.As(err, &refusal) || refusal.Code != string(policy.ClusterExists) {
			t.Errorf("%s: %v", what, err)
		}
		if after := n1.clusterID(); before != after {
			t.Errorf("%s: the cluster was %s and is %s", what, before, after)
		}
	}
	refusals("on a voter", "a cluster answers already", n1)
	refusals("on a standby", "a cluster answers already", n2)
	w.start(n3)
	w.eventually("a spare has observed the cluster", func() bool { return n3.hasReason(policy.TargetMet) })
	refusals("on a spare", "a cluster answers already", n3)

	n3.stop()
	for _, h := range []*host{n1, n2} {
		h.stop()
		h.killEtcd()
	}
	w.noteData()
	for _, h := range []*host{n1, n2} {
		if err := os.Rename(filepath.Join(h.DataDir(), "member"),
			filepath.Join(h.DataDir(), "member.quorumd-lost")); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.eventually("all have observed the cluster", func() bool {
		return n1.hasReason(policy.NoQuorum) && n2.hasReason(policy.NoQuorum) && n3.hasReason(policy.NoQuorum)
	})
	refusals("with the disks of all hosts empty", "this host has belonged to cluster "+id, n1)
	refusals("with the disks of all hosts empty", "this host has belonged to cluster "+id, n2)
	refusals("and on one that never was a member", "this host has seen cluster "+id, n3)
	w.never(time.Second, "etcd is started", func() bool { return n1.etcdPID()+n2.etcdPID()+n3.etcdPID() != 0 })
}

// clusterID returns the cluster ID that the host's agent reports.
func (h *host) clusterID() string {
	s, _ := h.status()
	return s.Cluster.ID
}

func TestNoClusterIsBootstrappedOverExistingData(t *testing.T) {
	t.Parallel()
	other := oneVoter(t, 1, nil).hosts[0]
	other.stop()
	other.killEtcd()
	w := newWorld(t, worldOptions{hosts: 2, voters: 1, standbys: 0, set: quickTimes()})
	copyData(t, other, w.hosts[0])
	damaged := filepath.Join(w.hosts[1].DataDir(), "member", "wal")
	if err := errors.Join(os.MkdirAll(damaged, 0o700),
		os.WriteFile(filepath.Join(damaged, "0.wal"), []byte("?"), 0o600)); err != nil {
		t.Fatal(err)
	}
	w.start()
	for _, h := range w.hosts {
		w.eventually("the data is seen", func() bool {
			refused := me().ctl(h, "bootstrap", "--yes")
			if refused.code == exitUnavailable { // the agent has not observed the data yet
				return false
			}
			refused.check(t, h.Options.Name, 70, "there is data in "+h.DataDir())
			return true
		})
	}
	w.never(time.Second, "etcd is started, or data is moved", func() bool {
		return w.hosts[0].etcdPID()+w.hosts[1].etcdPID() != 0 || len(w.hosts[0].dataDirs()) != 1
	})
}

func TestQuorumctlExitCodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{hosts: 1, voters: 1, set: quickTimes()})
	h := w.hosts[0]
	me().ctl(h, "status").check(t, "no agent listens",
		exitUnavailable, "cannot reach quorumd", "systemctl status quorumd")
	w.start(h)
	w.eventually("the agent answers", func() bool { _, ok := h.status(); return ok })
	me().ctl(h, "status").check(t, "no etcd", 0)
	me().ctl(h, "pause", "--reason", "x").check(t, "no etcd", exitUnavailable, "cannot pause")
	me().ctl(h, "operation", "release", "--force", "--reason", "x").check(t, "no etcd",
		exitUnavailable, "cannot release")
	me().ctl(h, "stauts").check(t, "no such command", exitUsage, "unknown command", "status")
	me().ctl(h, "pause").check(t, "no reason", exitUsage, "reason")
	me().ctl(h, "status", "-o", "xml").check(t, "no such format", exitUsage, "xml")
	me().runCtl(t, "config", "check", h.ConfigPath()).check(t, "a good file", 0, "OK")
	me().runCtl(t, "config", "check", filepath.Join(w.dir, "none")).check(t, "no file", exitConfig, "none")
}
