// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build faultfs && long

package faults

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// networkFault is a packet filter rule for packets from n1 to n2, and how quorumd has to report it.
type networkFault struct {
	name, drop string
	at         int           // the host with the filter: 0 is n1, 1 is n2
	code       string        // reported by n1
	within     time.Duration // limit for the report; without a code, how long no finding may appear
}

func networkFaults() []networkFault {
	const to, from, bound = "ip daddr 10.98.0.2 ", "ip saddr 10.98.0.1 numgen random mod 100 < ", 4 * time.Minute
	return []networkFault{
		{
			name: "all packets from n1 to n2 are lost, none from n2 to n1", drop: to,
			code: "NETWORK_PARTITION", within: bound,
		},
		{
			name: "n1 cannot connect to n2, and n2 can connect to n1", drop: to + "tcp dport { 2379, 2380 }",
			code: "NETWORK_ONE_WAY", within: bound,
		},
		{
			name: "an MTU black hole from n1 to n2", drop: to + "meta length > 1300",
			code: "NETWORK_LARGE_PACKETS_LOST", within: bound,
		},
		// Drop on the receiving host: TCP does not retransmit a packet that its own host's filter drops.
		{name: "1 % of the packets from n1 to n2 are lost", drop: from + "1", at: 1, within: 8 * time.Minute},
		{
			name: "5 % of the packets from n1 to n2 are lost", drop: from + "5", at: 1,
			code: "NETWORK_LOSSY", within: 2 * bound,
		},
	}
}

// TestNetworkFaultsAreFoundInTime runs three hosts with real etcd for each fault, each host in its own network
// namespace at a virtual switch.
func TestNetworkFaultsAreFoundInTime(t *testing.T) {
	t.Parallel()
	made := tableOf(t, "network")
	for i, f := range networkFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := threeHosts(t)
			how := "`nft … " + strings.TrimSpace(f.drop) + " drop` on n" + strconv.Itoa(f.at+1)
			row := Row{Fault: f.name, How: how}
			began := time.Now()
			s.drop(f.at, f.drop)
			if f.code != "" {
				until(t, s.hosts[0], f.within, "OK", f.code)
				made.add(t, i, row, time.Since(began), s.hosts[0], f.code)
				return
			}
			testbed.Eventually(t, f.within+time.Minute, "the time is over", func() bool {
				for _, found := range queryHealth(s.hosts[0]).Findings {
					if found.Component == "network" {
						t.Fatalf("unexpected finding: %+v", found)
					}
				}
				return time.Since(began) >= f.within
			})
			if !s.ready(s.hosts[0]) {
				t.Error("a host is not a voter, or a connection does not work")
			}
			row.Text = "every path answers"
			made.add(t, i, row, f.within, s.hosts[0], "")
		})
	}
}

// site is a group of hosts at one switch.
type site struct {
	t     *testing.T
	hosts []*testbed.Host
	nets  []string // IDs of the processes that hold the hosts' network namespaces
}

// threeHosts returns a site with three voters.
func threeHosts(t *testing.T) *site {
	t.Helper()
	s := &site{t: t}
	bridge := s.namespace()
	s.inside(bridge, "ip link add sw type bridge", "ip link set sw up")
	dir := t.TempDir()
	var endpoints []string
	for i := range 3 {
		endpoints = append(endpoints, fmt.Sprintf("http://10.98.0.%d:2379", i+1))
	}
	for i := range 3 {
		net, cable := s.namespace(), fmt.Sprintf("p%d", i+1)
		s.nets = append(s.nets, net)
		s.inside(bridge, "ip link add "+cable+" type veth peer name eth0 netns "+net,
			"ip link set "+cable+" master sw", "ip link set "+cable+" up")
		s.inside(net, "ip link set lo up", fmt.Sprintf("ip addr add 10.98.0.%d/24 dev eth0", i+1),
			"ip link set eth0 up")
		s.add(dir, i, endpoints)
	}
	s.form()
	return s
}

