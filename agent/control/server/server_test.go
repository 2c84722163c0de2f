// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/recovery"

	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv("CONTROL_TEST_STRANGER"); socket != "" {
		os.Exit(stranger(socket, os.Getenv("CONTROL_TEST_GROUPS")))
	}
	flag.Bool("update", false, "rewrite the golden files")
	goleak.VerifyTestMain(m)
}

// desk is a Backend that records the requests.
type desk struct {
	status  func() control.Status       // empty status if nil
	history func(context.Context) error // succeeds when nil
	change  func(context.Context) error // succeeds when nil
	look    func(context.Context) error // succeeds when nil
	// a new number at each call if nil
	revision func() uint64
	mu       sync.Mutex
	asked    []string
	looks    uint64
}

func (d *desk) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, fmt.Sprintf(format, args...))
}

func (d *desk) notes() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.asked, "\n")
}

func (d *desk) answer(ctx context.Context) error {
	if d.change == nil {
		return nil
	}
	return d.change(ctx)
}

func (d *desk) Status() control.Status {
	if d.status == nil {
		return control.Status{Cluster: control.Cluster{Name: "prod"}}
	}
	return d.status()
}

// Revision returns a new number at each call, so that Status is called each time, unless a test sets it.
func (d *desk) Revision() uint64 {
	if d.revision != nil {
		return d.revision()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	return d.looks
}

func (d *desk) Checks() control.Checks {
	return control.Checks{Checks: []control.Check{{Name: "fsync"}}}
}

func (d *desk) Mute(ctx context.Context, req control.MuteRequest, by string) (control.Mute, error) {
	d.note("mute %s %q for %s by %s", req.Code, req.Reason, req.For, by)
	since := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	until := since.Add(time.Duration(req.For))
	return control.Mute{Code: req.Code, By: by, Reason: req.Reason, Since: since, Until: until}, d.answer(ctx)
}

func (d *desk) Unmute(ctx context.Context, code, by string) error {
	d.note("unmute %s by %s", code, by)
	return d.answer(ctx)
}

func (d *desk) StartSnapshot(ctx context.Context, req control.SnapshotRequest, by string) (control.SnapshotJob, error) {
	d.note("snapshot %s %q %t by %s", req.Do, req.Name, req.DryRun, by)
	return control.SnapshotJob{Number: 3, Do: req.Do, By: by}, d.answer(ctx)
}

func (d *desk) SnapshotJob() control.SnapshotJob {
	return control.SnapshotJob{Number: 3, Do: control.SnapshotSave, Bytes: 7}
}

func (d *desk) ProbeNow(ctx context.Context) error {
	if d.look == nil {
		return nil
	}
	return d.look(ctx)
}

func (d *desk) History(ctx context.Context, limit int) ([]control.HistoryLine, error) {
	d.note("history %d", limit)
	if d.history != nil {
		return nil, d.history(ctx)
	}
	return []control.HistoryLine{{Revision: 7, Kind: "step", Code: "LEARNER_ADD"}}, nil
}

func (d *desk) MayBootstrap(ctx context.Context) error {
	d.note("may it bootstrap")
	return d.answer(ctx)
}

func (d *desk) Bootstrap(ctx context.Context, by string) error {
	d.note("bootstrap by %s", by)
	return d.answer(ctx)
}

func (d *desk) Pause(ctx context.Context, req control.PauseRequest, by string) (control.Pause, error) {
	d.note("pause %q for %s by %s", req.Reason, req.For, by)
	since := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	until := since.Add(time.Duration(req.For))
	return control.Pause{By: by, Reason: req.Reason, Since: since, Until: until}, d.answer(ctx)
}

func (d *desk) Resume(ctx context.Context, by string) error {
	d.note("resume by %s", by)
	return d.answer(ctx)
}

func (d *desk) ReleaseOp(ctx context.Context, req control.ReleaseRequest, by string) error {
	d.note("release %q by %s", req.Reason, by)
	return d.answer(ctx)
}

func (d *desk) RemoveMember(ctx context.Context, req control.RemovalRequest, by string) (control.Removal, error) {
	d.note("remove %q within %s, live %t: %q by %s", req.Member, req.For, req.Live, req.Reason, by)
	return control.Removal{MemberID: "3", Name: req.Member, By: by, State: control.RemovalWaiting}, d.answer(ctx)
}

func (d *desk) RecoveryFacts(ctx context.Context) (recovery.Facts, error) {
	d.note("facts")
	return recovery.Facts{Host: "n1"}, d.answer(ctx)
}

func (d *desk) ApplyRecovery(ctx context.Context, plan recovery.Plan, by string) (control.Recovery, error) {
	d.note("apply %s by %s", plan.ID, by)
	return control.Recovery{Plan: plan.ID}, d.answer(ctx)
}

func (d *desk) AbandonRecovery(ctx context.Context, by string) (control.Recovery, error) {
	d.note("give up by %s", by)
	return control.Recovery{Plan: "abcdefghijkl", GivenUp: by}, d.answer(ctx)
}

func (d *desk) AskMaintenance(ctx context.Context, req control.MaintenanceRequest, by string) (control.Maintenance,
	error,
) {
	d.note("%s %q for %s by %s, keep running %t, external %t", strings.TrimSpace(req.Work+" "+req.Command), req.Reason,
		req.For, by, req.KeepRunning, req.External)
	since := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	return control.Maintenance{
		Work: req.Work, Command: req.Command, Reason: req.Reason, By: by, Since: since,
		Until: since.Add(time.Duration(req.For)), State: control.MaintenanceWaiting,
	}, d.answer(ctx)
}

func (d *desk) EndMaintenance(ctx context.Context, by string) error {
	d.note("end of maintenance by %s", by)
	return d.answer(ctx)
}

func (d *desk) StartRollout(ctx context.Context, req control.RolloutRequest, by string) (control.Rollout, error) {
	d.note("rollout %s of %v until %q: %q by %s", strings.TrimSpace(req.Work+" "+req.Command), req.Hosts, req.Version,
		req.Reason, by)
	return control.Rollout{
		ID: "r1", Work: req.Work, Reason: req.Reason, By: by, State: control.RolloutRunning,
	}, d.answer(ctx)
}

func (d *desk) SetRollout(ctx context.Context, state, by string) (control.Rollout, error) {
	d.note("rollout %s by %s", state, by)
	return control.Rollout{ID: "r1", State: state}, d.answer(ctx)
}

// serving runs a server until the test ends and returns its socket.
func serving(t testing.TB, s *Server) string {
	t.Helper()
	if s.listener == nil {
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve ended with %v", err)
		}
	})
	return s.opt.Socket
}

