// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	wantVoters = 3
	frame      = 500 * time.Millisecond
	askBound   = time.Second
)

// watch shows the hosts until the user interrupts it or, with -once, until the target is reached.
func (d *demo) watch(ctx context.Context) error {
	began := time.Now()
	screen := newScreen(os.Stdout, d.introduction())
	var tape recording
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	var bootstrapped, stood bool
	for {
		states := d.ask(ctx)
		if !bootstrapped {
			bootstrapped = d.bootstrap(ctx)
		}
		screen.show(time.Since(began), d.hosts, states)
		tape.add(time.Since(began), tableOf(time.Since(began), d.hosts, states, svgColumns))
		if !stood && d.reached(states) {
			stood = true
			if err := d.conclude(ctx, states, time.Since(began), &tape); err != nil || d.once {
				return err
			}
			fmt.Println("Ctrl-C ends the demo.")
			screen.detach()
		}
		if d.once && time.Since(began) > d.limit {
			return fmt.Errorf("target not reached after %s: %s", d.limit, why(d.hosts, states))
		}
		select {
		case <-ctx.Done():
			fmt.Println("\nStopping all agents and etcd servers.")
			if d.once {
				return errors.New("interrupted before the target was reached")
			}
			return nil
		case <-ticker.C:
		}
	}
}

// ask requests the status of every host; it is nil for a host that does not answer.
func (d *demo) ask(ctx context.Context) map[string]*control.Status {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	states := map[string]*control.Status{}
	for _, h := range d.hosts {
		if s, err := h.Client.Status(ctx); err == nil {
			states[h.Options.Name] = &s
		}
	}
	return states
}

// bootstrap requests the bootstrap on the first host that is not slow.
func (d *demo) bootstrap(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	for _, h := range d.hosts {
		if h.Options.Name != d.slow {
			_, err := h.Client.Bootstrap(ctx, "demo")
			return err == nil
		}
	}
	return false
}

// reached reports whether the target is reached: three voters, a standby, and no operation. If one host is slow, no
// standby is needed; instead, that host must be a spare that is not qualified, with a measured p99 of at least the
// limit.
func (d *demo) reached(states map[string]*control.Status) bool {
	roles := map[policy.Role]int{}
	for _, s := range states {
		if s.Op != nil || !s.Cluster.Reachable {
			return false
		}
		roles[s.Role]++
	}
	if roles[policy.RoleVoter] != wantVoters {
		return false
	}
	if d.slow == "" {
		return roles[policy.RoleStandby] == 1
	}
	s := states[d.slow]
	return s != nil && s.Role == policy.RoleSpare && reasonOf(s).Code == "NOT_QUALIFIED" &&
		s.Health.Disk.WAL.P99 >= s.Health.Disk.LimitSeconds
}

func reasonOf(s *control.Status) control.Reason {
	if len(s.Reasons) == 0 {
		return control.Reason{}
	}
	return s.Reasons[0]
}

// conclude prints the result after it has checked in the history that no two joins overlapped. With -svg it also writes
// the recording.
func (d *demo) conclude(ctx context.Context, states map[string]*control.Status, took time.Duration,
	tape *recording,
) error {
	var lines []control.HistoryLine
	var err error
	for _, h := range d.hosts {
		if lines, err = h.Client.History(ctx, control.MaxHistory); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	joins, err := oneAtATime(lines)
	if err != nil {
		return err
	}
	members := display.Count(wantVoters, "voter", "voters")
	if d.slow == "" {
		members += " and 1 standby"
	}
	reached := fmt.Sprintf("Done after %.0f s: %s; %s, one at a time.", took.Seconds(), members,
		display.Count(joins, "join", "joins"))
	fmt.Printf("\n%s\n", reached)
	if s := states[d.slow]; s != nil {
		fmt.Printf("%s stays out: %s: %s\n", d.slow, reasonOf(s).Code, reasonOf(s).Text)
	}
	if d.svg == "" {
		return nil
	}
	return d.writeRecording(ctx, tape, reached)
}

// oneAtATime counts the joins in a history, and fails if one began before another had ended.
func oneAtATime(lines []control.HistoryLine) (int, error) {
	joins, running := 0, ""
	for _, line := range lines {
		switch {
		case line.Kind == "step" && line.Code == "begin-join":
			if running != "" && running != line.HostName { // the same host may begin its join a second time
				return 0, fmt.Errorf("the join of %s began while that of %s was running", line.HostName, running)
			}
			running = line.HostName
			joins++
		case line.Kind == "operation":
			running = ""
		}
	}
	return joins, nil
}

// why returns each host's reason for waiting.
func why(hosts []*testbed.Host, states map[string]*control.Status) string {
	var parts []string
	for _, h := range hosts {
		text := "not responding; see its quorumd.log"
		if s := states[h.Options.Name]; s != nil {
			text = doing(s)
		}
		parts = append(parts, h.Options.Name+": "+text)
	}
	return strings.Join(parts, "; ")
}

// doing returns in a few words what a host does, or what it waits for.
func doing(s *control.Status) string {
	if s.Next.Step != "" {
		return s.Next.Text
	}
	if r := reasonOf(s); r.Code != "" {
		return r.Code + ": " + r.Text
	}
	return ""
}
