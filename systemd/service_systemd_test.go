// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemdtest

package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sddbus "github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sys/unix"
)

// look returns the status, or fails the test.
func look(t *testing.T, s *Service) Status {
	t.Helper()
	st, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// settles waits until the unit is in that state, its last job has that result, and no job is pending. If lastJob is
// empty, a job may be pending.
func settles(t *testing.T, s *Service, want State, lastJob string) Status {
	t.Helper()
	var st Status
	eventually(t, "the unit is "+want.String()+", its job "+lastJob, func() bool {
		st = look(t, s)
		return st.State == want && st.LastJob == lastJob && (st.Job == "" || lastJob == "")
	})
	return st
}

func TestAUnitIsStartedRestartedAndStopped(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	for name, dial := range map[string]DialFunc{"bus": dialTo(i.bus(), true), "private": dialTo(i.private(), false)} {
		t.Run(name, func(t *testing.T) {
			i.service(name+".service", "sleeper", "")
			s := newService(t, Options{Unit: name + ".service", Dial: dial})
			if st := look(t, s); st.State != Inactive || st.PID != 0 || !st.Installed() || st.LastJob != "" ||
				st.Since != 0 {
				t.Errorf("before the start: %+v", st)
			}
			do(t, s.Start)
			first := settles(t, s, Active, "done")
			if first.PID == 0 || first.Result != "success" || first.ExitCode != -1 || first.Since <= 0 ||
				first.Since > time.Minute {
				t.Errorf("started: %+v", first)
			}
			do(t, s.Start)
			if again := settles(t, s, Active, "done"); again.PID != first.PID {
				t.Errorf("started twice: %+v, then %+v", first, again)
			}
			do(t, s.Restart)
			second := settles(t, s, Active, "done")
			if second.PID == first.PID || alive(t, first.PID) {
				t.Errorf("restarted: %+v, then %+v", first, second)
			}
			do(t, s.Stop)
			if st := settles(t, s, Inactive, "done"); st.PID != 0 || st.Signal != "SIGTERM" || st.Result != "success" ||
				st.ExitCode != -1 || st.Since <= 0 || st.Since > time.Minute {
				t.Errorf("stopped: %+v", st)
			}
			do(t, s.Stop)
			settles(t, s, Inactive, "done")
		})
	}
}

func TestAForgottenUnitIsInactiveForAnUnknownTime(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.service("a.service", "exit", "Type=simple", "0")
	if err := os.RemoveAll(filepath.Join(i.units, "basic.target.wants")); err != nil {
		t.Fatal(err)
	}
	i.reload()
	s := i.drive("a.service")
	do(t, s.Start)
	var st Status
	eventually(t, "the unit is forgotten", func() bool {
		st = look(t, s)
		return st.Since == 0 && st.LastJob == "done"
	})
	if st.State != Inactive || st.ExitCode != -1 || st.Result != "success" || !st.Installed() {
		t.Errorf("%+v", st)
	}
}

func TestAUnitThatEndsBadlyIsFailed(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	for _, c := range []struct {
		name, role, arg, settings string
		state                     State
		lastJob, result           string
		exitCode                  int
	}{
		{"late", "exit", "3", "Type=simple", Failed, "done", "exit-code", 3},
		{"start", "exit", "3", "Type=oneshot", Failed, "failed", "exit-code", 3},
		{"clean", "exit", "0", "Type=simple", Inactive, "done", "success", 0},
		{"slow", "sleeper", "", "Type=notify\nTimeoutStartSec=1", Failed, "failed", "timeout", -1},
		{"job", "sleeper", "", "Type=notify\n[Unit]\nJobTimeoutSec=1", Activating, "timeout", "success", -1},
		{
			"needs", "sleeper", "", "[Unit]\nRequires=start.service\nAfter=start.service", Inactive, "dependency",
			"success", -1,
		},
		{"again", "exit", "3", "Type=simple\nRestart=on-failure\nRestartSec=60", Activating, "done", "exit-code", 3},
	} {
		i.service(c.name+".service", c.role, c.settings, c.arg)
		s := i.drive(c.name + ".service")
		do(t, s.Start)
		st := settles(t, s, c.state, c.lastJob)
		eventually(t, c.name+" has ended", func() bool {
			st = look(t, s)
			return st.Result == c.result && st.ExitCode == c.exitCode
		})
		if st.State != c.state || st.Job != "" {
			t.Errorf("%s: %+v", c.name, st)
		}
	}
}

func TestASlowStartIsPendingAndAStopCancelsIt(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.service("a.service", "sleeper", "Type=notify")
	s := i.drive("a.service")
	do(t, s.Start)
	eventually(t, "the unit is activating", func() bool { return look(t, s).State == Activating })
	if st := look(t, s); st.Job != "start" || st.LastJob != "" || st.PID == 0 {
		t.Errorf("%+v", st)
	}
	other := i.drive("a.service")
	do(t, other.Stop)
	settles(t, s, Inactive, "canceled")
	settles(t, other, Inactive, "done")
}

func TestAUnitThatIgnoresSIGTERMIsKilledBySystemd(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.service("a.service", "stubborn", "TimeoutStopSec=1")
	s := i.drive("a.service")
	do(t, s.Start)
	settles(t, s, Active, "done")
	eventually(t, "the child ignores SIGTERM", func() bool { return strings.Contains(i.output("a.service"), "ready") })
	do(t, s.Stop)
	if st := look(t, s); st.State == Deactivating && (st.Job != "stop" || st.LastJob != "") {
		t.Errorf("%+v", st)
	}
	if st := settles(t, s, Failed, "done"); st.Result != "timeout" || st.Signal != "SIGKILL" {
		t.Errorf("%+v", st)
	}
}

func TestAUnitThatCannotBeStartedHasAReason(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.writeUnit("bad.service", "[Unit]\nDefaultDependencies=no\n[Service]\nType=simple\n")
	if err := os.Symlink("/dev/null", filepath.Join(i.units, "masked.service")); err != nil {
		t.Fatal(err)
	}
	i.service("refuses.service", "sleeper", "[Unit]\nRefuseManualStart=yes")
	for _, c := range []struct {
		unit, loadState, says string
		is                    error
	}{
		{"none.service", "not-found", "install it", ErrNotInstalled},
		{"masked.service", "masked", "systemctl unmask masked.service", ErrNotInstalled},
		{"bad.service", "bad-setting", "systemd-analyze verify bad.service", ErrNotInstalled},
		{"refuses.service", "loaded", "RefuseManualStart=", nil},
	} {
		s := i.drive(c.unit)
		if st := look(t, s); st.State != Inactive || st.LoadState != c.loadState ||
			st.Installed() != (c.loadState == "loaded") {
			t.Errorf("%s: %+v", c.unit, st)
		}
		err := s.Start(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "cannot start "+c.unit) ||
			!strings.Contains(err.Error(), c.says) ||
			c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: the error is %v", c.unit, err)
		}
		if c.is != nil {
			if err := s.SetEnvironment(t.Context(), nil); !errors.Is(err, c.is) {
				t.Errorf("%s: the environment was set: %v", c.unit, err)
			}
		}
	}
}

