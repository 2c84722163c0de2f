// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// quick returns Raft timings with which an election takes about half a second.
func quick() testbed.ClusterOptions {
	return testbed.ClusterOptions{Heartbeat: 50 * time.Millisecond, Election: 500 * time.Millisecond}
}

func put(t *testing.T, client *clientv3.Client, value string) {
	t.Helper()
	if _, err := client.Put(within(t), "key", value); err != nil {
		t.Fatal(err)
	}
}

func expectValue(t *testing.T, client *clientv3.Client, want string) {
	t.Helper()
	got, err := client.Get(within(t), "key")
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != want {
		t.Errorf("got %v, %v; want %s", got, err, want)
	}
}

// expectSignal waits for the process and checks which signal ended it.
func expectSignal(t *testing.T, m *testbed.Member, want syscall.Signal) {
	t.Helper()
	var exit *exec.ExitError
	if err := m.Wait(within(t)); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != want {
		t.Errorf("exited with %v, want %v", err, want)
	}
}

func TestAMemberThatWasKilledOrTerminatedComesBackWithItsDataOnItsPort(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 1, quick())
	m, client := c.Members[0], c.Client(t)
	put(t, client, "kept")
	for _, c := range []struct {
		end    func() error
		signal syscall.Signal
	}{{m.Kill9, syscall.SIGKILL}, {m.Terminate, syscall.SIGTERM}} {
		before := m.PID()
		if err := m.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "it still runs") {
			t.Fatalf("restarting a member that runs: %v", err)
		}
		if err := c.end(); err != nil {
			t.Fatal(err)
		}
		expectSignal(t, m, c.signal)
		if err := m.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.WaitReady(within(t)); err != nil {
			t.Fatal(err)
		}
		if m.PID() == before {
			t.Errorf("the process is still %d", before)
		}
		expectValue(t, client, "kept")
	}
}

func TestAPausedMemberKeepsItsConnectionsAndAnswersWhenResumed(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 1, quick())
	m, client := c.Members[0], c.Client(t)
	put(t, client, "before")
	if err := m.Pause(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := client.Put(within(t), "key", "during")
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("a paused member answered: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if err := m.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("after the pause: %v", err)
	}
	expectValue(t, client, "during")
}

func TestAMemberThatCannotStartIsReportedWithTheEndOfItsLog(t *testing.T) {
	t.Parallel()
	// RFC 5737: no machine has this address
	m := startAlone(t, t.Context(), t.TempDir(), "--listen-peer-urls=http://192.0.2.1:1")
	m.StopAfter(t)
	err := m.WaitReady(within(t))
	if err == nil || !strings.Contains(err.Error(), "it has exited") || !strings.Contains(err.Error(), "192.0.2.1") {
		t.Errorf("got %v", err)
	}
	var exit *exec.ExitError
	if err := m.Wait(within(t)); !errors.As(err, &exit) || exit.ExitCode() <= 0 {
		t.Errorf("exited with %v", err)
	}
}

