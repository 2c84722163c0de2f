// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/control/server"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/fileaccess"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
	"github.com/quorumd/quorumd/health"
)

func TestMain(m *testing.M) {
	child := len(os.Args) > 1 && (os.Args[1] == probeCommand || os.Args[1] == fileaccess.Command ||
		os.Args[1] == inspectCommand)
	if child || os.Getenv("QUORUMCTL_TEST_MAIN") != "" { // run as the program, for tests that need a process
		main()
		os.Exit(exitOK)
	}
	os.Setenv("TERM", "xterm") // independent of the caller's terminal: the tests open their own
	flag.Bool("update", false, "rewrite the golden files")
	goleak.VerifyTestMain(m)
}

// fakeBackend is a backend whose status is read from a JSON file in testdata, called a scene.
type fakeBackend struct {
	mu     sync.Mutex
	status control.Status
	reads  int
	onRead func(look int, s *control.Status) // called with the number of the read
	fail   error                             // returned by most calls that can fail
	checks control.Checks
	lines  []control.HistoryLine

	down, back []maintenanceStep // returned by reads after the maintenance was requested, and after it was ended
	course     []maintenanceStep // returned by the next reads
	requested  []string          // requests, in order
	stale      bool
	removed    bool   // the member is gone already
	rounds     uint64 // added to the rounds of the loop at each read
	onAsk      func(*control.Status)
	onEnd      func() error
	snapshot   control.SnapshotJob // how the requested snapshot job ends

	onSnapshot    func(look int, j *control.SnapshotJob) // modifies the job at each read; may be nil
	snapshotLooks int

	size control.Resize // the plan of a resize

	transfer   control.Transfer   // the plan of a leadership transfer
	retirement control.Retirement // the plan of a retirement
}

// maintenanceStep is the maintenance as one read returns it. A step without a state means that the maintenance has
// ended.
type maintenanceStep struct {
	state policy.RequestState
	code  policy.ReasonCode
	text  string
}

func (d *fakeBackend) Status() control.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	if d.onRead != nil {
		d.onRead(d.reads, &d.status)
	}
	d.step()
	s := d.status
	if s.Maintenance != nil { // a status already returned must not change
		m := *s.Maintenance
		s.Maintenance = &m
	}
	return s
}

// step advances the maintenance to its next step; the last one stays.
func (d *fakeBackend) step() {
	d.status.Loop.Rounds += d.rounds
	if len(d.course) == 0 || d.status.Maintenance == nil {
		return
	}
	d.status.Time = d.status.Time.Add(time.Second)
	if d.stale { // the status is still from before the request
		d.stale = false
		return
	}
	d.status.Loop.Rounds++
	now := d.course[0]
	if len(d.course) > 1 {
		d.course = d.course[1:]
	}
	if m := d.status.Maintenance; now.state == "" {
		d.status.LastMaintenance = &control.MaintenanceEnd{
			Work: m.Work, Reason: m.Reason, By: m.By, Since: m.Since, Ended: d.status.Time, Code: now.code,
			Text: now.text,
		}
		d.status.Maintenance, d.status.Reasons, d.course = nil, nil, nil
		return
	}
	d.status.Maintenance.State = now.state
	d.status.Reasons = nil
	if now.code != "" {
		d.status.Reasons = []control.Reason{{Code: string(now.code), Text: now.text}}
	}
}

// Revision changes after each read, so that every command sees the next status.
func (d *fakeBackend) Revision() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return uint64(d.reads)
}

func (d *fakeBackend) Checks() control.Checks { return d.checks }

func (d *fakeBackend) Mute(_ context.Context, req control.MuteRequest, _ string) (health.Mute, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := health.Mute{
		Code: health.Code(req.Code), State: health.Warm, Reason: req.Reason, By: "root", Since: d.status.Time,
		Until: d.status.Time.Add(time.Duration(req.For)),
	}
	if d.fail == nil {
		d.status.Health.Mutes = append(d.status.Health.Mutes, m)
	}
	return m, d.fail
}

func (d *fakeBackend) Unmute(_ context.Context, code, _ string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requested = append(d.requested, "unmute "+code)
	return d.fail
}