func TestARefusalOfTheBusIsNotPermitted(t *testing.T) {
	t.Parallel()
	i := newInstance(t, `<deny send_destination="org.freedesktop.systemd1"
 send_interface="org.freedesktop.systemd1.Manager" send_member="StartUnit"/>`)
	i.service("a.service", "sleeper", "")
	s := i.drive("a.service")
	err := s.Start(t.Context())
	if !errors.Is(err, ErrNotPermitted) || errors.Is(err, ErrUnavailable) ||
		!strings.Contains(err.Error(), "root's helper") {
		t.Error(err)
	}
	if st := look(t, s); st.State != Inactive || st.LastJob != "" || st.Job != "" {
		t.Errorf("%+v", st)
	}
	do(t, s.Restart) // the policy of the bus denies only StartUnit
	settles(t, s, Active, "done")
}

func TestTheUnitSeesTheEnvironmentThatWasSet(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.service("a.service", "environment", "EnvironmentFile=-"+i.environmentFile())
	s := i.drive("a.service")
	if got, err := s.Environment(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("before it was set: %v, %v", got, err)
	}
	if err := s.SetEnvironment(t.Context(), oddValues()); err != nil {
		t.Fatal(err)
	}
	seesAll(t, i, s, oddValues())
	if got, err := s.Environment(t.Context()); err != nil || got["QUOTES"] != oddValues()["QUOTES"] {
		t.Errorf("read back: %q, %v", got, err)
	}
	if err := s.SetEnvironment(t.Context(), map[string]string{"A": "two\nlines"}); err == nil {
		t.Error("a line break was accepted")
	}
}

