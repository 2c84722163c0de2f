// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bound is how long a test waits for an event that should take milliseconds.
const bound = 20 * time.Second

// TestMain lets the test binary act as faultfs, so that the file system runs in a separate process.
func TestMain(m *testing.M) {
	if os.Getenv("FAULTFS_TEST_RUN_MAIN") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// mounted is a running faultfs.
type mounted struct {
	back, mnt, sock string
	cmd             *exec.Cmd
	exited          chan error
}

func faultfs(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "FAULTFS_TEST_RUN_MAIN=1")
	return cmd
}

// start mounts a faultfs on temporary directories and removes it after the test. It needs /dev/fuse, and root or
// fusermount3.
func start(t *testing.T, more ...string) *mounted {
	t.Helper()
	dir := t.TempDir()
	m := &mounted{
		back: filepath.Join(dir, "back"), mnt: filepath.Join(dir, "mnt"), sock: filepath.Join(dir, "s"),
		exited: make(chan error, 1),
	}
	for _, d := range []string{m.back, m.mnt} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.cmd = faultfs(append([]string{"-back", m.back, "-mnt", m.mnt, "-sock", m.sock}, more...)...)
	var stderr bytes.Buffer
	m.cmd.Stderr = &stderr
	stdout, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.stop(t) })
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	go func() { m.exited <- m.cmd.Wait() }()
	if line != "mounted\n" {
		<-m.exited
		m.exited <- errors.New("never mounted")
		t.Fatalf("faultfs printed %q and %q", line, stderr.String())
	}
	return m
}

func (m *mounted) stop(t *testing.T) {
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // the test itself may have ended it
	select {
	case err := <-m.exited:
		m.exited <- err
	case <-time.After(bound):
		t.Error("faultfs did not exit on SIGTERM")
		_ = m.cmd.Process.Kill()
	}
}

func (m *mounted) command(t *testing.T, line string) string {
	t.Helper()
	reply, err := send(m.sock, line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return reply
}

// eventually polls until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(bound); !cond(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not in %v: %s", bound, what)
		}
	}
}

func (m *mounted) open(t *testing.T, name string, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(m.mnt, name), os.O_RDWR|os.O_CREATE|flags, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Clear the faults first, or Close would wait for a hanging operation. The error is ignored: the test may have
		// stopped faultfs.
		_, _ = send(m.sock, "clear")
		f.Close()
	})
	return f
}

// alignedBlock returns a block of 4096 bytes that a direct write accepts.
func alignedBlock() []byte {
	buf := make([]byte, 8192)
	skip := 4096 - int(uintptr(unsafe.Pointer(&buf[0]))%4096)
	return buf[skip : skip+4096]
}

