// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fakePrograms are programs whose results the test sets.
type fakePrograms struct {
	missing error
	last    ProgramRun
	ran     []string
}

func (p *fakePrograms) Ready() error              { return p.missing }
func (p *fakePrograms) Last() (ProgramRun, error) { return p.last, nil }

func (p *fakePrograms) Run(_ context.Context, word string) error {
	now, err := clock(unix.CLOCK_BOOTTIME)
	p.ran, p.last = append(p.ran, word), ProgramRun{Word: word, At: now, Running: true}
	return err
}

// fakeService is a simulated external service: a listener that the test opens.
type fakeService struct {
	t        *testing.T
	address  string
	listener net.Listener
	*External
	*fakePrograms
}

func newFakeService(t *testing.T, settle time.Duration) *fakeService {
	t.Helper()
	o := &fakeService{t: t, address: "127.0.0.1:0", fakePrograms: &fakePrograms{}}
	o.up()
	o.address = o.listener.Addr().String()
	e, err := NewExternal(ExternalOptions{
		Name: "etcd", Addresses: []string{o.address}, Programs: o.fakePrograms, Settle: settle,
	})
	if err != nil {
		t.Fatal(err)
	}
	o.External = e
	t.Cleanup(func() { _ = o.listener.Close() })
	return o
}

func (o *fakeService) up() {
	o.t.Helper()
	l, err := net.Listen("tcp", o.address)
	if err != nil {
		o.t.Fatal(err)
	}
	o.listener = l
}

func (o *fakeService) down() {
	o.t.Helper()
	if err := o.listener.Close(); err != nil {
		o.t.Fatal(err)
	}
}

func (o *fakeService) is(state State, job string) Status {
	o.t.Helper()
	st, err := o.Status(o.t.Context())
	if err != nil || st.State != state || st.Job != job || !st.Installed() {
		o.t.Fatalf("the service is %+v, %v; want %s, job %q", st, err, state, job)
	}
	return st
}

func TestTheStateOfAnExternalServiceComesFromItsPorts(t *testing.T) {
	t.Parallel()
	o := newFakeService(t, time.Hour)
	o.missing = errors.New("there is no start")
	if st := o.is(Active, ""); st.ByPrograms || st.Since != 0 {
		t.Errorf("at first: %+v", st)
	}
	o.down()
	if st := o.is(Inactive, ""); st.Since < 0 {
		t.Errorf("got %+v", st)
	}
	o.up()
	if st := o.is(Active, ""); st.Since <= 0 {
		t.Errorf("the time of its return is unknown: %+v", st)
	}
	for word, do := range map[string]func(context.Context) error{
		"stop": o.Stop, "start": o.Start, "restart": o.Restart,
	} {
		err := do(t.Context())
		if !errors.Is(err, ErrNotPermitted) || !strings.Contains(err.Error(), "there is no start") {
			t.Errorf("%s: %v", word, err)
		}
	}
	if len(o.ran) > 0 {
		t.Errorf("programs were run: %v", o.ran)
	}
}

func TestProgramsStopAndStartAnExternalService(t *testing.T) {
	t.Parallel()
	o := newFakeService(t, time.Hour)
	if st := o.is(Active, ""); !st.ByPrograms {
		t.Error("ByPrograms is not set")
	}
	for range 2 { // the second call finds the stop in progress
		if err := o.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	o.is(Active, "stop")
	if err := o.Start(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("started during a stop: %v", err)
	}
	o.last.Running = false
	o.is(Active, "stop") // the stop program has ended, and the service is still stopping
	o.down()
	o.is(Inactive, "")
	if err := o.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.is(Inactive, "start")
	o.last.Running = false
	o.up()
	o.is(Active, "")
	o.down()
	o.is(Inactive, "") // something else has stopped the service
	if got := strings.Join(o.ran, " "); got != "stop start" {
		t.Errorf("programs were run: %s", got)
	}
}

func TestAFailedProgramIsReportedAndRetriedLater(t *testing.T) {
	t.Parallel()
	o := newFakeService(t, time.Hour)
	now, err := clock(unix.CLOCK_BOOTTIME)
	if err != nil {
		t.Fatal(err)
	}
	o.last = ProgramRun{Word: "stop", At: now, Failed: "exit status 1"}
	o.is(Active, "")
	if err := o.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "run again in 10s: exit status 1") {
		t.Errorf("a stop that has just failed: %v", err)
	}
	o.last.At -= programRetry
	if err := o.Stop(t.Context()); err != nil || len(o.ran) != 1 {
		t.Errorf("not retried: %v", err)
	}
	o.down()
	o.last = ProgramRun{Word: "start", At: o.last.At, Failed: "exit status 2"}
	if st := o.is(Failed, ""); !strings.Contains(st.Result, "exit status 2") {
		t.Errorf("got %+v", st)
	}
}

func TestAStartWithoutAListenerHasFailed(t *testing.T) {
	t.Parallel()
	o := newFakeService(t, time.Nanosecond)
	o.down()
	if err := o.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.is(Inactive, "start")
	o.last.Running = false
	if st := o.is(Failed, ""); !strings.Contains(st.Result, "has not opened its ports") {
		t.Errorf("got %+v", st)
	}
	o.created = o.last.At + 1 // the service may have run and stopped before this agent started
	o.is(Inactive, "")
}

func TestListenersAreReadFromTheKernelsList(t *testing.T) {
	t.Parallel()
	const list = `  sl  local_address rem_address   st tx_queue
   0: 0100007F:094B 00000000:0000 0A 00000000:00000000
   1: 0200000A:094C 00000000:0000 01 00000000:00000000
   2: 00000000:094D 00000000:0000 0A 00000000:00000000
   3: 00000000000000000000000001000000:094E 00000000000000000000000000000000:0000 0A 0
   4: 0000000000000000FFFF00000100007F:094F 00000000000000000000000000000000:0000 0A 0
   5: nonsense
   6: zz:094B : 0A
`
	for address, want := range map[string]bool{
		"127.0.0.1:2379": true, "127.0.0.2:2379": false, "localhost:2379": true, "10.0.0.2:2380": false,
		"192.0.2.1:2381": true, "[::1]:2382": true, "[::2]:2382": false, "127.0.0.1:2383": true, "no address": false,
	} {
		if got := listed(strings.NewReader(list), []string{address}); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}
