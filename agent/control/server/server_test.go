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
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
	"github.com/quorumd/quorumd/health"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv("CONTROL_TEST_UNPRIVILEGED"); socket != "" {
		os.Exit(unprivileged(socket, os.Getenv("CONTROL_TEST_GROUPS")))
	}
	flag.Bool("update", false, "rewrite the golden files")
	goleak.VerifyTestMain(m)
}

// fake is a Backend that records the requests. Functions that are nil succeed.
type fake struct {
	status   func() control.Status
	revision func() uint64 // a new number at each call if nil, so that the server does not cache the status
	history  func(context.Context) error
	change   func(context.Context) error
	probe    func(context.Context) error
	await    func(context.Context)

	mu        sync.Mutex
	recorded  []string
	revisions uint64
}

func (d *fake) record(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recorded = append(d.recorded, fmt.Sprintf(format, args...))
}

func (d *fake) calls() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.recorded, "\n")
}

func (d *fake) answer(ctx context.Context) error {
	if d.change == nil {
		return nil
	}
	return d.change(ctx)
}

func (d *fake) Status() control.Status {
	if d.status == nil {
		return control.Status{Cluster: control.Cluster{Name: "prod"}}
	}
	return d.status()
}

func (d *fake) Revision() uint64 {
	if d.revision != nil {
		return d.revision()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revisions++
	return d.revisions
}

func (d *fake) Checks() control.Checks {
	return control.Checks{Checks: []control.Check{{Name: "fsync"}}}
}

func (d *fake) Mute(ctx context.Context, req control.MuteRequest, by string) (health.Mute, error) {
	d.record("mute %s %q for %s by %s", req.Code, req.Reason, req.For, by)
	since := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	until := since.Add(time.Duration(req.For))
	return health.Mute{
		Code: health.Code(req.Code), By: by, Reason: req.Reason, Since: since, Until: until,
	}, d.answer(ctx)
}

func (d *fake) Unmute(ctx context.Context, code, by string) error {
	d.record("unmute %s by %s", code, by)
	return d.answer(ctx)
}

func (d *fake) StartSnapshot(ctx context.Context, req control.SnapshotRequest, by string) (control.SnapshotJob, error) {
	d.record("snapshot %s %q %t by %s", req.Do, req.Name, req.DryRun, by)
	return control.SnapshotJob{Number: 3, Do: req.Do, By: by}, d.answer(ctx)
}

func (d *fake) SnapshotJob() control.SnapshotJob {
	return control.SnapshotJob{Number: 3, Do: control.SnapshotSave, Bytes: 7}
}

func (d *fake) ProbeNow(ctx context.Context) error {
	if d.probe == nil {
		return nil
	}
	return d.probe(ctx)
}

func (d *fake) History(ctx context.Context, limit int) ([]control.HistoryLine, error) {
	d.record("history %d", limit)
	if d.history != nil {
		return nil, d.history(ctx)
	}
	return []control.HistoryLine{{Revision: 7, Kind: "step", Code: "LEARNER_ADD"}}, nil
}

func (d *fake) AwaitData(ctx context.Context) {
	if d.await != nil {
		d.await(ctx)
	}
}

func (d *fake) MayBootstrap(ctx context.Context) error {
	d.record("may bootstrap")
	return d.answer(ctx)
}

func (d *fake) Bootstrap(ctx context.Context, by string) error {
	d.record("bootstrap by %s", by)
	return d.answer(ctx)
}

func (d *fake) Pause(ctx context.Context, req control.PauseRequest, by string) (control.Pause, error) {
	d.record("pause %q for %s by %s", req.Reason, req.For, by)
	since := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	until := since.Add(time.Duration(req.For))
	return control.Pause{By: by, Reason: req.Reason, Since: since, Until: until}, d.answer(ctx)
}

func (d *fake) Resume(ctx context.Context, by string) error {
	d.record("resume by %s", by)
	return d.answer(ctx)
}

func (d *fake) ReleaseOp(ctx context.Context, req control.ReleaseRequest, by string) error {
	d.record("release %q by %s", req.Reason, by)
	return d.answer(ctx)
}

func (d *fake) RemoveMember(ctx context.Context, req control.RemovalRequest, by string) (control.Removal, error) {
	d.record("remove %q within %s, live %t: %q by %s", req.Member, req.For, req.Live, req.Reason, by)
	return control.Removal{
		RequestedRemoval: control.RequestedRemoval{MemberID: 3, Name: req.Member, By: by},
		State:            control.RemovalWaiting,
	}, d.answer(ctx)
}

func (d *fake) RecoveryFacts(ctx context.Context) (recovery.Facts, error) {
	d.record("facts")
	return recovery.Facts{Host: "n1"}, d.answer(ctx)
}

func (d *fake) ApplyRecovery(ctx context.Context, plan recovery.Plan, by string) (control.Recovery, error) {
	d.record("apply %s by %s", plan.ID, by)
	return control.Recovery{Plan: plan.ID}, d.answer(ctx)
}

func (d *fake) AbandonRecovery(ctx context.Context, by string) (control.Recovery, error) {
	d.record("abandon by %s", by)
	return control.Recovery{Plan: "abcdefghijkl", GivenUp: by}, d.answer(ctx)
}

func (d *fake) RequestMaintenance(ctx context.Context, req control.MaintenanceRequest, by string) (control.Maintenance,
	error,
) {
	d.record("%s %q for %s by %s, keep running %t, external %t", strings.TrimSpace(string(req.Work)+" "+req.Command),
		req.Reason, req.For, by, req.KeepRunning, req.External)
	since := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	return control.Maintenance{
		Work: req.Work, Command: req.Command, Reason: req.Reason, By: by, Since: since,
		Until: since.Add(time.Duration(req.For)), State: policy.RequestWaiting,
	}, d.answer(ctx)
}

func (d *fake) EndMaintenance(ctx context.Context, by string) error {
	d.record("end of maintenance by %s", by)
	return d.answer(ctx)
}

func (d *fake) StartRollout(ctx context.Context, req control.RolloutRequest, by string) (control.Rollout, error) {
	d.record("rollout %s of %v until %q: %q by %s",
		strings.TrimSpace(string(req.Work)+" "+req.Command), req.Hosts, req.Version,
		req.Reason, by)
	return control.Rollout{
		ID: "r1", Work: req.Work, Reason: req.Reason, By: by, State: record.RolloutRunning,
	}, d.answer(ctx)
}

func (d *fake) SetRollout(ctx context.Context, state, by string) (control.Rollout, error) {
	d.record("rollout %s by %s", state, by)
	return control.Rollout{ID: "r1", State: state}, d.answer(ctx)
}

func (d *fake) Resize(ctx context.Context, req control.ResizeRequest, by string) (control.Resize, error) {
	seen := "any"
	if req.IfRevision != nil {
		seen = fmt.Sprint(*req.IfRevision)
	}
	d.record("resize to %d if revision %s, without snapshot %t: %q by %s", req.Voters, seen, req.WithoutSnapshot,
		req.Reason, by)
	return control.Resize{Voters: 3, Target: req.Voters, DryRun: req.DryRun}, d.answer(ctx)
}

func (d *fake) TransferLeadership(ctx context.Context, req control.TransferRequest, by string) (control.Transfer,
	error,
) {
	d.record("transfer leadership to %q: %q by %s", req.Host, req.Reason, by)
	return control.Transfer{DryRun: req.DryRun}, d.answer(ctx)
}

func (d *fake) Size(ctx context.Context) (control.Resize, error) {
	return control.Resize{Voters: 3, Target: 3}, d.answer(ctx)
}

func (d *fake) Retire(ctx context.Context, req control.RetireRequest, by string) (control.Retirement, error) {
	d.record("retire %s, undo %t: %q by %s", req.Host, req.Undo, req.Reason, by)
	return control.Retirement{Host: control.Retired{ID: req.Host}, Undo: req.Undo, DryRun: req.DryRun}, d.answer(ctx)
}

func (d *fake) RetiredHosts(ctx context.Context) (control.RetiredHosts, error) {
	return control.RetiredHosts{}, d.answer(ctx)
}

// startServer runs a server until the test ends and returns its socket.
func startServer(t testing.TB, s *Server) string {
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
			t.Errorf("Serve: %v", err)
		}
	})
	return s.opt.Socket
}

// serveBackend serves a backend with the default limits.
func serveBackend(t *testing.T, b Backend) string {
	t.Helper()
	return startServer(t, New(Options{Socket: filepath.Join(tempdir.New(t), "s"), Backend: b, Logger: testLog(t)}))
}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// call sends one request, as curl does, and returns the status and the body of the answer.
func call(t *testing.T, socket, method, path, body string) (int, string) {
	t.Helper()
	return sendRaw(t, socket,
		fmt.Sprintf("%s %s HTTP/1.1\r\nHost: quorumd\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
			method, path, len(body), body))
}

// sendRaw sends raw bytes and returns the status and the body of the answer.
func sendRaw(t *testing.T, socket, raw string) (int, string) {
	t.Helper()
	c := dial(t, socket)
	if _, err := io.WriteString(c, raw); err != nil {
		t.Logf("the server closed early: %v", err) // the server may still have answered
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("truncated answer: %v", err)
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

// errorIn strictly decodes an error document and returns its error.
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
