// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemdtest

package systemd

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	godbus "github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// preparation is a Shutdown that only prepares.
type preparation func(ctx context.Context)

func (p preparation) Prepare(ctx context.Context) { p(ctx) }

func (preparation) Cancelled(context.Context) {}

// revocable also reports a cancelled shutdown.
type revocable struct {
	preparation
	calledOff chan struct{}
}

func (r *revocable) Cancelled(context.Context) { close(r.calledOff) }

// login is a real systemd-logind on the bus of an instance, isolated from the machine. A reboot only starts the
// instance's reboot.target, which does nothing.
type login struct {
	*instance
	cmd  *exec.Cmd
	text syncBuffer // what Logind logged
}

func newLogin(t *testing.T) *login {
	t.Helper()
	i := newInstance(t, "")
	i.writeUnit("reboot.target", "[Unit]\nDefaultDependencies=no\n")
	i.reload()
	g := &login{instance: i}
	t.Cleanup(g.end)
	g.begin()
	return g
}

// begin starts logind and waits until it answers.
func (g *login) begin() {
	g.t.Helper()
	g.cmd = exec.Command("/proc/self/exe")
	log, err := os.OpenFile(filepath.Join(g.dir, "logind.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		g.t.Fatal(err)
	}
	defer log.Close()
	g.cmd.Stdout, g.cmd.Stderr = log, log
	g.cmd.Env = []string{
		roleVariable + "=logind", "PATH=" + os.Getenv("PATH"), "DBUS_SYSTEM_BUS_ADDRESS=unix:path=" + g.bus(),
		"SYSTEMD_LOG_TARGET=console", "QUORUMD_TEST_RUN=" + filepath.Join(g.dir, "run"),
	}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Unshareflags: unix.CLONE_NEWNS}
	if err := g.cmd.Start(); err != nil {
		g.t.Fatalf("cannot start logind: %v%s", err, remedy)
	}
	eventually(g.t, "logind answers", func() bool {
		_, err := g.property("InhibitDelayMaxUSec")
		return err == nil
	})
}

func (g *login) end() {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
	if g.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(g.dir, "logind.log"))
		g.t.Logf("logind:\n%s\nquorumd:\n%s", log, g.text.String())
	}
}

// connect opens a connection to the instance's bus.
func (g *login) connect(ctx context.Context) (*godbus.Conn, error) {
	return godbus.Connect("unix:path="+g.bus(), godbus.WithContext(ctx))
}

func (g *login) property(name string) (godbus.Variant, error) {
	var value godbus.Variant
	conn, err := g.connect(g.t.Context())
	if err != nil {
		return value, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Second)
	defer cancel()
	err = conn.Object(logindName, logindPath).CallWithContext(ctx, propertyGet, godbus.FlagNoAutoStart, logindInterface,
		name).Store(&value)
	return value, err
}

// locks counts quorumd's inhibitor locks in logind; -1 if logind does not answer.
func (g *login) locks() int {
	g.t.Helper()
	conn, err := g.connect(g.t.Context())
	if err != nil {
		return -1
	}
	defer conn.Close()
	var list []struct {
		What, Who, Why, Mode string
		UID, PID             uint32
	}
	if conn.Object(logindName, logindPath).Call(logindInterface+".ListInhibitors",
		godbus.FlagNoAutoStart).Store(&list) != nil {
		return -1
	}
	n := 0
	for _, lock := range list {
		if lock.Who == "quorumd" && lock.What == "shutdown" && lock.Mode == "delay" &&
			strings.Contains(lock.Why, "leadership") {
			n++
		}
	}
	return n
}

// logind returns the Logind under test, on the instance's bus.
func (g *login) logind() *Logind {
	l := NewLogind(LogindOptions{Dial: g.connect, Logger: slog.New(slog.NewTextHandler(&g.text, nil))})
	l.retry = 50 * time.Millisecond
	return l
}

// hold holds the lock until the test ends.
func (g *login) hold(prepare preparation) {
	g.t.Helper()
	g.holdUntil(g.t.Context(), prepare)
	eventually(g.t, "the lock is held", func() bool { return g.locks() == 1 })
}

func (g *login) holdUntil(ctx context.Context, shutdown Shutdown) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var held sync.WaitGroup
	held.Go(func() { g.logind().Inhibit(ctx, shutdown) })
	stop = func() { cancel(); held.Wait() }
	g.t.Cleanup(stop)
	return stop
}

