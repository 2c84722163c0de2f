// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sddbus "github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// unit has the methods that Service and Process share.
type unit interface {
	Status(context.Context) (Status, error)
	Start(context.Context) error
	Stop(context.Context) error
	Restart(context.Context) error
	SetEnvironment(context.Context, map[string]string) error
	Environment(context.Context) (map[string]string, error)
	Close() error
}

var (
	_ unit = (*Service)(nil)
	_ unit = (*Process)(nil)
)

// dialTo returns a function that connects to the socket at path: with hello to a bus, otherwise to a systemd.
func dialTo(path string, hello bool) DialFunc {
	return func(ctx context.Context) (*sddbus.Conn, error) {
		return sddbus.NewConnection(func() (*godbus.Conn, error) {
			conn, err := godbus.Dial("unix:path="+path, godbus.WithContext(ctx))
			if err != nil {
				return nil, err
			}
			err = conn.Auth([]godbus.Auth{godbus.AuthExternal(fmt.Sprint(os.Getuid()))})
			if err == nil && hello {
				err = conn.Hello()
			}
			if err != nil {
				conn.Close()
				return nil, err
			}
			return conn, nil
		})
	}
}

func newService(t *testing.T, o Options) *Service {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := NewService(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestAnInvalidUnitNameIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", "etcd", "etcd.socket", "etcd@.service", ".service", "a b.service", "../etcd.service",
		"etcd.service\n", strings.Repeat("x", 250) + ".service",
	} {
		if s, err := NewService(Options{Unit: name}); err == nil {
			t.Errorf("%q was accepted: %v", name, s)
		}
	}
	for _, name := range []string{"etcd.service", "etcd@n1.service", `a\x2db.service`, "a-b_c:d.1.service"} {
		if _, err := NewService(Options{Unit: name}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, file := range []string{"etcd.env", "/etc/*.env", "/etc/a\nb"} {
		if s, err := NewService(Options{Unit: "etcd.service", EnvironmentFile: file}); err == nil {
			t.Errorf("%q was accepted: %v", file, s)
		}
	}
}

func TestAMissingBusIsUnavailable(t *testing.T) {
	t.Parallel()
	s := newService(t, Options{
		Unit: "etcd.service", Dial: dialTo("/no/such/bus", true),
		EnvironmentFile: filepath.Join(t.TempDir(), "env"),
	})
	st, err := s.Status(t.Context())
	if !errors.Is(err, ErrUnavailable) || st.State != Unknown || st.ExitCode != -1 {
		t.Errorf("%+v, %v", st, err)
	}
	for _, verb := range []func(context.Context) error{s.Start, s.Stop, s.Restart} {
		if err := verb(t.Context()); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
	}
	if err := s.SetEnvironment(t.Context(), map[string]string{"A": "b"}); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	s.Close()
	if err := s.Start(t.Context()); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// muteBus accepts connections and never answers.
func muteBus(t *testing.T) string {
	t.Helper()
	path := filepath.Join(tempdir.New(t), "bus")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, conn) // until the client disconnects
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return path
}

func TestEveryCallIsBoundedWithASilentBus(t *testing.T) {
	t.Parallel()
	s := newService(t, Options{Unit: "etcd.service", Dial: dialTo(muteBus(t), true)})
	began := time.Now()
	if _, err := s.Status(t.Context()); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if took := time.Since(began); took < busTimeout || took > busTimeout+slack {
		t.Errorf("without a deadline it took %v", took)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began = time.Now()
	if err := s.Start(ctx); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if took := time.Since(began); took > busTimeout {
		t.Errorf("with a deadline of 50 ms it took %v", took)
	}

	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if err := s.Start(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
		t.Errorf("canceled: %v", err)
	}
}

func TestACallWaitsForAnotherUntilItsDeadline(t *testing.T) {
	t.Parallel()
	s := newService(t, Options{Unit: "etcd.service", Dial: dialTo(muteBus(t), true)})
	slow, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Start(slow) }()
	eventually(t, "the first call has the bus", func() bool { return len(s.bus.turn) == 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := s.Status(ctx); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	if took := time.Since(began); took > busTimeout {
		t.Errorf("it took %v", took)
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAJobIsPendingUntilItsResultIsKnown(t *testing.T) {
	t.Parallel()
	s := newService(t, Options{Unit: "etcd.service"})
	at := time.Unix(0, 0)
	queue := func() chan string {
		result := make(chan string, 1)
		s.job, s.lastJob = &queuedJob{verb: "start", result: result, dialed: 1}, ""
		return result
	}
	expect := func(what, pending string, dialed int, now time.Time, wantJob, wantLast string) {
		t.Helper()
		if job, last := s.settleJob(pending, dialed, now); job != wantJob || last != wantLast {
			t.Errorf("%s: job %q, last %q; not %q, %q", what, job, last, wantJob, wantLast)
		}
	}
	expect("another's job", "reload", 1, at, "reload", "")
	result := queue()
	expect("in systemd's job queue", "start", 1, at, "start", "")
	expect("no longer in the queue, result not received yet", "", 1, at, "start", "")
	result <- "failed"
	expect("the result is received", "", 1, at, "", "failed")
	expect("and stays", "", 1, at.Add(time.Hour), "", "failed")

	queue()
	expect("gone without a result", "", 1, at, "start", "")
	expect("still within the grace", "", 1, at.Add(resultGrace), "start", "")
	expect("past it", "", 1, at.Add(resultGrace+1), "", "unknown")

	queue()
	expect("gone for a moment", "", 1, at, "start", "")
	expect("back again", "start", 1, at.Add(resultGrace), "start", "")
	expect("gone again", "", 1, at.Add(2*resultGrace), "start", "")

	queue()
	expect("pending on a new connection", "start", 2, at, "start", "")
	expect("the result does not come over it", "", 2, at, "", "unknown")
	queue()
	expect("a status query that began before the job was queued", "", 0, at, "start", "")
}

func TestPropertiesAreConvertedToAStatus(t *testing.T) {
	t.Parallel()
	stamps := properties{
		"StateChangeTimestampMonotonic": uint64(9e6), "ActiveEnterTimestampMonotonic": uint64(4e6),
		"InactiveEnterTimestampMonotonic": uint64(2e6), "LoadState": "loaded", "Result": "success",
	}
	for _, c := range []struct {
		active string
		state  State
		since  time.Duration
	}{
		{"active", Active, 6 * time.Second},
		{"reloading", Active, 6 * time.Second},
		{"refreshing", Active, 6 * time.Second},
		{"inactive", Inactive, 8 * time.Second},
		{"maintenance", Inactive, 8 * time.Second},
		{"failed", Failed, 8 * time.Second},
		{"activating", Activating, time.Second},
		{"deactivating", Deactivating, time.Second},
		{"something new", Unknown, time.Second},
		{"", Unknown, time.Second},
	} {
		stamps["ActiveState"] = c.active
		if st := stamps.status(10 * time.Second); st.State != c.state || st.Since != c.since || !st.Installed() ||
			st.ExitCode != -1 {
			t.Errorf("%q: %+v", c.active, st)
		}
	}
	for _, c := range []struct {
		code, status int32
		exitCode     int
		signal       string
	}{
		{0, 0, -1, ""},
		{1, 0, 0, ""},
		{1, 203, 203, ""},
		{2, 9, -1, "SIGKILL"},
		{3, 6, -1, "SIGABRT"},
		{2, 40, -1, "signal 40"},
	} {
		st := properties{"ExecMainCode": c.code, "ExecMainStatus": c.status, "MainPID": uint32(7)}.status(0)
		if st.ExitCode != c.exitCode || st.Signal != c.signal || st.PID != 7 {
			t.Errorf("code %d, status %d: %+v", c.code, c.status, st)
		}
	}
	if id := (properties{"Job": []any{uint32(5), godbus.ObjectPath("/x")}}).jobID(); id != 5 {
		t.Errorf("job %d", id)
	}
	// A missing property, or one of an unexpected type, must not cause a failure.
	if st := (properties{"MainPID": "x", "Job": "x", "ActiveState": 3}).status(0); st.State != Unknown || st.PID != 0 {
		t.Errorf("%+v", st)
	}
}

func TestAUnitStartsIfItRunsOrIsEnabledAcrossBoots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, active string
		want         bool
	}{
		{"enabled", "inactive", true},
		{"enabled-runtime", "inactive", false},
		{"enabled-runtime", "active", true},
		{"disabled", "activating", true},
		{"disabled", "failed", false},
		{"static", "inactive", false},
		{"", "", false},
	} {
		p := properties{"UnitFileState": c.file, "ActiveState": c.active}
		if got := p.starts(); got != c.want {
			t.Errorf("%s and %s: %t", c.file, c.active, got)
		}
	}
}

func TestTheEnvironmentFileIsFoundAmongTheUnitsFiles(t *testing.T) {
	t.Parallel()
	p := properties{"EnvironmentFiles": [][]any{
		{"/etc/default/etcd", true},
		{"/etc/quorumd/*.env", true},
		{},
		{"[", true},
	}}
	for path, want := range map[string]bool{
		"/etc/default/etcd": true, "/etc/default//etcd": true, "/etc/quorumd/etcd.env": true,
		"/etc/default/etcd2": false, "/etc/quorumd/sub/etcd.env": false,
	} {
		if got := p.readsEnvironment(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if (properties{}).readsEnvironment("/etc/default/etcd") {
		t.Error("read by a unit that reads none")
	}
}