// open serves a backend with the default limits.
func open(t *testing.T, b Backend) string {
	t.Helper()
	return serving(t, New(Options{Socket: filepath.Join(tempdir.New(t), "s"), Backend: b, Logger: testLog(t)}))
}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// ask sends one request as curl would and returns the status and the body.
func ask(t *testing.T, socket, method, path, body string) (int, string) {
	t.Helper()
	return send(t, socket,
		fmt.Sprintf("%s %s HTTP/1.1\r\nHost: quorumd\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
			method, path, len(body), body))
}

// send writes raw bytes and reads one HTTP answer.
func send(t *testing.T, socket, raw string) (int, string) {
	t.Helper()
	c := dial(t, socket)
	if _, err := io.WriteString(c, raw); err != nil {
		t.Logf("the server closed early: %v", err) // it may still have answered
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("no whole answer: %v", err)
	}
	return resp.StatusCode, string(b)
}

func dial(t *testing.T, socket string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// errorIn returns the error of an error document, strictly decoded.
func errorIn(t *testing.T, body string) control.Error {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(body))
	dec.DisallowUnknownFields()
	var doc control.ErrorDocument
	if err := dec.Decode(&doc); err != nil || doc.Error == nil || doc.Error.Code == "" || doc.Error.Message == "" {
		t.Fatalf("not an error document (%v): %q", err, body)
	}
	return *doc.Error
}