func (s *site) add(dir string, i int, endpoints []string) {
	s.t.Helper()
	name := fmt.Sprintf("n%d", i+1)
	h, err := testbed.NewHost(testbed.HostOptions{
		Name: name, Dir: filepath.Join(dir, name), Etcd: testbed.Etcd(s.t, testbed.Small), Endpoints: endpoints,
		Agent: []string{
			"nsenter", "-n", "-t", s.nets[i], "setpriv", "--pdeathsig", "KILL", program(s.t, "quorumd"), "run",
		},
		ClientURL: endpoints[i], PeerURL: strings.Replace(endpoints[i], "2379", "2380", 1), Metrics: "127.0.0.1:9379",
		Set: map[string]string{ // many hosts share the disk, which this test ignores
			"disk.qualifySamples": "30", "disk.window": "20", "disk.fsyncClear": "1s", "disk.fsyncWarm": "2s",
			"disk.fsyncSlow": "5s", "disk.stall": "20s", "disk.directInterval": "5s", "disk.starved": "100",
			"cluster.standbys": "0",
		},
	})
	if err == nil {
		err = h.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, killed := h.KillEtcd(ctx)
		if err := errors.Join(h.KillAgent(ctx), killed, h.Stop(ctx)); err != nil {
			s.t.Errorf("cannot end %s: %v", name, err)
		}
	})
	s.hosts = append(s.hosts, h)
}

// form waits until all hosts are voters and every connection works.
func (s *site) form() {
	s.t.Helper()
	testbed.Eventually(s.t, 2*time.Minute, "n1 accepts the request to bootstrap", func() bool {
		ctx, cancel := context.WithTimeout(s.t.Context(), callTimeout)
		defer cancel()
		_, err := s.hosts[0].Client.Bootstrap(ctx, "demo")
		return err == nil
	})
	var next time.Time
	testbed.Eventually(s.t, 5*time.Minute, "three voters answer each other", func() bool {
		if time.Now().Before(next) {
			return false
		}
		next = time.Now().Add(pollEvery)
		for _, h := range s.hosts {
			if !s.ready(h) {
				return false
			}
		}
		return true
	})
}

// ready reports whether a host is a voter, is OK, and observes that every host reaches each of the others.
func (s *site) ready(h *testbed.Host) bool {
	ctx, cancel := context.WithTimeout(s.t.Context(), callTimeout)
	defer cancel()
	now, err := h.Client.Status(ctx)
	if err != nil || now.Role != policy.RoleVoter || now.Health.State != "OK" {
		return false
	}
	answers := 0
	for _, other := range now.Hosts {
		for _, w := range other.Sees {
			if w.Peer == "answers" && w.Client == "answers" {
				answers++
			}
		}
	}
	return answers >= len(s.hosts)*(len(s.hosts)-1)
}

// namespace creates an empty network namespace and returns the process that holds it.
func (s *site) namespace() string {
	s.t.Helper()
	c := exec.Command("sleep", "infinity")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		s.t.Fatalf("cannot create a network namespace: %v; run this as root", err)
	}
	s.t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return strconv.Itoa(c.Process.Pid)
}

func (s *site) inside(net string, commands ...string) {
	s.t.Helper()
	for _, command := range commands {
		words := append([]string{"-n", "-t", net}, strings.Fields(command)...)
		if out, err := exec.Command("nsenter", words...).CombinedOutput(); err != nil {
			s.t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
}

// drop makes the packet filter of a host drop matching packets in both directions.
func (s *site) drop(host int, match string) {
	s.t.Helper()
	s.inside(s.nets[host], "nft add table ip faults")
	for _, hook := range []string{"input", "output"} {
		s.inside(s.nets[host], "nft add chain ip faults "+hook+" { type filter hook "+hook+" priority 0 ; }",
			"nft add rule ip faults "+hook+" "+match+" drop")
	}
}
