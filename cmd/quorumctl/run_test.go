// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/control"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden files")
	goleak.VerifyTestMain(m)
}

// desk is a backend whose status is a scene of testdata.
type desk struct {
	mu     sync.Mutex
	status control.Status
	looks  int
	onLook func(look int, s *control.Status) // called with the number of the look
	fail   error                             // of everything but the status
	lines  []control.HistoryLine
}

func (d *desk) Status() control.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	if d.onLook != nil {
		d.onLook(d.looks, &d.status)
	}
	return d.status
}

func (d *desk) History(_ context.Context, limit int) ([]control.HistoryLine, error) {
	return d.lines[max(0, len(d.lines)-limit):], d.fail
}

func (d *desk) Bootstrap(context.Context, string) error { return d.fail }

func (d *desk) Pause(_ context.Context, req control.PauseRequest, _ string) (control.Pause, error) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	return control.Pause{By: "root", Reason: req.Reason, Since: at, Until: at.Add(req.For)}, d.fail
}

func (d *desk) Resume(context.Context, string) error { return d.fail }

func (d *desk) ReleaseOp(context.Context, control.ReleaseRequest, string) error { return d.fail }

// scene reads a status from testdata.
func scene(t *testing.T, name string) *desk {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	d := &desk{}
	if err := dec.Decode(&d.status); err != nil {
		t.Fatal(err)
	}
	return d
}

// scenes names the statuses in testdata.
func scenes() []string {
	return []string{"steady", "slow", "joining", "etcd-down", "fresh", "starting", "paused", "hostile"}
}

// folder is a short path: a socket's has a bound.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "q")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// serving runs a real server for a backend until the test ends, or until stop is called.
func serving(t *testing.T, d *desk) (socket string, stop func()) {
	t.Helper()
	socket = filepath.Join(folder(t), "s")
	s := control.NewServer(control.Options{Socket: socket, Backend: d})
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

// result is how a command went.
type result struct {
	code   int
	stdout string
	stderr string
}

// quorumctl runs a command line.
func quorumctl(t *testing.T, socket string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), append([]string{"--socket", socket}, args...), &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

// transcript shows commands and what they gave, as on a terminal.
func transcript(t *testing.T, socket string, lines ...string) []byte {
	t.Helper()
	var b strings.Builder
	for _, line := range lines {
		r := quorumctl(t, socket, words(line)...)
		fmt.Fprintf(&b, "$ quorumctl %s\n%s%s", line, r.stdout, strings.ReplaceAll(r.stderr, socket, "SOCKET"))
		if r.code != 0 {
			fmt.Fprintf(&b, "(exit %d)\n", r.code)
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// words splits a command line at blanks, outside of single quotes.
func words(line string) []string {
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

// golden compares with a file in testdata, or rewrites it with -update.
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
