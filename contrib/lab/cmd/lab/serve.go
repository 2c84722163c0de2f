// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/socketpath"
	"github.com/quorumd/quorumd/contrib/lab"
)

// failure is the prefix of the reply to a failed command.
const failure = "cannot "

// serve runs inside the lab's namespaces. It boots the hosts, and carries out commands until it is stopped.
func (s settings) serve(run string) int {
	err := s.hostsAndCommands(context.Background(), run)
	fmt.Fprintf(os.Stderr, "lab: %v\n", err)
	return 1
}

func (s settings) hostsAndCommands(ctx context.Context, run string) error {
	root, err := lab.Debian12.Root(ctx, s.dir)
	if err != nil {
		return err
	}
	prepare := func(h *lab.Host) error { return h.UseEtcd(s.etcd) }
	l, err := lab.Up(ctx, lab.Options{Dir: run, Root: root, Hosts: s.hosts, Faultfs: s.faultfs, Prepare: prepare})
	if err != nil {
		return err
	}
	err = l.Each(func(h *lab.Host) error {
		if err := h.Install(ctx, s.deb); err != nil {
			return err
		}
		if err := h.Configure("manage", h.Settings()); err != nil {
			return err
		}
		_, err := h.Shell(ctx, "systemctl enable --now quorumd && systemctl enable etcd")
		return err
	})
	if err != nil {
		return err
	}
	var listener net.Listener
	err = socketpath.With(filepath.Join(run, socketName), func(address string) (err error) {
		listener, err = net.Listen("unix", address)
		return err
	})
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		line, _ := bufio.NewReader(conn).ReadString('\n') // on an error, the line is empty or incomplete
		reply, err := answer(ctx, l, strings.Fields(line))
		if err != nil {
			reply = failure + "carry out the command: " + err.Error()
		}
		fmt.Fprintln(conn, reply)
		conn.Close()
	}
}

// command is one command of the lab.
type command struct {
	name, args, meaning string
	do                  func(ctx context.Context, l *lab.Lab, hosts []*lab.Host, rest []string) (string, error)
}

// commands lists all commands. The args of a command show how many hosts it takes.
func commands() []command {
	host := func(do func(ctx context.Context, h *lab.Host) error) func(context.Context, *lab.Lab, []*lab.Host,
		[]string) (string, error) {
		return func(ctx context.Context, _ *lab.Lab, hosts []*lab.Host, _ []string) (string, error) {
			return "", do(ctx, hosts[0])
		}
	}
	part := func(do func(l *lab.Lab, ctx context.Context, h *lab.Host) error) func(context.Context, *lab.Lab,
		[]*lab.Host, []string) (string, error) {
		return func(ctx context.Context, l *lab.Lab, hosts []*lab.Host, _ []string) (string, error) {
			return "", do(l, ctx, hosts[0])
		}
	}
	disk := func(do func(d *lab.Disk) error) func(context.Context, *lab.Lab, []*lab.Host, []string) (string, error) {
		return func(_ context.Context, _ *lab.Lab, hosts []*lab.Host, _ []string) (string, error) {
			return "", do(hosts[0].Disk)
		}
	}
	return []command{
		{"off", "HOST", "cut its power", host(func(ctx context.Context, h *lab.Host) error {
			return h.PowerLoss(ctx)
		})},
		{"on", "HOST", "start it again", host(func(ctx context.Context, h *lab.Host) error {
			return errors.Join(h.PowerOn(ctx), h.Booted(ctx))
		})},
		{"reboot", "HOST", "reboot it cleanly", host(func(ctx context.Context, h *lab.Host) error {
			return h.Reboot(ctx)
		})},
		{
			"cut", "HOST HOST", "drop packets from the first to the second",
			func(ctx context.Context, l *lab.Lab, hosts []*lab.Host, _ []string) (string, error) {
				return "", l.Cut(ctx, hosts[0], hosts[1])
			},
		},
		{"isolate", "HOST", "cut it off from all others", part((*lab.Lab).Isolate)},
		{"mute", "HOST", "drop all packets that it sends", part((*lab.Lab).Mute)},
		{"deafen", "HOST", "drop all packets to it", part((*lab.Lab).Deafen)},
		{"heal", "", "end all cuts", func(ctx context.Context, l *lab.Lab, _ []*lab.Host, _ []string) (string, error) {
			return "", l.Heal(ctx)
		}},
		{"fill", "HOST", "fill etcd's disk", disk((*lab.Disk).Fill)},
		{"empty", "HOST", "free the space again", disk((*lab.Disk).Empty)},
		{"hang", "HOST", "make every flush of etcd's disk hang", disk((*lab.Disk).Hang)},
		{
			"slow", "HOST TIME", "delay every flush by TIME, such as 50ms",
			func(_ context.Context, _ *lab.Lab, hosts []*lab.Host, rest []string) (string, error) {
				by, err := time.ParseDuration(rest[0])
				if err != nil {
					return "", err
				}
				return "", hosts[0].Disk.Slow(by)
			},
		},
		{"repair", "HOST", "end hang and slow", disk((*lab.Disk).Repair)},
		{"break", "HOST", "make etcd's disk fail, until off and on", disk((*lab.Disk).Break)},
		{
			"pid", "HOST", "print the PID of its first process, as the lab sees it",
			func(_ context.Context, _ *lab.Lab, hosts []*lab.Host, _ []string) (string, error) {
				pid, err := hosts[0].PID()
				return strconv.Itoa(pid), err
			},
		},
	}
}

// answer executes one line.
func answer(ctx context.Context, l *lab.Lab, words []string) (string, error) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return len(words) > 0 && c.name == words[0] })
	if i < 0 || len(strings.Fields(all[i].args)) != len(words)-1 {
		var usage strings.Builder
		for _, c := range all {
			fmt.Fprintf(&usage, "%-8s %-9s  %s\n", c.name, c.args, c.meaning)
		}
		return usage.String(), nil
	}
	var hosts []*lab.Host
	for n := range strings.Count(all[i].args, "HOST") {
		h := slices.IndexFunc(l.Hosts, func(h *lab.Host) bool { return h.Name == words[1+n] })
		if h < 0 {
			return "", fmt.Errorf("there is no host %s", words[1+n])
		}
		hosts = append(hosts, l.Hosts[h])
	}
	return all[i].do(ctx, l, hosts, words[1+len(hosts):])
}
