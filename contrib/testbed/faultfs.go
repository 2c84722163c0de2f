// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// faultfsBound is how long a mount or a command may take; both take milliseconds.
const faultfsBound = 10 * time.Second

// Mount is a directory that contrib/faultfs mounts at a second path, with faults on request.
type Mount struct {
	Back string // the backing directory
	Dir  string // the mount point, with the faults of the rules
	sock string
	proc *process
	args []string // arguments with which faultfs was started
}

// FaultfsUsable returns why this machine cannot mount a faultfs, or nil if it can. faultfs needs /dev/fuse, and root
// or fusermount3.
func FaultfsUsable() error {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return fmt.Errorf("cannot use FUSE: %w; run `modprobe fuse`, or give the container the device", err)
	}
	if _, err := exec.LookPath("fusermount3"); err != nil && os.Geteuid() != 0 {
		return errors.New("cannot use FUSE: not root, and no fusermount3; run as root, or install the package fuse3")
	}
	return nil
}

// MountFaultfs mounts back at a temporary directory until the test ends. Before the test ends, clear the rules that
// hang operations: a process that they block cannot be killed.
func MountFaultfs(t testing.TB, back string) *Mount {
	t.Helper()
	binary, err := FaultfsBinary()
	if err != nil {
		t.Fatal(err)
	}
	m, err := StartFaultfs(binary, back, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m.unmountAfter(t)
	return m
}

// MountPowered mounts back at dir until the test ends, and tracks unsynced writes: CutPower discards them. Both
// directories must exist.
func MountPowered(t testing.TB, back, dir string) *Mount {
	t.Helper()
	binary, err := FaultfsBinary()
	if err != nil {
		t.Fatal(err)
	}
	m, err := startFaultfs(binary, back, dir, "-power")
	if err != nil {
		t.Fatal(err)
	}
	m.unmountAfter(t)
	return m
}

func (m *Mount) unmountAfter(t testing.TB) {
	t.Cleanup(func() {
		if err := m.Unmount(); err != nil {
			t.Error(err)
		}
	})
}

// StartFaultfs mounts back at dir, and returns when it is mounted. Both directories must exist. It stays mounted until
// Unmount, or until this process dies.
func StartFaultfs(binary, back, dir string) (*Mount, error) { return startFaultfs(binary, back, dir) }

func startFaultfs(binary, back, dir string, more ...string) (*Mount, error) {
	if err := FaultfsUsable(); err != nil {
		return nil, err
	}
	sockDir, err := tempdir.Make()
	if err != nil {
		return nil, fmt.Errorf("cannot start faultfs: %w", err)
	}
	m := &Mount{Back: back, Dir: dir, sock: filepath.Join(sockDir, "control")}
	m.args = append([]string{binary, "-back", m.Back, "-mnt", m.Dir, "-sock", m.sock}, more...)
	if err := m.start(); err != nil {
		os.RemoveAll(sockDir)
		return nil, err
	}
	return m, nil
}

func (m *Mount) start() error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot start faultfs: %w", err)
	}
	defer reader.Close()
	var stderr bytes.Buffer
	cmd := exec.Command(m.args[0], m.args[1:]...)
	cmd.Stdout, cmd.Stderr = writer, &stderr
	m.proc, err = startProcess(cmd, syscall.SIGTERM)
	writer.Close()
	if err != nil {
		return fmt.Errorf("cannot start faultfs: %w", err)
	}
	if err := reader.SetReadDeadline(time.Now().Add(faultfsBound)); err != nil {
		return errors.Join(fmt.Errorf("cannot start faultfs: %w", err), m.terminate())
	}
	if line, _ := bufio.NewReader(reader).ReadString('\n'); line != "mounted\n" {
		err := m.terminate() // stderr is complete after faultfs has exited
		return errors.Join(fmt.Errorf("cannot start faultfs: %s", strings.TrimSpace(stderr.String())), err)
	}
	return nil
}

// Rule adds a rule such as "fsync * delay=20ms". The rule is in force when Rule returns. See contrib/faultfs for the
// syntax.
func (m *Mount) Rule(rule string) error {
	_, err := m.command("rule " + rule)
	return err
}

// Clear removes all rules and releases the operations that they hold.
func (m *Mount) Clear() error {
	_, err := m.command("clear")
	return err
}

// Stats returns one line per rule: "hits=3 waiting=1 rule fsync * hang".
func (m *Mount) Stats() (string, error) { return m.command("stats") }

// CutPower discards unsynced writes and mounts the remaining data again, as after a boot. No process may have a file
// open there. It returns how much was discarded.
func (m *Mount) CutPower() (string, error) {
	lost, err := m.command("cut")
	if err != nil {
		return "", err
	}
	if err := m.terminate(); err != nil {
		return "", err
	}
	return strings.TrimSpace(lost), m.start()
}

// command connects to the socket directly. Running the faultfs program could hang, because a fork waits for open files
// whose operations hang.
func (m *Mount) command(line string) (string, error) {
	conn, err := net.DialTimeout("unix", m.sock, faultfsBound)
	if err != nil {
		return "", fmt.Errorf("cannot reach faultfs: %w", err)
	}
	defer conn.Close()
	// fails only on a closed connection, which the following write reports
	_ = conn.SetDeadline(time.Now().Add(faultfsBound))
	_, err = fmt.Fprintln(conn, line)
	reply, readErr := io.ReadAll(conn)
	if err := errors.Join(err, readErr); err != nil {
		return "", fmt.Errorf("cannot reach faultfs: %w", err)
	}
	if message, failed := strings.CutPrefix(string(reply), "error: "); failed {
		return "", fmt.Errorf("cannot do %q: %s", line, message)
	}
	return string(reply), nil
}

// Unmount clears the rules and unmounts, even if files are open there. It may be called more than once.
func (m *Mount) Unmount() error {
	defer os.RemoveAll(filepath.Dir(m.sock))
	return m.terminate()
}

func (m *Mount) terminate() error {
	if err := m.proc.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop faultfs: %w", err)
	}
	if err := m.proc.stop(faultfsBound); err != nil {
		return fmt.Errorf("cannot unmount %s: %w", m.Dir, err)
	}
	return nil
}
