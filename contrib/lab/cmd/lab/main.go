// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Command lab keeps a lab for manual use: hosts with quorumd installed and running, to inspect and to break.
//
//	lab up              boot the hosts, install quorumd, and return
//	lab shell HOST      a shell on a host, or: lab shell HOST COMMAND…
//	lab do WHAT HOST…   break and repair, see "lab do"
//	lab down            stop all hosts and remove the lab
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/socketpath"
	"github.com/quorumd/quorumd/contrib/lab"
)

// bound is how long it may take to boot all hosts (if a root file system exists already), to run one command of the
// lab, or to stop all hosts.
const bound = 2 * time.Minute

const (
	socketName = "control" // socket in the lab's directory; its presence shows that this command created the lab
	logName    = "lab.log"
	serve      = "serve" // hidden command that "up" starts in the background
)

// settings are the flags that all commands share.
type settings struct {
	dir, etcd, faultfs, deb string
	hosts                   int
}

func main() {
	var s settings
	flag.StringVar(&s.dir, "dir", ".cache/lab", "directory for labs and the hosts' root file system")
	flag.StringVar(&s.etcd, "etcd", ".cache/etcd/v3.6/etcd", "path of the etcd that the distribution's unit runs")
	flag.StringVar(&s.faultfs, "faultfs", "", "path of faultfs, which simulates slow disks")
	flag.StringVar(&s.deb, "deb", "", "quorumd package, for up")
	flag.IntVar(&s.hosts, "hosts", 5, "number of hosts")
	flag.Parse()
	dir, err := filepath.Abs(s.dir)
	if err == nil {
		s.dir = dir
		err = s.run(flag.Args())
	}
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		os.Exit(exit.ExitCode()) // the command on the host has printed the error itself
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "lab: %v\n", err)
		os.Exit(1)
	}
}

func (s settings) run(args []string) error {
	if len(args) == 0 {
		return errors.New("no command: use up, shell, do or down")
	}
	switch command, rest := args[0], args[1:]; {
	case command == "up" && len(rest) == 0:
		return s.up(context.Background())
	case command == serve && len(rest) == 0:
		os.Exit(lab.Enter(s.dir, s.serve))
	case command == "shell" && len(rest) > 0:
		return s.shell(rest[0], rest[1:])
	case command == "do":
		return s.do(rest)
	case command == "down" && len(rest) == 0:
		return s.down(context.Background())
	}
	return fmt.Errorf("unknown command %q: use up, shell HOST, do WHAT HOST or down", strings.Join(args, " "))
}

// find returns the directory of the running lab.
func (s settings) find() (string, error) {
	running, err := lab.Running(s.dir)
	for _, run := range running {
		if _, err := os.Stat(filepath.Join(run, socketName)); err == nil {
			return run, nil
		}
	}
	return "", errors.Join(errors.New("no lab is running; start one with make lab-up"), err)
}

// up starts the lab in the background and returns when its hosts are up.
func (s settings) up(ctx context.Context) error {
	if _, err := s.find(); err == nil {
		return errors.New("cannot start a lab: one is already running; end it with make lab-down")
	}
	if err := lab.Tools(ctx); err != nil {
		return err
	}
	if _, err := lab.Debian12.Root(ctx, s.dir); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, logName))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe", append(os.Args[1:len(os.Args)-1:len(os.Args)-1], serve)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the lab must outlive the terminal
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(bound)
	for {
		select {
		case <-tick.C:
			if _, err := s.find(); err == nil {
				fmt.Print(welcome)
				return nil
			}
		case err := <-ended:
			text, _ := os.ReadFile(log.Name()) // the error contains the log
			return fmt.Errorf("cannot start a lab: %w: %s", err, text)
		case <-deadline:
			return fmt.Errorf("the lab did not start in time; see %s: %w", log.Name(), cmd.Process.Kill())
		}
	}
}

const welcome = `The hosts are up, quorumd runs on each in manage mode, and there is no cluster yet.
    make lab-shell HOST=n1                a shell; then: quorumctl bootstrap --yes; quorumctl status --watch
    make lab-do DO="off n2"               all commands: make lab-do
    make lab-down                         end the lab
`

// shell runs a command on a host, with this terminal.
func (s settings) shell(host string, command []string) error {
	run, err := s.find()
	if err != nil {
		return err
	}
	reply, err := ask(run, "pid "+host)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(reply)
	if err != nil {
		return err
	}
	first, err := lab.First(run)
	if err != nil {
		return err
	}
	if len(command) == 0 {
		command = []string{"bash", "--login"}
	}
	args := append([]string{"-t", strconv.Itoa(first), "-m", "-p", "--", "nsenter"}, lab.EnterArgs(pid, command...)...)
	cmd := exec.Command("nsenter", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// do asks the lab to run one of its commands on hosts.
func (s settings) do(words []string) error {
	run, err := s.find()
	if err != nil {
		return err
	}
	reply, err := ask(run, strings.Join(words, " "))
	if err == nil && reply != "" {
		fmt.Println(reply)
	}
	return err
}

// ask sends one line to the lab and returns its reply.
func ask(run, line string) (string, error) {
	var conn net.Conn
	err := socketpath.With(filepath.Join(run, socketName), func(address string) (err error) {
		conn, err = net.Dial("unix", address)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("cannot reach the lab: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(bound)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return "", err
	}
	reply := strings.TrimSpace(string(text))
	if message, failed := strings.CutPrefix(reply, failure); failed {
		return "", errors.New(message)
	}
	return reply, nil
}

// down ends the lab, and waits until the lab has removed its directory, which is its last action.
func (s settings) down(ctx context.Context) error {
	run, err := s.find()
	if err != nil {
		return err
	}
	first, err := lab.First(run)
	if err != nil {
		return err
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(run); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the lab did not end in time: %w", ctx.Err())
		}
	}
}
