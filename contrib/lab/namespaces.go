// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// The program starts itself twice: once as the first process of the lab's namespaces, and from there once more as the
// actual program.
const (
	stageVariable = "QUORUMD_LAB_STAGE"
	runVariable   = "QUORUMD_LAB_RUN"
	stageFirst    = "first"
	stageInside   = "inside"
)

// Inside reports whether this process was started by Enter.
func Inside() bool { return os.Getenv(stageVariable) != "" }

// Enter runs the program again inside new namespaces. There it calls inside with a directory for the lab's files, and
// returns the exit code. dir is the directory for all labs of a checkout. Call Enter first in main or in TestMain.
//
// When this process ends, even by a signal, the kernel ends everything that runs in the lab.
func Enter(dir string, inside func(run string) int) int {
	var err error
	switch os.Getenv(stageVariable) {
	case stageFirst:
		err = first()
	case stageInside:
		return inside(os.Getenv(runVariable))
	default:
		var code int
		if code, err = outside(dir); err == nil {
			return code
		}
	}
	fmt.Fprintf(os.Stderr, "lab: %v\n", err)
	return 1
}

// outside creates the namespaces, waits until the program inside ends, and cleans up.
func outside(dir string) (code int, err error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("cannot create hosts: not root; run as root")
	}
	run, err := Claim(dir)
	if err != nil {
		return 0, err
	}
	defer run.Close()
	defer func() { err = errors.Join(err, sweep(run.Name())) }()

	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), stageVariable+"="+stageFirst, runVariable+"="+run.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	runtime.LockOSThread() // the kernel kills the child when the thread that started it ends
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("cannot create namespaces: %w", err)
	}
	pid := []byte(strconv.Itoa(cmd.Process.Pid))
	if err := os.WriteFile(filepath.Join(run.Name(), pidName), pid, 0o644); err != nil {
		return 0, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	go func() {
		if _, got := <-signals; got {
			_ = cmd.Process.Kill() // Kill fails only if the process has ended
		}
	}()
	_ = cmd.Wait() // cmd.ProcessState contains the result
	if code = cmd.ProcessState.ExitCode(); code < 0 {
		code = 128 + int(syscall.SIGTERM)
	}
	return code, nil
}

// first is the first process of the namespaces: it sets them up, starts the actual program, and reaps orphans.
func first() error {
	if err := setUp(); err != nil {
		return err
	}
	if err := os.Setenv(stageVariable, stageInside); err != nil {
		return err
	}
	pid, err := syscall.ForkExec("/proc/self/exe", os.Args,
		&syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fmt.Errorf("cannot wait for the lab: %w", err)
		case ended == pid && status.Signaled():
			os.Exit(128 + int(status.Signal()))
		case ended == pid:
			os.Exit(status.ExitStatus())
		}
	}
}

// setUp keeps all mounts from here on inside the namespace. It also makes unmounts propagate to the hosts' supervisors;
// otherwise a file system would stay mounted in their copies of the mount table.
func setUp() error {
	mounts := []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE},
		{"", "/", "", unix.MS_REC | unix.MS_SHARED},
		{"proc", "/proc", "proc", 0},
		{"tmpfs", "/run", "tmpfs", 0},
	}
	for _, m := range mounts {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("cannot mount %s: %w", m.target, err)
		}
	}
	return errors.Join(os.MkdirAll("/run/netns", 0o755), os.MkdirAll("/run/lock", 0o755))
}

// pidName is the file in a lab's directory with the PID of the first process of its namespaces, as seen from outside.
const pidName = "pid"

// Claim removes what killed labs have left below dir, and creates a directory for a new lab. The directory belongs to
// the caller for as long as the file is open. Only one lab starts at a time: otherwise one lab could remove the
// directory of another before that lab has locked it.
func Claim(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create a directory for labs: %w", err)
	}
	all, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if err := unix.Flock(int(all.Fd()), unix.LOCK_EX); err != nil { // no process holds this lock for long
		return nil, fmt.Errorf("cannot wait for another lab to start: %w", err)
	}
	if err := sweepAll(dir); err != nil {
		return nil, err
	}
	return claim(dir)
}

// claim creates a directory for a lab. The directory belongs to that lab for as long as the file is open.
func claim(dir string) (*os.File, error) {
	path, err := os.MkdirTemp(dir, "run-")
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return file, errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB), os.Chmod(path, 0o755))
}

// Running returns the directories of the running labs below dir.
func Running(dir string) ([]string, error) { return labs(dir, true) }

// First returns the ID of the first process of the namespaces of a running lab: nsenter(1) enters the namespaces
// through it, and everything in them ends with it.
func First(run string) (int, error) {
	text, err := os.ReadFile(filepath.Join(run, pidName))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

// sweepAll removes what killed labs have left.
func sweepAll(dir string) error {
	left, err := labs(dir, false)
	for _, run := range left {
		err = errors.Join(err, sweep(run))
	}
	return err
}

func labs(dir string, running bool) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(dir, "run-*"))
	var found []string
	for _, path := range all {
		file, openErr := os.Open(path)
		if openErr != nil {
			continue // the directory was just removed
		}
		taken := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
		file.Close()
		if taken == running {
			found = append(found, path)
		}
	}
	return found, err
}

// sweep removes the control groups and the directory of a lab, which are outside its namespaces.
func sweep(run string) error {
	return errors.Join(removeGroups(filepath.Base(run)), os.RemoveAll(run))
}
