// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package autoreboot

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/execshim"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/window"
)

// TestMain also acts as the child that executes a program.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == execshim.Command {
		_ = execshim.Main(os.Args[2:]) // execshim.Main prints the error
		os.Exit(1)
	}
	m.Run()
}

// files is a directory with the files that the indicators read.
type files struct {
	t          *testing.T
	dir        string
	indicators Indicators
}

func newFiles(t *testing.T) *files {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &files{t, dir, Indicators{
		Child:    []string{self, execshim.Command},
		Sentinel: filepath.Join(dir, "reboot-required"), Query: filepath.Join(dir, "needs-restarting"),
		Veto: filepath.Join(dir, "veto.d"),
	}}
}

func (p *files) write(name, text string, mode os.FileMode) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		p.t.Fatal(err)
	}
}

func TestDebiansSentinelFileMeansThatARebootIsRequired(t *testing.T) {
	t.Parallel()
	p := newFiles(t)
	if why, err := p.indicators.Required(t.Context()); why != "" || err != nil {
		t.Errorf("without files: %q, %v", why, err)
	}
	p.write("reboot-required", "*** System restart required ***\n", 0o644)
	if why, err := p.indicators.Required(t.Context()); err != nil ||
		!strings.HasSuffix(why, "reboot-required exists, so a reboot is required") {
		t.Errorf("%q, %v", why, err)
	}
	p.write("reboot-required.pkgs", "linux-image-6.1.0-40-amd64\nlibc6\n", 0o644)
	if why, err := p.indicators.Required(t.Context()); why != "packages require a reboot: "+
		"linux-image-6.1.0-40-amd64, libc6" ||
		err != nil {
		t.Errorf("%q, %v", why, err)
	}
}

func TestOutputOfThePackageManagerMustConfirmItsExitCode(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ script, why, err string }{
		"required": {
			"echo 'Core libraries or services have been updated since boot-up:'; echo '  * kernel'; " +
				"echo '  * systemd'; echo; echo 'Reboot is required to fully utilize these updates.'; exit 1",
			"packages require a reboot: kernel, systemd", "",
		},
		"not required": {"echo 'Reboot should not be necessary.'", "", ""},
		"a failure":    {"echo 'Error: cannot open the database' >&2; exit 1", "", "cannot open the database"},
		"killed":       {"kill -9 $$", "", "killed"},
		"long output":  {"head -c 1000000 /dev/zero; exit 2", "", "exit status 2"},
	} {
		p := newFiles(t)
		p.write("needs-restarting", "#!/bin/sh\n[ \"$1\" = -r ] || exit 99\n"+c.script+"\n", 0o755)
		why, err := p.indicators.Required(t.Context())
		if why != c.why || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", what, why, err)
		}
	}
}

func TestAnyFileIsAVeto(t *testing.T) {
	t.Parallel()
	p := newFiles(t)
	if veto := p.indicators.Vetoed(); veto != "" {
		t.Errorf("without a directory: %q", veto)
	}
	p.write("veto.d/.hidden", "x", 0o644)
	p.write("veto.d/backup~", "x", 0o644)
	if veto := p.indicators.Vetoed(); veto != "" {
		t.Errorf("hidden files: %q", veto)
	}
	p.write("veto.d/backup", "the backup runs until six\nsecond line\n", 0o644)
	if veto := p.indicators.Vetoed(); veto != "backup: the backup runs until six" {
		t.Errorf("%q", veto)
	}
	p.write("veto.d/a", "", 0o644)
	if veto := p.indicators.Vetoed(); veto != "a" {
		t.Errorf("an empty file: %q", veto)
	}
	file := newFiles(t)
	file.write("veto.d", "", 0o644)
	if veto := file.indicators.Vetoed(); veto == "" {
		t.Error("an unreadable directory is not a veto")
	}
}

// host is a simulated agent that records the requests.
type host struct {
	mu    sync.Mutex // held by the test except in wait
	m     *control.Maintenance
	asked []control.MaintenanceRequest
	ended int
	err   error
}

func (h *host) RequestMaintenance(_ context.Context, req control.MaintenanceRequest,
	by string,
) (control.Maintenance, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return control.Maintenance{}, h.err
	}
	h.asked = append(h.asked, req)
	h.m = &control.Maintenance{Work: req.Work, By: by, State: policy.RequestWaiting}
	return *h.m, nil
}

func (h *host) EndMaintenance(context.Context, string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.m, h.ended = nil, h.ended+1
	return nil
}