func (d *fakeBackend) StartSnapshot(_ context.Context, req control.SnapshotRequest, by string,
) (control.SnapshotJob, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requested = append(d.requested, strings.TrimSpace("snapshot "+req.Do+" "+req.Name))
	d.snapshot.Do, d.snapshot.By, d.snapshot.Number = req.Do, by, 1
	running := d.snapshot
	running.Ended = nil
	return running, d.fail
}

func (d *fakeBackend) SnapshotJob() control.SnapshotJob {
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.snapshot
	if d.snapshotLooks++; d.onSnapshot != nil {
		d.onSnapshot(d.snapshotLooks, &j)
	}
	return j
}

func (d *fakeBackend) ProbeNow(context.Context) error { return nil }

func (d *fakeBackend) History(_ context.Context, limit int) ([]control.HistoryLine, error) {
	return d.lines[max(0, len(d.lines)-limit):], d.fail
}

func (*fakeBackend) AwaitData(context.Context) {}

func (d *fakeBackend) MayBootstrap(context.Context) error { return d.fail }

func (d *fakeBackend) Bootstrap(context.Context, string) error { return d.fail }

func (d *fakeBackend) Pause(_ context.Context, req control.PauseRequest, _ string) (control.Pause, error) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	return control.Pause{By: "root", Reason: req.Reason, Since: at, Until: at.Add(time.Duration(req.For))}, d.fail
}

func (d *fakeBackend) Resume(context.Context, string) error { return d.fail }

func (d *fakeBackend) ReleaseOp(context.Context, control.ReleaseRequest, string) error { return d.fail }

func (d *fakeBackend) RecoveryFacts(context.Context) (recovery.Facts, error) {
	return recovery.Facts{}, nil
}

func (d *fakeBackend) ApplyRecovery(_ context.Context, plan recovery.Plan, by string) (control.Recovery, error) {
	return control.Recovery{Plan: plan.ID, By: by}, nil
}

func (d *fakeBackend) AbandonRecovery(context.Context, string) (control.Recovery, error) {
	return control.Recovery{Plan: "abcdefghijkl", By: "root", GivenUp: "root", Alone: true}, d.fail
}

func requestedRemoval(req control.RemovalRequest, at time.Time) control.RequestedRemoval {
	return control.RequestedRemoval{
		MemberID: 0xfd422379fda50e48, Name: req.Member, Reason: req.Reason, By: "root", Live: req.Live,
		Since: at, Until: at.Add(time.Duration(req.For)),
	}
}

func (d *fakeBackend) RemoveMember(_ context.Context, req control.RemovalRequest, _ string) (control.Removal, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if req.DryRun {
		return control.Removal{
			RequestedRemoval: requestedRemoval(req, d.status.Time), State: control.RemovalWaiting, DryRun: true,
		}, d.fail
	}
	d.requested = append(d.requested, fmt.Sprintf("remove %s within %s, live %t: %s", req.Member, req.For, req.Live,
		req.Reason))
	r := control.Removal{
		RequestedRemoval: requestedRemoval(req, d.status.Time.Add(time.Millisecond)), State: control.RemovalWaiting,
	}
	if d.removed {
		r.State = control.RemovalDone
	}
	if d.fail == nil {
		d.status.Removal = &r
	}
	return r, d.fail
}

func (d *fakeBackend) RequestMaintenance(_ context.Context, req control.MaintenanceRequest,
	_ string,
) (control.Maintenance, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if req.DryRun {
		return control.Maintenance{
			Work: req.Work, Command: req.Command, By: "root", Since: d.status.Time, Reason: req.Reason,
			State: policy.RequestWaiting, DryRun: true,
		}, d.fail
	}
	d.requested = append(d.requested, fmt.Sprintf("%s for %s, keep running %t: %s", display.Work(req.Work, req.Command),
		req.For,
		req.KeepRunning, req.Reason))
	if d.onAsk != nil {
		d.onAsk(&d.status)
	}
	if d.status.Maintenance == nil && d.fail == nil {
		at := d.status.Time.Add(time.Millisecond)
		d.status.Maintenance = &control.Maintenance{
			Work: req.Work, Command: req.Command, By: "root", Reason: req.Reason,
			Since: at, Until: at.Add(time.Duration(req.For)),
			KeepRunning: req.KeepRunning, State: policy.RequestWaiting,
		}
		d.course, d.stale = d.down, true
	}
	if d.fail != nil {
		return control.Maintenance{}, d.fail
	}
	if m := d.status.Maintenance; m.Work != req.Work {
		return control.Maintenance{}, &control.Error{
			Status: 409, Code: control.CodeConflict, Message: "cannot request maintenance: another " + string(m.Work) +
				" was already requested", Hint: "quorumctl maintenance off",
		}
	}
	return *d.status.Maintenance, nil
}