func TestTheEnvironmentThatOnlyTheUnitSetsIsRead(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.service("a.service", "environment", "Environment=ETCD_PROXY=off \"ETCD_NAME=n 1\"")
	u := Units{Dial: dialTo(i.bus(), true)}
	got, err := u.Environment(t.Context(), "a.service")
	want := []string{"ETCD_PROXY=off", "ETCD_NAME=n 1"}
	// The variables that instance.service sets come first.
	if err != nil || len(got) < len(want) || !slices.Equal(got[len(got)-len(want):], want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestTheUnitSeesAHandWrittenFileAsWeReadIt(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.service("a.service", "environment", "EnvironmentFile=-"+i.environmentFile())
	i.write("unit.env", handWritten)
	seesAll(t, i, i.drive("a.service"), handWrittenValues())
}

func TestTheErrorHasTheDropInForAUnitThatDoesNotReadTheFile(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.service("a.service", "environment", "EnvironmentFile=-/etc/default/none")
	s := i.drive("a.service")
	vars := map[string]string{"A": "seen"}
	err := s.SetEnvironment(t.Context(), vars)
	if !errors.Is(err, ErrEnvironmentUnused) {
		t.Fatal(err)
	}
	if _, err := os.Stat(i.environmentFile()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was written nevertheless: %v", err)
	}
	// The unit must work with the drop-in from the error.
	_, dropIn, found := strings.Cut(err.Error(), "a.service.d/quorumd.conf\n")
	if !found {
		t.Fatalf("no drop-in in %v", err)
	}
	if err := os.Mkdir(filepath.Join(i.units, "a.service.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	i.writeUnit("a.service.d/quorumd.conf", dropIn)
	i.reload()
	if err := s.SetEnvironment(t.Context(), vars); err != nil {
		t.Fatal(err)
	}
	seesAll(t, i, s, vars)
}

// seesAll starts the unit and fails the test unless it has these variables.
func seesAll(t *testing.T, i *instance, s *Service, vars map[string]string) {
	t.Helper()
	do(t, s.Start)
	eventually(t, "the unit is ready", func() bool { return strings.Contains(i.output(s.unit), "ready\n") })
	got, err := parseOutput(i.output(s.unit))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range vars {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %q, %v, not %q", name, value, ok, want)
		}
	}
}

func TestAStoppedBusIsUnavailableUntilItIsBack(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.service("a.service", "sleeper", "")
	s := i.drive("a.service")
	do(t, s.Start)
	before := settles(t, s, Active, "done")

	i.halt("dbus.socket")
	i.halt("dbus.service")
	began := time.Now()
	if st, err := s.Status(t.Context()); !errors.Is(err, ErrUnavailable) || st.State != Unknown {
		t.Errorf("without a bus: %+v, %v", st, err)
	}
	if err := s.Restart(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without a bus: %v", err)
	}
	if took := time.Since(began); took > busTimeout {
		t.Errorf("it took %v to notice", took)
	}
	if !alive(t, before.PID) {
		t.Error("the unit ended with the bus")
	}

	i.run("dbus.socket")
	var st Status
	var err error
	eventually(t, "the bus is back", func() bool { st, err = s.Status(t.Context()); return err == nil })
	if st.State != Active || st.PID != before.PID || st.LastJob != "done" {
		t.Errorf("with the bus again: %+v", st)
	}
	do(t, s.Stop)
	settles(t, s, Inactive, "done")
}

func TestAJobThatEndsWithoutTheBusHasAnUnknownResult(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.service("a.service", "sleeper", "Type=notify\nNotifyAccess=all")
	s := i.drive("a.service")
	do(t, s.Start)
	eventually(t, "the unit is activating", func() bool { return look(t, s).State == Activating })
	i.halt("dbus.socket")
	i.halt("dbus.service")
	i.halt("a.service")
	i.run("dbus.socket")
	eventually(t, "the bus is back", func() bool { _, err := s.Status(t.Context()); return err == nil })
	if st := settles(t, s, Inactive, "unknown"); st.Job != "" {
		t.Errorf("%+v", st)
	}
}

func TestEveryCallIsBoundedWithAHangingBus(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.service("a.service", "sleeper", "")
	s := i.drive("a.service")
	do(t, s.Start)
	settles(t, s, Active, "done")
	bus := newService(t, Options{Unit: "dbus.service", Dial: dialTo(i.private(), false)})
	pid := look(t, bus).PID
	send(t, pid, unix.SIGSTOP)
	for range 2 { // on the old connection, then on a new one
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		began := time.Now()
		st, err := s.Status(ctx)
		cancel()
		if !errors.Is(err, ErrUnavailable) || st.State != Unknown || time.Since(began) > busTimeout {
			t.Errorf("%+v, %v after %v", st, err, time.Since(began))
		}
	}
	// Far more than the sockets can hold: a blocking write would never return.
	for range 600 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := s.Start(ctx); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		cancel()
	}
	send(t, pid, unix.SIGCONT)
	eventually(t, "the bus answers again", func() bool {
		st, err := s.Status(t.Context())
		return err == nil && st.State == Active
	})
}

func TestACallThatLosesItsConnectionIsRepeatedIfAllowed(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	s := i.drive("a.service")
	for again, want := range map[bool]int{true: 2, false: 1} {
		calls := 0
		err := s.bus.call(t.Context(), again, func(_ context.Context, conn *sddbus.Conn) error {
			if calls++; calls == 1 {
				conn.Close()
				return io.EOF
			}
			return nil
		})
		if calls != want || (err == nil) != again {
			t.Errorf("again %v: %d calls, %v", again, calls, err)
		}
	}
}

func TestAClosedServiceLeavesItsJobToSystemd(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.service("a.service", "sleeper", "ExecStartPre=/bin/sleep 0.3")
	s := i.drive("a.service")
	do(t, s.Start)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Status(t.Context()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	settles(t, i.drive("a.service"), Active, "")
}

func TestSystemdReceivesTheNotifiersMessages(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	i.service("a.service", "notifier", "Type=notify\nWatchdogSec=1")
	s := i.drive("a.service")
	do(t, s.Start)
	st := settles(t, s, Active, "done")
	text, err := i.root.GetServicePropertyContext(t.Context(), "a.service", "StatusText")
	if err != nil || text.Value.Value() != "all is well" {
		t.Errorf("the status text is %v, %v", text, err)
	}
	eventually(t, "it outlived two watchdog intervals", func() bool {
		st = look(t, s)
		return st.Since > 2*time.Second
	})
	if st.State != Active {
		t.Errorf("while fed: %+v", st)
	}
	send(t, st.PID, unix.SIGHUP)
	if st := settles(t, s, Failed, "done"); st.Result != "watchdog" {
		t.Errorf("not fed any more: %+v", st)
	}
}

// parseOutput parses what the role "environment" printed.
func parseOutput(text string) (map[string]string, error) {
	vars := map[string]string{}
	for line := range strings.Lines(text) {
		if line == "ready\n" {
			return vars, nil
		}
		assignment, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		name, value, _ := strings.Cut(assignment, "=")
		vars[name] = value
	}
	return nil, fmt.Errorf("not ready: %q", text)
}