// goesDown reports whether the instance was asked to reboot.
func (g *login) goesDown() bool {
	states, err := g.root.ListUnitsByNamesContext(g.t.Context(), []string{"reboot.target"})
	return err == nil && len(states) == 1 && states[0].ActiveState == "active"
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestARebootWaitsForThePreparation(t *testing.T) {
	t.Parallel()
	g := newLogin(t)
	begun, mayEnd := make(chan time.Duration, 1), make(chan struct{})
	g.hold(func(ctx context.Context) {
		deadline, _ := ctx.Deadline()
		begun <- time.Until(deadline)
		<-mayEnd
	})
	if err := g.logind().Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := <-begun; left > usualDelay-beforeLimit || left < time.Second {
		t.Errorf("the preparation had %s", left)
	}
	if !strings.Contains(g.text.String(), "max_delay=5s") { // logged before the preparation begins
		t.Errorf("the log does not name logind's limit:\n%s", g.text.String())
	}
	if g.goesDown() {
		t.Error("the machine did not wait")
	}
	close(mayEnd)
	eventually(t, "the machine goes down", g.goesDown)
}

func TestASlowPreparationIsCancelledBeforeTheMachineGoesDown(t *testing.T) {
	t.Parallel()
	g := newLogin(t)
	upAtTheEnd := make(chan bool, 1)
	g.hold(func(ctx context.Context) {
		<-ctx.Done()
		upAtTheEnd <- !g.goesDown() && errors.Is(ctx.Err(), context.DeadlineExceeded)
	})
	if err := g.logind().Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !<-upAtTheEnd {
		t.Error("the machine went down before the preparation's context ended")
	}
	eventually(t, "the machine goes down", g.goesDown)
}

func TestTheLockIsTakenAgainWhenLogindIsRestarted(t *testing.T) {
	t.Parallel()
	g := newLogin(t)
	prepared := make(chan struct{})
	g.hold(func(context.Context) { close(prepared) })
	for range 2 {
		_ = g.cmd.Process.Kill()
		_ = g.cmd.Wait()
		g.begin()
		eventually(t, "the lock is held again, once", func() bool { return g.locks() == 1 })
	}
	if err := g.logind().Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-prepared
	eventually(t, "the machine goes down", g.goesDown)
}

func TestTheLockIsTakenAgainWhenTheBusIsRestarted(t *testing.T) {
	t.Parallel()
	g := newLogin(t)
	g.hold(func(context.Context) {})
	g.halt("dbus.service")
	_ = g.cmd.Process.Kill() // logind may have ended together with its bus
	_ = g.cmd.Wait()
	g.run("dbus.service")
	g.begin()
	eventually(t, "the lock is held again", func() bool { return g.locks() == 1 })
}

func TestTheLockIsReleasedAtTheEnd(t *testing.T) {
	t.Parallel()
	g := newLogin(t)
	stop := g.holdUntil(t.Context(), preparation(func(context.Context) {}))
	eventually(t, "the lock is held", func() bool { return g.locks() == 1 })
	stop()
	eventually(t, "the lock is gone", func() bool { return g.locks() == 0 })
}

func TestACancelledShutdownEndsThePreparationAndTakesTheLockAgain(t *testing.T) {
	t.Parallel()
	g := newLogin(t)
	ended := make(chan error, 1)
	calledOff := make(chan struct{})
	g.holdUntil(t.Context(), &revocable{func(ctx context.Context) {
		<-ctx.Done()
		ended <- ctx.Err()
	}, calledOff})
	eventually(t, "the lock is held", func() bool { return g.locks() == 1 })
	// If systemd refuses the reboot, logind cancels the shutdown.
	g.writeUnit("reboot.target", "[Unit]\nDefaultDependencies=no\nRefuseManualStart=yes\n")
	g.reload()
	if err := g.logind().Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the preparation's context did not end")
	}
	<-calledOff
	eventually(t, "the lock is held again", func() bool {
		return g.locks() == 1 && strings.Contains(g.text.String(), "shutdown cancelled")
	})
}

func TestWithoutLogindOneLineIsLogged(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	g := &login{instance: i}
	stop := g.holdUntil(t.Context(), preparation(func(context.Context) { t.Error("nothing begins without logind") }))
	eventually(t, "a few attempts", func() bool {
		return strings.Contains(g.text.String(), "there is no logind here")
	})
	<-time.After(500 * time.Millisecond)
	stop()
	if lines := strings.Count(g.text.String(), "\n"); lines != 1 {
		t.Errorf("%d lines:\n%s", lines, g.text.String())
	}
	if err := g.logind().Reboot(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a reboot without logind: %v", err)
	}
}

func TestNoChildGetsTheLock(t *testing.T) {
	t.Parallel()
	g := newLogin(t)
	g.hold(func(context.Context) {})
	ours := false
	files, _ := filepath.Glob("/proc/self/fd/*")
	for _, file := range files {
		target, _ := os.Readlink(file)
		ours = ours || strings.Contains(target, "/inhibit/")
	}
	var out strings.Builder
	child := exec.Command("ls", "-l", "/proc/self/fd")
	child.Stdout = &out
	if err := child.Run(); err != nil || !ours {
		t.Fatalf("the lock is open here: %v; %v", ours, err)
	}
	if strings.Contains(out.String(), "/inhibit/") {
		t.Errorf("a child has inherited the lock:\n%s", out.String())
	}
}