func (d *fakeBackend) EndMaintenance(context.Context, string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requested = append(d.requested, "end")
	d.course, d.stale = d.back, true
	if d.onEnd != nil {
		return d.onEnd()
	}
	return d.fail
}

func (d *fakeBackend) StartRollout(_ context.Context, req control.RolloutRequest, _ string) (control.Rollout, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := control.Rollout{
		ID: "k3x7", Work: req.Work, Command: req.Command, Version: req.Version, Reason: req.Reason,
		By: "root", State: record.RolloutRunning, Started: d.status.Time, DryRun: req.DryRun,
	}
	if !req.DryRun {
		d.requested = append(d.requested, string(req.Work)+" rollout: "+req.Reason)
	}
	if req.DryRun && req.Work == policy.WorkReaddress {
		r.Absent = []string{"n4"}
		r.Steps = []policy.PlanStep{{
			Text: "n3: the peer URL in the member list changes from http://10.0.0.3:2380 to http://10.1.0.3:2380; " +
				"from here on the host completes the change", Voters: 3, Tolerance: 1,
		}, {
			Text:   "n3: etcd restarts. The hosts of all other members report that their etcd has connected to it",
			Voters: 3, Tolerance: 1,
		}}
	}
	if req.DryRun && req.Work == policy.WorkDefrag {
		r.Hosts, r.Steps = defragPreview()
	}
	for _, name := range req.Hosts {
		r.Hosts = append(r.Hosts, control.RolloutHost{ID: name, Name: name, State: record.HostWaiting})
	}
	return r, d.fail
}

func (d *fakeBackend) SetRollout(_ context.Context, state, _ string) (control.Rollout, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.status.Rollout == nil {
		return control.Rollout{}, &control.Error{
			Status: 409, Code: control.CodeConflict,
			Message: "cannot change the rollout: there is none", Hint: "quorumctl rollout start",
		}
	}
	r := *d.status.Rollout
	r.State, r.Text = state, "by root"
	d.status.Rollout = &r
	return r, d.fail
}

func (d *fakeBackend) Retire(_ context.Context, req control.RetireRequest, _ string) (control.Retirement, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	plan := d.retirement
	plan.DryRun, plan.Undo = req.DryRun, req.Undo
	if d.fail != nil || plan.Unchanged || req.Undo {
		plan.Steps, plan.Size = nil, nil
	}
	if d.fail != nil || plan.Unchanged {
		return plan, d.fail
	}
	plan.Host.By, plan.Host.Reason, plan.Host.Since = "root", req.Reason, d.status.Time.Add(time.Millisecond)
	if req.DryRun {
		return plan, nil
	}
	by := ""
	if req.Successor != "" {
		by = " by " + req.Successor
	}
	d.requested = append(d.requested, fmt.Sprintf("retire %s%s, undo %t: %s", req.Host, by, req.Undo, req.Reason))
	if d.status.Retired = nil; !req.Undo {
		d.status.Retired = []control.Retired{plan.Host}
	}
	return plan, nil
}

func (d *fakeBackend) RetiredHosts(context.Context) (control.RetiredHosts, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return control.RetiredHosts{Hosts: d.status.Retired}, d.fail
}

func (d *fakeBackend) Resize(_ context.Context, req control.ResizeRequest, _ string) (control.Resize, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	plan := d.size
	plan.Target, plan.DryRun = req.Voters, req.DryRun
	if d.fail != nil || plan.Unchanged {
		return plan, d.fail
	}
	plan.Size = &control.Size{
		Voters: req.Voters, WithoutSnapshot: req.WithoutSnapshot, By: "root", Reason: req.Reason,
		Since: d.status.Time.Add(time.Millisecond),
	}
	if req.DryRun {
		return plan, nil
	}
	seen := "any"
	if req.IfRevision != nil {
		seen = fmt.Sprint(*req.IfRevision)
	}
	d.requested = append(d.requested, fmt.Sprintf("resize to %d if revision %s, without snapshot %t: %s", req.Voters,
		seen, req.WithoutSnapshot, req.Reason))
	d.status.Cluster.Size, d.status.Cluster.Target = plan.Size, req.Voters
	return plan, nil
}

