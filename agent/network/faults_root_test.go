// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build root

package network

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	insideVariable = "QUORUMD_NETWORK_INSIDE" // set in the process with its own network namespace
	far            = "10.99.0.2"
	probeEvery     = time.Second // a tenth of Every, so states also change in a tenth of the usual time
)

// The test runs itself again in a new network namespace. A veth pair connects it with a real etcd in a second
// namespace, and nftables drops packets between them.
func TestFaultsOfARealNetworkAreDistinguished(t *testing.T) {
	if os.Getenv(insideVariable) == "" {
		c := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
		c.Env = append(os.Environ(), insideVariable+"=1")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		out, err := c.CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Fatal(err)
		}
		return
	}
	w := newWire(t)
	began := time.Now()
	p := New(Options{Now: func() time.Duration { return time.Since(began) }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	defer func() { cancel(); <-done }()
	p.Watch([]Member{{1, "n2", "http://" + far + ":2380", "http://" + far + ":2379"}}, probeEvery)
	becomes := func(what string, want record.PortState) {
		t.Helper()
		from := time.Now()
		testbed.Eventually(t, 3*time.Minute, what, func() bool {
			s := p.Readings()
			return s[0].Peer.State == want && s[0].Client.State == want
		})
		t.Logf("%-45s %-12s after %s", what, want, time.Since(from).Round(100*time.Millisecond))
	}
	becomes("healthy network", record.PortAnswers)
	for _, fault := range []struct {
		what, hook, drop string
		state            record.PortState
	}{
		{"packets from here are dropped", "output", "ip daddr " + far, record.PortUnreachable},
		{"packets to here are dropped", "input", "ip saddr " + far, record.PortUnreachable},
		{
			"packets over 1300 bytes are dropped", "output", "ip daddr " + far + " meta length > 1300",
			record.PortLargeLost,
		},
		{"etcd hangs", "", "", record.PortSilent},
	} {
		heal := w.drop(fault.hook, fault.drop)
		becomes(fault.what, fault.state)
		heal()
		becomes("  healed", record.PortAnswers)
	}
	for _, percent := range []int{1, 5} {
		heal := w.lose(percent)
		l, at := requester{answer: answerBound}, target{address: far + ":2380", host: far}
		var sent, resent uint64
		for range 1000 {
			if sent > 1000 {
				break
			}
			got := l.probe(t.Context(), at, false)
			sent, resent = sent+got.sent, resent+got.resent
		}
		heal()
		t.Logf("%d %% packet loss: %d of %d segments retransmitted", percent, resent, sent)
		// Fails by chance once in ten thousand runs.
		if lossy := 40*resent > sent; lossy != (percent > 1) || sent <= 1000 {
			t.Errorf("with %d %% packet loss, %d of %d segments are retransmitted", percent, resent, sent)
		}
	}
}

// wire is a veth pair to an etcd in its own network namespace.
type wire struct {
	t    *testing.T
	etcd int // process ID
}

func newWire(t *testing.T) wire {
	t.Helper()
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), testbed.Etcd(t, testbed.Small), "--data-dir="+dir+"/data", "--name=n2",
		"--listen-peer-urls=http://0.0.0.0:2380", "--listen-client-urls=http://0.0.0.0:2379",
		"--advertise-client-urls=http://127.0.0.1:2379", "--unsafe-no-fsync", "--logger=zap", "--log-level=error")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	w := wire{t, c.Process.Pid}
	pid := strconv.Itoa(w.etcd)
	for _, command := range []string{
		"ip link set lo up",
		"ip link add v1 type veth peer name v2 netns " + pid,
		"ip addr add 10.99.0.1/24 dev v1", "ip link set v1 up",
		"nsenter -n -t " + pid + " ip link set lo up",
		"nsenter -n -t " + pid + " ip addr add " + far + "/24 dev v2",
		"nsenter -n -t " + pid + " ip link set v2 up",
	} {
		w.run(command)
	}
	testbed.Eventually(t, time.Minute, "etcd listens", func() bool {
		conn, err := net.DialTimeout("tcp", far+":2379", time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return w
}

func (w wire) run(command string) {
	w.t.Helper()
	words := strings.Fields(command)
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		w.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// drop drops matching packets at this end until heal is called. If hook is empty, it pauses etcd instead.
func (w wire) drop(hook, match string) (heal func()) {
	w.t.Helper()
	if hook == "" {
		signal := func(s syscall.Signal) {
			if err := syscall.Kill(w.etcd, s); err != nil {
				w.t.Fatal(err)
			}
		}
		signal(syscall.SIGSTOP)
		return func() { signal(syscall.SIGCONT) }
	}
	w.run("nft add table ip faults")
	w.run("nft add chain ip faults " + hook + " { type filter hook " + hook + " priority 0 ; }")
	w.run("nft add rule ip faults " + hook + " " + match + " drop")
	return func() { w.run("nft delete table ip faults") }
}

// lose drops that percentage of packets on arrival. A packet dropped at the sender would not count as sent, and
// TCP would not retransmit it.
func (w wire) lose(percent int) (heal func()) {
	w.t.Helper()
	inside := fmt.Sprintf("nsenter -n -t %d nft ", w.etcd)
	w.run(inside + "add table ip faults")
	w.run(inside + "add chain ip faults input { type filter hook input priority 0 ; }")
	w.run(inside + fmt.Sprintf("add rule ip faults input tcp dport 2380 numgen random mod 100 < %d drop", percent))
	return func() { w.run(inside + "delete table ip faults") }
}
