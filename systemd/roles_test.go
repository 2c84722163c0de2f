// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// playRole plays the role of a child of the tests, and returns its exit code.
func playRole(role string, args []string) int {
	switch role {
	case "sleeper":
		fmt.Println("ready")
		waitLong()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		waitLong()
	case "exit":
		code, _ := strconv.Atoi(args[0])
		return code
	case "talker":
		rest, err := io.ReadAll(os.Stdin)
		fmt.Printf("to stdout, stdin has %d bytes, error %v\n", len(rest), err)
		fmt.Fprintln(os.Stderr, "to stderr")
		dir, _ := os.Getwd()
		fmt.Println("in", dir)
		fmt.Println("ready")
		waitLong()
	case "parent":
		// A child that ignores SIGTERM, by default in the same process group.
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), roleVariable+"=stubborn")
		child.Stdout = os.Stdout
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: len(args) == 1} // "apart" from the group
		if err := child.Start(); err != nil {
			return 1
		}
		fmt.Println("grandchild", child.Process.Pid)
		waitLong()
	case "witness":
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		fmt.Println("ready")
		<-terminated
		text, err := os.ReadFile(args[0])
		fmt.Printf("%s %v\n", text, err)
	case "headless":
		loseMainThread()
		fmt.Println("ready")
		waitLong()
	case "environment":
		for _, assignment := range os.Environ() {
			fmt.Println(strconv.Quote(assignment))
		}
		fmt.Println("ready")
		waitLong()
	case "notifier":
		return playNotifier()
	case "agent":
		return playAgent(args[0])
	case "systemd":
		return becomeSystemd(args)
	case "logind":
		return becomeLogind()
	default:
		return 99
	}
	return 0
}

// playNotifier plays a service that reports that it is ready and feeds the watchdog. On SIGHUP, it stops feeding the
// watchdog.
func playNotifier() int {
	n := NewNotifier()
	interval, err := WatchdogInterval()
	if err != nil || interval == 0 {
		return 1
	}
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	if n.Status("all is well") != nil || n.Ready() != nil {
		return 1
	}
	tick := time.NewTicker(interval / 4)
	for {
		select {
		case <-tick.C:
			_ = n.Watchdog()
		case <-hangUp:
			waitLong()
		}
	}
}

// loseMainThread ends only the main thread, so that /proc shows a zombie whose other threads still run.
func loseMainThread() {
	lost := make(chan struct{})
	hold := make(chan struct{})
	for range 64 {
		go func() {
			runtime.LockOSThread() // each goroutine gets a thread, and one of them the main thread
			if unix.Gettid() == os.Getpid() {
				close(lost)
				_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
			}
			<-hold
		}()
	}
	<-lost
}

// waitLong waits far longer than any test, but not for ever, in case a test leaves the child behind.
func waitLong() { <-time.After(5 * time.Minute) }

// agentConfig is the argument of the role "agent": the process that it manages.
type agentConfig struct {
	Name        string
	Argv        []string
	Env         []string
	Dir         string
	LogFile     string
	StopTimeout time.Duration
}

func (c agentConfig) options() ProcessOptions {
	return ProcessOptions{
		Name: c.Name, Argv: c.Argv, Env: c.Env, Dir: c.Dir, LogFile: c.LogFile,
		StopTimeout: c.StopTimeout, Logger: slog.New(slog.DiscardHandler),
	}
}

// playAgent carries out the verbs on its stdin, one per line, and answers each with a line. Unless a stop or restart is
// in progress, it checks the process only on request. It ends when its stdin is closed.
func playAgent(config string) int {
	var c agentConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		fmt.Println(err)
		return 1
	}
	p, err := NewProcess(c.options())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx := context.Background()
	verbs := map[string]func(context.Context) error{"start": p.Start, "stop": p.Stop, "restart": p.Restart}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if verb := verbs[strings.TrimSpace(lines.Text())]; verb != nil {
			if err := verb(ctx); err != nil {
				fmt.Println("error", err)
				continue
			}
			fmt.Println("ok")
			continue
		}
		st, err := p.Status(ctx)
		fmt.Println(st.State, st.PID, err)
	}
	return 0
}
