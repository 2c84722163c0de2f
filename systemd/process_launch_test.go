// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestTheEnvironmentReachesTheProcess(t *testing.T) {
	t.Parallel()
	o := options(t, "environment")
	o.Env = append(o.Env, "BASE=base", "BOTH=base", "NOTIFY_SOCKET=/run/agents/own", "WATCHDOG_USEC=1",
		"JOURNAL_STREAM=1:2")
	p := open(t, o)
	vars := map[string]string{"BOTH": "file", "ODD": ` "a" \b\ $c '` + "`d`\tè ", "EMPTY": ""}
	if err := p.SetEnvironment(t.Context(), vars); err != nil {
		t.Fatal(err)
	}
	start(t, p)
	log := readLog(t, o)
	for _, want := range []string{"BASE=base", "BOTH=file", "ODD=" + vars["ODD"], "EMPTY="} {
		if !strings.Contains(log, strconv.Quote(want)+"\n") {
			t.Errorf("%q is missing", want)
		}
	}
	for _, not := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "JOURNAL_STREAM", "BOTH=base"} {
		if strings.Contains(log, `"`+not) {
			t.Errorf("%s is there", not)
		}
	}
	got, err := open(t, o).Environment(t.Context())
	if err != nil || len(got) != 3 || got["ODD"] != vars["ODD"] {
		t.Errorf("read back: %q, %v", got, err)
	}
	if err := p.SetEnvironment(t.Context(), map[string]string{"A": "two\nlines"}); err == nil {
		t.Error("a line break was accepted")
	}
}

func TestAFailedStartHasAReason(t *testing.T) {
	t.Parallel()
	file := func(t *testing.T, text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name  string
		spoil func(*testing.T, *ProcessOptions)
		is    error
		says  string
	}{
		{"missing", func(_ *testing.T, o *ProcessOptions) {
			o.Argv = []string{"/no/such/program"}
		}, ErrNotInstalled, "install it"},
		{"not in PATH", func(_ *testing.T, o *ProcessOptions) {
			o.Argv = []string{"no-such-program"}
		}, ErrNotInstalled, "install it"},
		{"not executable", func(t *testing.T, o *ProcessOptions) {
			o.Argv = []string{file(t, "#!/bin/sh\n", 0o644)}
		}, ErrNotPermitted, "chmod +x"},
		{"no program", func(t *testing.T, o *ProcessOptions) {
			o.Argv = []string{file(t, "\x00", 0o755)}
		}, nil, "a program for this machine"},
		{"no log directory", func(_ *testing.T, o *ProcessOptions) {
			o.LogFile = "/no/such/directory/log"
		}, os.ErrNotExist, "check that the directory exists"},
		{"log is a directory", func(t *testing.T, o *ProcessOptions) {
			o.LogFile = t.TempDir()
		}, nil, "open the log file"},
		{"broken environment file", func(t *testing.T, o *ProcessOptions) {
			if err := errors.Join(os.MkdirAll(o.Dir, 0o755),
				os.WriteFile(filepath.Join(o.Dir, "child.env"), []byte("A=\xff"), 0o644)); err != nil {
				t.Fatal(err)
			}
		}, nil, "UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := options(t, "sleeper")
			c.spoil(t, &o)
			p := open(t, o)
			err := p.Start(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), "cannot start child: ") ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v", err)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v does not wrap %v", err, c.is)
			}
			if st := status(t, p); st.State != Failed || st.Result != "resources" || st.LastJob != "failed" ||
				st.PID != 0 {
				t.Errorf("%+v", st)
			}
			if st := status(t, p); st.Installed() != (o.Argv[0] == options(t, "").Argv[0] || c.name == "no program") {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestALargeLogIsRotatedAtTheStart(t *testing.T) {
	t.Parallel()
	o := options(t, "sleeper")
	if err := errors.Join(os.WriteFile(o.LogFile, []byte("old"), 0o640), os.Truncate(o.LogFile, maxLog+1)); err != nil {
		t.Fatal(err)
	}
	start(t, open(t, o))
	if got := readLog(t, o); got != "ready\n" {
		t.Errorf("the new log has %d bytes", len(got))
	}
	if info, err := os.Stat(o.LogFile + ".1"); err != nil || info.Size() != maxLog+1 {
		t.Errorf("the old log: %v, %v", info, err)
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*ProcessOptions){
		"empty name":     func(o *ProcessOptions) { o.Name = "" },
		"path as name":   func(o *ProcessOptions) { o.Name = "../child" },
		"hidden name":    func(o *ProcessOptions) { o.Name = ".child" },
		"no program":     func(o *ProcessOptions) { o.Argv = nil },
		"relative dir":   func(o *ProcessOptions) { o.Dir = "run" },
		"relative log":   func(o *ProcessOptions) { o.LogFile = "log" },
		"negative time":  func(o *ProcessOptions) { o.StopTimeout = -1 },
		"dir is a file":  func(o *ProcessOptions) { o.Dir = "/proc/self/exe" },
		"impossible dir": func(o *ProcessOptions) { o.Dir = "/proc/none" },
	} {
		o := options(t, "sleeper")
		spoil(&o)
		if p, err := NewProcess(o); err == nil || !strings.HasPrefix(err.Error(), "cannot ") {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}