func TestEverySyncedWriteMeetsTheFsyncRuleExactlyOnce(t *testing.T) {
	t.Parallel()
	m := start(t)
	m.command(t, "rule fsync * delay=1ms")
	want := 0
	for name, flags := range map[string]int{
		"dsync": unix.O_DSYNC, "sync": unix.O_SYNC,
		"direct": unix.O_DIRECT, "direct-dsync": unix.O_DIRECT | unix.O_DSYNC,
		"direct-sync": unix.O_DIRECT | unix.O_SYNC,
	} {
		f := m.open(t, name, flags)
		for i := range 5 {
			if _, err := f.WriteAt(alignedBlock(), int64(i)*4096); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if name != "direct" {
			want += 5
		}
		if got := m.command(t, "stats"); !strings.HasPrefix(got, fmt.Sprintf("hits=%d waiting=0 ", want)) {
			t.Errorf("after 5 writes with %s: %s, want %d hits", name, got, want)
		}
	}
}

func TestFsyncFdatasyncAndDirectoryFsyncMeetTheFsyncRule(t *testing.T) {
	t.Parallel()
	m := start(t)
	const delay = 60 * time.Millisecond
	m.command(t, "rule fsync * delay="+delay.String())
	f := m.open(t, "f", 0)
	dir, err := os.Open(m.mnt)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for what, sync := range map[string]func() error{
		"fsync": f.Sync, "fdatasync": func() error {
			return unix.Fdatasync(int(f.Fd()))
		}, "fsync of a directory": dir.Sync,
	} {
		begun := time.Now()
		if err := sync(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if took := time.Since(begun); took < delay {
			t.Errorf("%s took %v, want at least %v", what, took, delay)
		}
	}
}

func TestARuleMatchesTheCurrentNameOfAFile(t *testing.T) {
	t.Parallel()
	m := start(t)
	if err := os.Mkdir(filepath.Join(m.mnt, "wal"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := m.open(t, "wal/0.tmp", 0)
	m.command(t, "rule fsync wal/*.wal err=EIO")
	if err := f.Sync(); err != nil {
		t.Fatalf("before the rename: %v", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(m.mnt, "wal", "1.wal")); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("after the rename: %v, want EIO", err)
	}
}

func TestErrorsReachTheProgram(t *testing.T) {
	t.Parallel()
	m := start(t)
	path := filepath.Join(m.mnt, "f")
	f := m.open(t, "f", 0)
	for _, c := range []struct {
		rule string
		want error
		do   func() error
	}{
		{"rule write f err=ENOSPC", syscall.ENOSPC, func() error { _, err := f.WriteAt([]byte("x"), 0); return err }},
		{"rule write f err=ENOSPC", syscall.ENOSPC, func() error { return unix.Fallocate(int(f.Fd()), 0, 0, 1<<20) }},
		{"rule write f err=EROFS", syscall.EROFS, func() error { return os.Truncate(path, 1) }},
		{"rule open f err=EROFS", syscall.EROFS, func() error {
			g, err := os.OpenFile(path, os.O_WRONLY, 0)
			g.Close()
			return err
		}},
		{"rule open new err=ENOSPC", syscall.ENOSPC, func() error {
			g, err := os.Create(filepath.Join(m.mnt, "new"))
			g.Close()
			return err
		}},
		{"rule any * err=EIO", syscall.EIO, f.Sync},
	} {
		m.command(t, c.rule)
		if err := c.do(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.rule, err, c.want)
		}
		m.command(t, "clear")
		if err := c.do(); err != nil {
			t.Errorf("%s, cleared: %v", c.rule, err)
		}
	}
}

func TestAReadTheCacheCannotAnswerMeetsTheReadRule(t *testing.T) {
	t.Parallel()
	m := start(t)
	if err := os.WriteFile(filepath.Join(m.back, "f"), []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.command(t, "rule read f err=EIO")
	if _, err := os.ReadFile(filepath.Join(m.mnt, "f")); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v, want EIO", err)
	}
	m.command(t, "clear")
	if got, err := os.ReadFile(filepath.Join(m.mnt, "f")); err != nil || string(got) != "data" {
		t.Errorf("cleared: %q, %v", got, err)
	}
}

func TestAHangLastsUntilClear(t *testing.T) {
	t.Parallel()
	m := start(t)
	f := m.open(t, "f", 0)
	m.command(t, "rule fsync * hang")
	done := make(chan error, 1)
	go func() { done <- f.Sync() }()
	eventually(t, "the fsync hangs", func() bool { return strings.Contains(m.command(t, "stats"), "waiting=1") })
	if err := os.WriteFile(filepath.Join(m.mnt, "g"), []byte("x"), 0o600); err != nil {
		t.Errorf("a write that no rule matches: %v", err)
	}
	if err := exec.Command("/proc/self/exe", "-test.list", "none").Run(); err != nil {
		t.Errorf("a fork with the file open: %v", err)
	}
	select {
	case err := <-done:
		t.Fatalf("the fsync returned %v before clear", err)
	default:
	}
	m.command(t, "clear")
	if err := <-done; err != nil {
		t.Errorf("the fsync after clear: %v", err)
	}
}

func TestTheFileOperationsThatEtcdNeedsWork(t *testing.T) {
	t.Parallel()
	m := start(t)
	f := m.open(t, "db", 0)
	fd := int(f.Fd())
	if err := unix.Fallocate(fd, 0, 0, 1<<20); err != nil {
		t.Fatalf("fallocate: %v", err)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatalf("flock: %v", err)
	}
	other := m.open(t, "db", 0)
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("a second flock: %v, want EWOULDBLOCK", err)
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &lock); err != nil {
		t.Errorf("open file description lock: %v", err)
	}
	shared, err := unix.Mmap(fd, 0, 1<<20, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatalf("mmap: %v", err)
	}
	defer func() { _ = unix.Munmap(shared) }()
	if _, err := f.WriteAt([]byte("written"), 4096); err != nil {
		t.Fatal(err)
	}
	if got := string(shared[4096:4103]); got != "written" {
		t.Errorf("the map shows %q after a write of %q", got, "written")
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	back, err := os.ReadFile(filepath.Join(m.back, "db"))
	if err != nil || len(back) != 1<<20 || string(back[4096:4103]) != "written" {
		t.Errorf("the backing file has %d bytes, %v", len(back), err)
	}
}

// quorumd reopens an unlinked database this way.
func TestAFileWithoutANameIsOpenedThroughItsDescriptor(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"-power"}} {
		m := start(t, flags...)
		f := m.open(t, "f", 0)
		must(t, os.Remove(f.Name()))
		_, err := f.WriteString("written")
		must(t, err)
		again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDWR, 0)
		must(t, err)
		info, err := again.Stat()
		must(t, err)
		text, err := io.ReadAll(again)
		if err != nil || string(text) != "written" || info.Size() != int64(len(text)) {
			t.Errorf("%v: it holds %q of %d bytes, %v", flags, text, info.Size(), err)
		}
		must(t, again.Close())
	}
}