func TestWaitGivesUpWithItsContextWhileTheMemberRuns(t *testing.T) {
	t.Parallel()
	m := startAlone(t, t.Context(), t.TempDir())
	m.StopAfter(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAMemberEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m := startAlone(t, ctx, t.TempDir())
	m.StopAfter(t)
	cancel()
	if err := m.Wait(within(t)); err == nil {
		t.Error("etcd exited by itself")
	}
}

// startAlone starts a one-member cluster without waiting for it.
func startAlone(t *testing.T, ctx context.Context, dir string, extra ...string) *testbed.Member {
	t.Helper()
	ports := testbed.FreePorts(t, 2)
	m, err := testbed.StartMember(ctx, testbed.MemberOptions{
		Binary: testbed.Etcd(t, testbed.Small), Name: "alone", Dir: dir, Extra: extra,
		ClientURL: fmt.Sprintf("http://127.0.0.1:%d", ports[0]), PeerURL: fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// abandonMember runs in a separate process: it starts a member, prints its process ID, and dies without a chance to
// clean up.
func abandonMember(dir string) {
	err := func() error {
		binary, err := testbed.Binary(testbed.Small)
		if err != nil {
			return err
		}
		ports, release, err := testbed.ReservePorts(2)
		if err != nil {
			return err
		}
		defer release()
		m, err := testbed.StartMember(context.Background(), testbed.MemberOptions{
			Binary: binary, Name: "orphan", Dir: dir,
			ClientURL: fmt.Sprintf("http://127.0.0.1:%d", ports[0]),
			PeerURL:   fmt.Sprintf("http://127.0.0.1:%d", ports[1]),
		})
		if err != nil {
			return err
		}
		fmt.Println(m.PID())
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}()
	fmt.Println(err)
}

func TestAMemberDiesWithTheProcessThatStartedIt(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(within(t), os.Args[0])
	cmd.Env = append(os.Environ(), "TESTBED_TEST_ABANDON="+t.TempDir())
	out, err := cmd.Output()
	pid := 0
	if _, scanErr := fmt.Sscan(string(out), &pid); scanErr != nil {
		t.Fatalf("got %q, %v", out, err)
	}
	testbed.Eventually(t, bound, "the orphan dies", func() bool {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err != nil || !strings.Contains(string(name), "orphan") // a zombie has no command line
	})
}

func TestALearnerIsReadyWithoutBeingAVoter(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 1, quick())
	ports := testbed.FreePorts(t, 2)
	peer := fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	if _, err := c.Client(t).MemberAddAsLearner(within(t), []string{peer}); err != nil {
		t.Fatal(err)
	}
	first := c.Members[0].Options
	o := first
	o.Name, o.Dir, o.State = "learner", t.TempDir(), "existing"
	o.ClientURL, o.PeerURL = fmt.Sprintf("http://127.0.0.1:%d", ports[0]), peer
	o.InitialCluster = first.InitialCluster + ",learner=" + peer
	m, err := testbed.StartMember(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	m.StopAfter(t)
	if err := m.WaitReady(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestAClusterReplacesItsLeaderAndTheLoadShowsTheGap(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 3, quick())
	leader, err := c.Leader(within(t))
	if err != nil {
		t.Fatal(err)
	}
	load, err := testbed.StartWriteLoad(t.Context(), testbed.LoadOptions{Endpoints: c.Endpoints(), Rate: 50})
	if err != nil {
		t.Fatal(err)
	}
	defer load.Stop()
	testbed.Eventually(t, bound, "writes are acknowledged", func() bool { return load.Report().Acked > 20 })
	if err := leader.Kill9(); err != nil {
		t.Fatal(err)
	}
	expectSignal(t, leader, syscall.SIGKILL)
	killed := time.Now()
	testbed.Eventually(t, bound, "a write sent after the kill is acknowledged", func() bool {
		return slices.ContainsFunc(load.Report().Writes, func(w testbed.Write) bool {
			return w.Sent.After(killed) && !w.Acked.IsZero()
		})
	})
	report := load.Stop()
	if report.Acked+report.Failed != len(report.Writes) {
		t.Errorf("%d acknowledged and %d failed of %d", report.Acked, report.Failed, len(report.Writes))
	}
	// followers wait at least one election timeout, 500 ms, from the last heartbeat
	if report.LongestGap < 300*time.Millisecond {
		t.Errorf("longest gap %v", report.LongestGap)
	}
	kvs, err := c.Client(t).Get(within(t), "load/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]bool{}
	for _, kv := range kvs.Kvs {
		stored[string(kv.Key)] = true
	}
	sent := map[string]bool{}
	for _, w := range report.Writes {
		if sent[w.Key] {
			t.Errorf("%s was written twice", w.Key)
		}
		sent[w.Key] = true
		if w.Err == nil && !stored[w.Key] {
			t.Errorf("%s was acknowledged at revision %d and is not there", w.Key, w.Revision)
		}
	}
	if next, err := c.Leader(within(t)); err != nil || next == leader {
		t.Errorf("the leader is %v, %v", next, err)
	}
}

func TestAWriteThatGetsNoAnswerIsSentAgainToAnotherMember(t *testing.T) {
	t.Parallel()
	c := testbed.StartCluster(t, 3, quick())
	leader, err := c.Leader(within(t))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(c.Members, func(m *testbed.Member) bool { return m != leader })
	load, err := testbed.StartWriteLoad(t.Context(),
		testbed.LoadOptions{Endpoints: c.Endpoints(), Rate: 50, Timeout: 20 * time.Second, Retry: true})
	if err != nil {
		t.Fatal(err)
	}
	defer load.Stop()
	testbed.Eventually(t, bound, "writes are acknowledged", func() bool { return load.Report().Acked > 20 })
	if err := c.Members[i].Pause(); err != nil {
		t.Fatal(err)
	}
	testbed.Eventually(t, bound, "a write that was sent twice is acknowledged", func() bool {
		return load.Report().Retried > 0
	})
	if err := c.Members[i].Resume(); err != nil {
		t.Fatal(err)
	}
	if r := load.Stop(); r.Failed > 0 || r.Slowest < 4*time.Second {
		t.Errorf("%d writes failed, and the slowest took %v", r.Failed, r.Slowest)
	}
}

func TestALoadWithoutAServerFailsAndItsWholeTimeIsAGap(t *testing.T) {
	t.Parallel()
	unused := fmt.Sprintf("http://127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	load, err := testbed.StartWriteLoad(t.Context(),
		testbed.LoadOptions{Endpoints: []string{unused}, Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer load.Stop()
	testbed.Eventually(t, bound, "writes fail", func() bool { return load.Report().Failed > 10 })
	report := load.Stop()
	if report.Acked > 0 || report.Failed != len(report.Writes) || report.LongestGap < 100*time.Millisecond {
		t.Errorf("%d acknowledged, %d failed of %d, longest gap %v", report.Acked, report.Failed, len(report.Writes),
			report.LongestGap)
	}
}

func TestATLSClusterAnswersOnlyTrustedClients(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	good := issue(t, ca, "good")
	options := quick()
	options.TLS = &good
	c := testbed.StartCluster(t, 3, options)
	put(t, c.Client(t), "secret")

	stranger, err := ca.WrongCA("stranger")
	if err != nil {
		t.Fatal(err)
	}
	m := &testbed.Member{Options: testbed.MemberOptions{ClientURL: c.Endpoints()[0], TLS: &stranger}}
	client, err := m.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if got, err := client.Get(ctx, "key"); err == nil {
		t.Errorf("a stranger read %v", got)
	}
}

func TestALogTailHasTheLastLinesOrTheReasonForNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := &testbed.Member{Options: testbed.MemberOptions{Dir: dir}}
	if got := m.LogTail(2); !strings.Contains(got, "no such file") {
		t.Errorf("without a log: %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "etcd.log"), []byte("a\nb\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := m.LogTail(2); got != "b\nc" {
		t.Errorf("got %q", got)
	}
}