func (h *host) Status() control.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.m == nil {
		return control.Status{}
	}
	m := *h.m
	return control.Status{Maintenance: &m}
}

// runTrigger runs a trigger in virtual time, which begins at midnight of 2000-01-01, a Saturday.
func runTrigger(t *testing.T, h *host, p *files, windows string, during func()) string {
	var log bytes.Buffer
	booted := time.Now().Add(-30 * 24 * time.Hour)
	trigger := &Trigger{
		Host: h, Times: timesOf(t, windows), Indicators: p.indicators, Wall: time.Now,
		Up: func() time.Duration { return time.Since(booted) }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	ctx, cancel := context.WithCancel(t.Context())
	go trigger.Run(ctx)
	h.mu.Lock()
	during()
	h.mu.Unlock()
	cancel()
	synctest.Wait()
	return log.String()
}

func timesOf(t *testing.T, windows ...string) window.Times {
	t.Helper()
	times, err := window.Parse(windows, nil)
	if err != nil {
		t.Fatal(err)
	}
	return times
}

func (h *host) wait(d time.Duration) {
	h.mu.Unlock()
	<-time.After(d)
	synctest.Wait()
	h.mu.Lock()
}

// rebootRequired returns the files of a host whose packages need a reboot, as on Debian.
func rebootRequired(t *testing.T) *files {
	t.Helper()
	p := newFiles(t)
	p.indicators.Query = ""
	p.write("reboot-required", "", 0o644)
	return p
}

func TestRequestThatDoesNotBeginInItsWindowIsCancelled(t *testing.T) {
	t.Parallel()
	p := rebootRequired(t)
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		log := runTrigger(t, h, p, "Sat 02:00-04:00 UTC", func() {
			h.wait(119 * time.Minute)
			if len(h.asked) != 0 {
				t.Error("requested before the window")
			}
			h.wait(2 * time.Minute)
			want := control.MaintenanceRequest{
				Work: policy.WorkReboot, Reason: p.indicators.Sentinel + " exists, so a reboot is required",
				For: control.Duration(alertAfter),
			}
			if len(h.asked) != 1 || h.asked[0] != want || h.m.By != By {
				t.Errorf("requests in the window: %+v", h.asked)
			}
			h.wait(118 * time.Minute)
			if h.ended != 0 {
				t.Error("cancelled too early")
			}
			h.wait(2 * time.Minute)
			if h.ended != 1 || len(h.asked) != 1 {
				t.Errorf("after the window: cancelled %d times, requested %d times", h.ended, len(h.asked))
			}
		})
		if n := strings.Count(log, "\n"); n != 3 && n != 4 {
			t.Errorf("%d lines in four hours:\n%s", n, log)
		}
	})
}

func TestVetoCancelsARequestAndNotAnOperation(t *testing.T) {
	t.Parallel()
	p := rebootRequired(t)
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		runTrigger(t, h, p, "daily 00:00-24:00 UTC", func() {
			h.wait(2 * time.Minute)
			h.m.State = policy.RequestStopping
			p.write("veto.d/backup", "", 0o644)
			h.wait(2 * time.Minute)
			if h.ended != 0 {
				t.Error("an operation that had begun was cancelled")
			}
			h.m.State = policy.RequestWaiting
			h.wait(time.Minute)
			if h.ended != 1 || len(h.asked) != 1 {
				t.Errorf("cancelled %d times, requested %d times", h.ended, len(h.asked))
			}
		})
	})
}

func TestOperatorsRequestIsNotCancelled(t *testing.T) {
	t.Parallel()
	p := rebootRequired(t)
	synctest.Test(t, func(t *testing.T) {
		h := &host{m: &control.Maintenance{By: "root", State: policy.RequestWaiting}}
		runTrigger(t, h, p, "Sun 02:00-04:00 UTC", func() { h.wait(time.Hour) })
		if h.ended != 0 || len(h.asked) != 0 {
			t.Errorf("cancelled %d times, requested %d times", h.ended, len(h.asked))
		}
	})
}

func TestRefusalIsLoggedOnce(t *testing.T) {
	t.Parallel()
	p := rebootRequired(t)
	synctest.Test(t, func(t *testing.T) {
		h := &host{err: errors.New("cannot ask: quorumd only observes")}
		log := runTrigger(t, h, p, "daily 00:00-24:00 UTC", func() { h.wait(time.Hour) })
		if n := strings.Count(log, "only observes"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, log)
		}
	})
}
