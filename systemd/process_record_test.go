// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bystander starts an unrelated process, in a session of its own.
func bystander(t *testing.T, token string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"=stubborn", tokenVariable+"="+token)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestAReusedPIDIsNotTakenForTheProcess(t *testing.T) {
	t.Parallel()
	other := bystander(t, "not-ours")
	stat, err := statOf(other.Process.Pid)
	if err != nil || stat == nil {
		t.Fatal(stat, err)
	}
	p := open(t, options(t, "sleeper"))
	forged := record{
		Version: recordVersion, BootID: p.boot, State: Active, PID: stat.PID,
		StartTicks: stat.Starttime - 1, Token: "ours", Result: "success", ExitCode: -1,
	}
	writeRecord(t, p, forged)
	if st := status(t, p); st.State != Failed || st.Result != "unknown" || st.PID != 0 {
		t.Errorf("%+v", st)
	}

	// The forged record is in the middle of a stop and past its deadline, so SIGKILL for the group would be next.
	forged.State, forged.Job, forged.Terminated, forged.StopDeadline = Deactivating, "stop", true, 1
	writeRecord(t, p, forged)
	if st := status(t, p); st.State != Inactive || st.LastJob != "done" {
		t.Errorf("%+v", st)
	}
	if !alive(t, stat.PID) {
		t.Error("the bystander was killed")
	}

	forged.StartTicks++ // with the right start time, the process is accepted
	forged.State, forged.Job, forged.Terminated = Active, "", false
	writeRecord(t, p, forged)
	if st := status(t, p); st.State != Active || st.PID != stat.PID {
		t.Errorf("with the right start time: %+v", st)
	}
}

func TestAProcessOfAnEarlierBootIsLost(t *testing.T) {
	t.Parallel()
	other := bystander(t, "not-ours")
	stat, err := statOf(other.Process.Pid)
	if err != nil || stat == nil {
		t.Fatal(stat, err)
	}
	p := open(t, options(t, "sleeper"))
	for _, c := range []struct {
		state           State
		job             string
		want            State
		result, lastJob string
	}{
		{Active, "", Failed, "reboot", "before"},
		{Activating, "start", Failed, "reboot", "canceled"},
		{Deactivating, "stop", Inactive, "success", "done"},
		{Deactivating, "restart", Failed, "reboot", "canceled"},
		{Failed, "", Failed, "success", "before"},
		{Inactive, "", Inactive, "success", "before"},
	} {
		// The PID and the start time match a live process, as they may after a reboot.
		writeRecord(t, p, record{
			Version: recordVersion, BootID: "earlier", State: c.state, Since: time.Hour * 1e5, PID: stat.PID,
			StartTicks: stat.Starttime, Token: "ours", Result: "success", ExitCode: -1, Job: c.job, LastJob: "before",
			StopDeadline: time.Hour * 1e5,
		})
		st := status(t, p)
		if st.State != c.want || st.Result != c.result || st.LastJob != c.lastJob || st.Job != "" || st.PID != 0 ||
			st.Since != 0 {
			t.Errorf("%v with job %q: %+v", c.state, c.job, st)
		}
	}
	if !alive(t, stat.PID) {
		t.Error("the bystander was killed")
	}
}

func TestAStartInterruptedAfterTheForkIsFound(t *testing.T) {
	t.Parallel()
	child := bystander(t, "cut-short-1")
	p := open(t, options(t, "sleeper"))
	writeRecord(t, p, record{
		Version: recordVersion, BootID: p.boot, State: Activating, Token: "cut-short-1",
		Result: "success", ExitCode: -1, Job: "start",
	})
	if st := status(t, p); st.State != Active || st.PID != child.Process.Pid || st.LastJob != "done" {
		t.Errorf("%+v", st)
	}
}

func TestAStartInterruptedBeforeTheForkHasFailed(t *testing.T) {
	t.Parallel()
	p := open(t, options(t, "sleeper"))
	writeRecord(t, p, record{
		Version: recordVersion, BootID: p.boot, State: Activating, Token: "cut-short-2",
		Result: "success", ExitCode: -1, Job: "start",
	})
	if st := status(t, p); st.State != Failed || st.Result != "resources" || st.LastJob != "failed" || st.Job != "" {
		t.Errorf("%+v", st)
	}
	if st := start(t, p); st.State != Active {
		t.Errorf("%+v", st)
	}
}

func TestAnOverdueRestartIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	p := open(t, options(t, "sleeper"))
	now, err := clock(unix.CLOCK_BOOTTIME)
	if err != nil {
		t.Fatal(err)
	}
	r := record{
		Version: recordVersion, BootID: p.boot, State: Deactivating, PID: 1 << 30, StartTicks: 1, Token: "late",
		Result: "success", ExitCode: -1, Job: "restart", Terminated: true, StopDeadline: now - jobLimit - time.Second,
	}
	writeRecord(t, p, r)
	if st := status(t, p); st.State != Inactive || st.LastJob != "timeout" || st.PID != 0 {
		t.Errorf("%+v", st)
	}
	r.StopDeadline = now
	writeRecord(t, p, r)
	if st := status(t, p); st.State != Active || st.LastJob != "done" {
		t.Errorf("in time: %+v", st)
	}
}

func TestAnInvalidStateFileStartsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, says string }{
		{"{\"version\": 1, \"st", "remove that file"},
		{"", "remove that file"},
		{"{\"version\": 2}", "version 2"},
		{"{\"version\": 1, \"pid\": 1, \"ended\": true}", "quorumd did not start process 1"},
		{"{\"version\": 1, \"pid\": -5}", "quorumd did not start process -5"},
		{"{\"version\": 1, \"state\": \"dancing\"}", "dancing"},
	} {
		o := options(t, "sleeper")
		p := open(t, o)
		if err := os.WriteFile(p.state, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		st, err := p.Status(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.says) || st.State != Unknown {
			t.Errorf("%q: %+v, %v", c.text, st, err)
		}
		if err := p.Start(t.Context()); err == nil {
			t.Errorf("%q: started", c.text)
		}
		if err := os.Remove(p.state); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoSignalGoesToEveryProcess(t *testing.T) {
	t.Parallel()
	// Signal 0 only checks whether a signal could be sent.
	for _, pgid := range []int{1, 0, -1} {
		if err := signalGroup(pgid, 0); err == nil || !strings.Contains(err.Error(), "did not start that group") {
			t.Errorf("group %d: %v", pgid, err)
		}
	}
}

func TestACallIsBoundedWhileTheLockIsHeld(t *testing.T) {
	t.Parallel()
	p := open(t, options(t, "sleeper"))
	f, err := os.Create(p.lock)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if st, err := p.Status(t.Context()); !errors.Is(err, ErrUnavailable) || st.State != Unknown {
		t.Errorf("%+v, %v", st, err)
	}
	if took := time.Since(began); took < lockTimeout || took > lockTimeout+slack {
		t.Errorf("it took %v", took)
	}
	f.Close()
	if st := status(t, p); st.State != Inactive {
		t.Errorf("%+v", st)
	}
}
