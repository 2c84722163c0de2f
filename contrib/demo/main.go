// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo shows quorumd's main job on one machine: four hosts on 127.0.0.1 to 127.0.0.4, each with its own agent
// and a real etcd as plain processes. One host bootstraps the cluster; the others join one at a time, until there are
// three voters and a standby. With -slow one host's disk is on a file system with slow fsync, and the host does not
// join.
//
// It leaves no process behind and no file outside its own directory; the logs of a failed demo stay there. Only one
// demo can run at a time, because the ports are fixed; a second one reports which process uses them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

func main() {
	var d demo
	flag.StringVar(&d.quorumd, "quorumd", "bin/quorumd", "the agent")
	flag.StringVar(&d.etcd, "etcd", "", "the etcd server")
	flag.StringVar(&d.faultfs, "faultfs", "", "the fault-injecting file system, for -slow")
	flag.StringVar(&d.dir, "dir", "",
		"working directory; emptied at the start, and removed at the end unless the demo fails")
	flag.StringVar(&d.slow, "slow", "", "give this host a slow disk: n1 to n4")
	flag.BoolVar(&d.once, "once", false, "exit when the target is reached")
	flag.BoolVar(&d.defaultLimits, "default-limits", false, "judge the disks by quorumd's default limits")
	flag.StringVar(&d.svg, "svg", "", "record the run as an animated SVG in this file; implies -once")
	flag.DurationVar(&d.limit, "limit", 2*time.Minute, "time limit of -once")
	flag.Parse()
	d.once = d.once || d.svg != ""
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := d.run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// demo is one run of the command.
type demo struct {
	quorumd, etcd, faultfs string
	dir, slow              string
	once                   bool
	defaultLimits          bool
	svg                    string // path of the recording to write; empty: none
	limit                  time.Duration
	hosts                  []*testbed.Host
	mark                   *os.File // locked while this demo uses the directory
}

// The ports of every host, each on its own address. They are not etcd's default ports, so that the demo does not
// interfere with an etcd that runs on this machine.
const (
	clientPort  = 12379
	peerPort    = 12380
	metricsPort = 19379
)

// repairDead is the grace period after which another host replaces a host whose processes were killed.
const repairDead = "30s"

// repairCleanFor is how long a replaced host must be healthy before it joins again.
const repairCleanFor = "1m"

// slowFsync is how long an fsync of the slow host takes.
const slowFsync = 250 * time.Millisecond

func (d *demo) run(ctx context.Context) (err error) {
	names := []string{"n1", "n2", "n3", "n4"}
	if d.dir == "" {
		return errors.New("cannot start without -dir: name a directory that only the demo uses")
	}
	if d.slow != "" && !slices.Contains(names, d.slow) {
		return fmt.Errorf("cannot slow %q down: the hosts are %v", d.slow, names)
	}
	if err := d.prepare(names); err != nil {
		return err
	}
	defer func() { err = d.end(err) }()
	for _, h := range d.hosts {
		if h.Options.Name == d.slow {
			unmount, slowErr := d.slowDown(h)
			if slowErr != nil {
				return slowErr
			}
			defer func() { err = errors.Join(err, unmount()) }()
		}
		if err := h.Start(); err != nil {
			return err
		}
	}
	return d.watch(ctx)
}

// introduction returns a text that describes what the demo does and how its limits differ from the defaults. It
// contains command lines that inspect hosts, ready to copy.
func (d *demo) introduction() string {
	var b strings.Builder
	if d.slow == "" {
		b.WriteString("Four hosts form a cluster of three voters and a standby.\n")
	} else {
		fmt.Fprintf(&b, "Three hosts form a cluster. An fsync on %s takes %s, so it should stay out.\n", d.slow,
			slowFsync)
	}
	b.WriteString("At first no cluster exists, and every host measures its disk: the role \"unknown\" and\n" +
		"CLUSTER_UNREACHABLE are normal then.\n")
	if d.defaultLimits {
		b.WriteString("Times are short: a disk qualifies with 150 writes (default 3000).\n")
	} else {
		b.WriteString("Times are short, and limits suit a busy machine: a disk qualifies with 150 writes (default\n" +
			"3000) and an fsync p99 below 100 ms (default 10 ms).\n")
	}
	b.WriteString("Inspect a host from a second terminal:\n\n")
	quorumctl := here(filepath.Join(filepath.Dir(d.quorumd), "quorumctl"))
	for i, h := range d.hosts {
		var command string
		switch {
		case h.Options.Name == d.slow:
			command = "explain"
		case i == 0:
			command = "status"
		default:
			continue
		}
		fmt.Fprintf(&b, "    QUORUMCTL_SOCKET=%s %s %s\n", here(h.Options.Socket()), quorumctl, command)
	}
	fmt.Fprintf(&b, "\nStatus page of %s: http://%s/\n\n", d.hosts[0].Options.Name, d.hosts[0].Options.Metrics)
	return b.String()
}

// here returns a path relative to the working directory if the path is below it, otherwise unchanged.
func here(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if short, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(short) {
		return short
	}
	return path
}

// slowDown puts a host's disk on a file system with slow fsync. The returned function stops the host and unmounts the
// file system.
func (d *demo) slowDown(h *testbed.Host) (unmount func() error, err error) {
	back := filepath.Join(d.dir, "backing")
	if err := os.MkdirAll(back, 0o755); err != nil {
		return nil, err
	}
	mount, err := testbed.StartFaultfs(d.faultfs, back, h.Options.Disk)
	if err != nil {
		return nil, fmt.Errorf("cannot slow %s down: %w", d.slow, err)
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return errors.Join(h.Stop(ctx), mount.Unmount())
	}, mount.Rule("fsync * delay=" + slowFsync.String())
}

// prepare claims the directory, checks that the ports are free, and creates the hosts.
func (d *demo) prepare(names []string) error {
	for _, path := range []*string{&d.quorumd, &d.etcd, &d.faultfs, &d.dir} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	for _, path := range []string{d.quorumd, d.etcd} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("cannot start: %w; run make demo, which builds it", err)
		}
	}
	url := func(n, port int) string { return fmt.Sprintf("http://127.0.0.%d:%d", n, port) }
	var endpoints []string
	for i := range names {
		endpoints = append(endpoints, url(i+1, clientPort))
	}
	options := make([]testbed.HostOptions, len(names))
	for i, name := range names {
		options[i] = testbed.HostOptions{
			Name: name, Dir: filepath.Join(d.dir, name), Disk: filepath.Join(d.dir, name, "disk"),
			Agent: []string{d.quorumd, "run"}, Etcd: d.etcd,
			ClientURL: url(i+1, clientPort), PeerURL: url(i+1, peerPort),
			Metrics:   fmt.Sprintf("127.0.0.%d:%d", i+1, metricsPort),
			Endpoints: endpoints, DefaultLimits: d.defaultLimits, Set: map[string]string{
				"repair.dead": repairDead, "repair.cleanFor": repairCleanFor,
			},
		}
		d.hosts = append(d.hosts, &testbed.Host{Options: options[i]})
	}
	if err := d.claim(); err != nil {
		return err
	}
	if err := d.portsAreFree(); err != nil {
		return errors.Join(err, d.remove())
	}
	for i := range options {
		h, err := testbed.NewHost(options[i])
		if err != nil {
			return errors.Join(err, d.remove())
		}
		d.hosts[i] = h
	}
	return nil
}
