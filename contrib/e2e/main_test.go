// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/cmd/quorumd/daemon"
)

// leash is the environment variable with the directory through which a test controls an agent; see leashed.
const leash = "QUORUMD_E2E_LEASH"

// worlds is how many tests run in parallel, unless -parallel is set. They mostly wait for leases and timers, so there
// may be more of them than CPUs.
const worlds = 8

func TestMain(m *testing.M) {
	if code, is := daemon.Child(os.Args[1:]); is {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == "run" {
		os.Exit(runAgent(os.Args[2:]))
	}
	if len(os.Args) == 3 && os.Args[1] == "proxy" {
		os.Exit(runProxy(os.Args[2]))
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(worlds)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// runProxy is the program quorumd proxy.
func runProxy(config string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := daemon.Proxy(ctx, config, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		fmt.Fprintf(os.Stderr, "quorumd: %v\n", err)
	}
	return daemon.ExitCode(err)
}

// runAgent runs quorumd under the control of the test.
func runAgent(args []string) int {
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	config := flags.String("config", "", "configuration file")
	if err := flags.Parse(args); err != nil {
		return 64
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	l := leashed(os.Getenv(leash))
	go l.endWithParent(os.Getppid())
	err := daemon.Run(ctx, daemon.Options{
		Config: *config, Version: "e2e",
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Stepping: l.stepping, Wall: l.wall,
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "quorumd: %v\n", err)
	}
	return daemon.ExitCode(err)
}

// leashed is a directory with these files, which a test may change while the agent runs:
//
//   - stop contains the point at which the agent has to stop, such as "before promote" or "after set-phase/added":
//     the loop blocks there until the file is removed or its content changes.
//   - stopped is written by the agent when it has stopped: the point and its process ID.
//   - clock contains the offset of the agent's wall clock, such as "30s".
type leashed string

const (
	stopFile    = "stop"
	stoppedFile = "stopped"
	clockFile   = "clock"
	leashPoll   = 5 * time.Millisecond
)

func (l leashed) read(name string) string {
	text, err := os.ReadFile(filepath.Join(string(l), name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err) // an agent that the test cannot control must not run
	}
	return string(text)
}

// write replaces a file atomically, so that no reader sees a partial file.
func (l leashed) write(name, text string) error {
	path := filepath.Join(string(l), name)
	return errors.Join(os.WriteFile(path+".new", []byte(text), 0o644), os.Rename(path+".new", path))
}

func (l leashed) remove(name string) error {
	err := os.Remove(filepath.Join(string(l), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// point names a moment in the loop: before or after a step, with the phase of a step that sets one.
func point(step policy.Step, done bool) string {
	name := string(step.Kind)
	if step.Kind == policy.StepSetPhase {
		name += "/" + string(step.Phase)
	}
	if done {
		return "after " + name
	}
	return "before " + name
}

// stepping is called by the loop, which waits until it returns.
func (l leashed) stepping(step policy.Step, done bool) {
	here := point(step, done)
	if l.read(stopFile) != here {
		return
	}
	if err := l.write(stoppedFile, fmt.Sprintf("%s %d", here, os.Getpid())); err != nil {
		panic(err)
	}
	tick := time.NewTicker(leashPoll)
	defer tick.Stop()
	for l.read(stopFile) == here {
		<-tick.C
	}
}

// wall returns the wall-clock time for the agent: the actual time plus the offset in the clock file.
func (l leashed) wall() time.Time {
	offset, err := time.ParseDuration(strings.TrimSpace(l.read(clockFile)))
	if err != nil {
		offset = 0
	}
	return time.Now().Add(offset)
}

// endWithParent ends the agent if the test program has died without cleaning up.
func (l leashed) endWithParent(parent int) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range tick.C {
		if os.Getppid() != parent {
			os.Exit(70)
		}
	}
}