func (d *fakeBackend) TransferLeadership(_ context.Context, req control.TransferRequest, _ string) (control.Transfer,
	error,
) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.transfer
	t.Reason, t.By, t.DryRun, t.Name = req.Reason, "root", req.DryRun, cmp.Or(t.Name, req.Host)
	t.Since, t.Until = d.status.Time.Add(time.Millisecond), d.status.Time.Add(time.Minute)
	if d.fail == nil && !t.Unchanged && !req.DryRun {
		d.requested = append(d.requested, fmt.Sprintf("transfer leadership to %q: %s", req.Host, req.Reason))
	}
	return t, d.fail
}

func (d *fakeBackend) Size(context.Context) (control.Resize, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.size
	now.Voters, now.Target, now.Size = d.status.Cluster.Voters, d.status.Cluster.Target, d.status.Cluster.Size
	if now.Voters == now.Target {
		now.Steps, now.Warnings = nil, nil
	}
	return now, d.fail
}

// requests returns the requests that the backend has received.
func (d *fakeBackend) requests() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.requested, "; ")
}

// scene loads a status from testdata.
func scene(t *testing.T, name string) *fakeBackend {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	d := &fakeBackend{}
	if err := dec.Decode(&d.status); err != nil {
		t.Fatal(err)
	}
	return d
}

// scenes lists the statuses in testdata.
func scenes() []string {
	return []string{
		"steady", "slow", "joining", "etcd-down", "fresh", "starting", "paused", "hostile", "overdue",
		"rollout", "failed", "voter-down",
	}
}

// serve runs a real server for a backend until the test ends or stop is called.
func serve(t *testing.T, d *fakeBackend) (socket string, stop func()) {
	t.Helper()
	socket = filepath.Join(tempdir.New(t), "s") // a short path, because a long one would be wrapped
	s := server.New(server.Options{Socket: socket, Backend: d})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return socket, stop
}

// result is the outcome of a command.
type result struct {
	code   int
	stdout string
	stderr string
}

// quorumctl runs a command line as on a terminal, though without colours, and checks -o json output against its schema.
func quorumctl(t *testing.T, socket string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	a := newApp(&out, &errOut)
	a.piped = false
	code := a.run(t.Context(), append([]string{"--socket", socket}, args...))
	matchingSchemas(t, args, out.String())
	return result{code, out.String(), errOut.String()}
}

// refusesArguments fails the test unless each command is refused for its arguments with a remedy, and requests nothing.
func refusesArguments(t *testing.T, d *fakeBackend, socket string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if r := quorumctl(t, socket, splitLine(line)...); r.code != exitUsage || !strings.Contains(r.stderr, "→ ") {
			t.Errorf("%s: exit %d: %s%s", line, r.code, r.stdout, r.stderr)
		}
	}
	if asked := d.requests(); asked != "" {
		t.Errorf("it asked for %q", asked)
	}
}

// transcript returns commands and their output, as on a terminal.
func transcript(t *testing.T, socket string, lines ...string) []byte {
	t.Helper()
	var b strings.Builder
	for _, line := range lines {
		r := quorumctl(t, socket, splitLine(line)...)
		fmt.Fprintf(&b, "$ quorumctl %s\n%s%s", line, replaceUser(t, r.stdout),
			strings.ReplaceAll(r.stderr, socket, "SOCKET"))
		if r.code != 0 {
			fmt.Fprintf(&b, "(exit %d)\n", r.code)
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// replaceUser puts root in place of the name of the user who runs the tests.
func replaceUser(t *testing.T, text string) string {
	t.Helper()
	uid := os.Geteuid()
	if uid == 0 {
		return text
	}
	names := []string{fmt.Sprintf("uid %d", uid)}
	if me, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		names = slices.Insert(names, 0, fmt.Sprintf("uid %d (%s)", uid, me.Username))
	}
	for _, name := range names {
		text = strings.ReplaceAll(text, name, "root")
	}
	return text
}

// splitLine splits a command line at spaces outside single quotes.
func splitLine(line string) []string {
	var list []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			list = append(list, part)
		} else {
			list = append(list, strings.Fields(part)...)
		}
	}
	return list
}

// golden compares text with a file in testdata, or rewrites the file with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update rewrites it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}