func TestSIGTERMUnmountsDespiteAnOpenFileAndAHungOperation(t *testing.T) {
	t.Parallel()
	m := start(t)
	f := m.open(t, "f", 0)
	m.command(t, "rule fsync * hang")
	done := make(chan error, 1)
	go func() { done <- f.Sync() }()
	eventually(t, "the fsync hangs", func() bool { return strings.Contains(m.command(t, "stats"), "waiting=1") })
	m.stop(t)
	if err := <-m.exited; err != nil {
		t.Errorf("faultfs exited with %v", err)
	}
	m.exited <- nil
	<-done
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), m.mnt) {
		t.Errorf("still mounted on %s (%v)", m.mnt, err)
	}
	if _, err := os.Stat(m.sock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the control socket is still there: %v", err)
	}
}

func TestAnUnknownCommandIsRefusedWithTheUsage(t *testing.T) {
	t.Parallel()
	rules := &ruleTable{}
	for _, line := range []string{
		"", "rule", "rule fsync *", "rule chmod * hang", "rule fsync [ hang", "rule fsync * delay=3",
		"rule fsync * delay=-1s", "rule fsync * tail=2:1s", "rule fsync * tail=0.1", "rule fsync * err=EPERM",
		"rule fsync * slow", "stop",
	} {
		if out, err := rules.command(line); !errors.Is(err, errUsage) {
			t.Errorf("%q: got %q and %v", line, out, err)
		}
	}
	if len(rules.rules) > 0 {
		t.Errorf("%d rules are in force", len(rules.rules))
	}
}

func TestAWrongCommandExitsWithAnError(t *testing.T) {
	t.Parallel()
	m := start(t)
	var stderr bytes.Buffer
	cmd := faultfs("-sock", m.sock, "-c", "rule fsync * sleep=1s")
	cmd.Stdout, cmd.Stderr = io.Discard, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 ||
		!strings.Contains(stderr.String(), `unknown action "sleep=1s"`) {
		t.Errorf("got %v and %q", err, stderr.String())
	}
}

func TestDelaysAddUpAndATailIsAdded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rules := &ruleTable{}
		for _, line := range []string{"rule fsync * delay=20ms", "rule any f tail=1:100ms", "rule fsync other hang"} {
			if _, err := rules.command(line); err != nil {
				t.Fatal(err)
			}
		}
		for op, want := range map[string]time.Duration{
			"fsync": 120 * time.Millisecond,
			"write": 100 * time.Millisecond,
		} {
			begun := time.Now()
			rules.apply(op, "dir/f")
			if took := time.Since(begun); took != want {
				t.Errorf("%s took %v, want %v", op, took, want)
			}
		}
	})
}

func TestClearEndsALongDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rules := &ruleTable{}
		if _, err := rules.command("rule fsync * delay=1h err=EIO"); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		done := make(chan syscall.Errno, 1)
		go func() { done <- rules.apply("fsync", "f") }()
		synctest.Wait()
		if _, err := rules.command("clear"); err != nil {
			t.Fatal(err)
		}
		if errno := <-done; errno != syscall.EIO || time.Since(begun) != 0 {
			t.Errorf("got %v after %v", errno, time.Since(begun))
		}
	})
}
