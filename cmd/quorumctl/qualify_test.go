// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/cmd/quorumctl/qualify"
)

// fullReport returns a report with every field.
func fullReport(t *testing.T) qualify.Report {
	t.Helper()
	b, err := os.ReadFile("testdata/qualify.json")
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var r qualify.Report
	if err := dec.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestQualifyReport(t *testing.T) {
	t.Parallel()
	var all bytes.Buffer
	for _, p := range []*page{{}, {blocks: true, coloured: true}} {
		writeReport(p, fullReport(t))
		all.WriteString(p.String())
		for line := range strings.Lines(p.String()) {
			if width(strings.TrimSuffix(line, "\n")) > columns {
				t.Errorf("%d columns: %s", width(line), line)
			}
		}
	}
	golden(t, "qualify.golden", all.Bytes())
}

func TestQualifyDocumentIsStable(t *testing.T) {
	t.Parallel()
	b, err := asJSON(fullReport(t))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/qualify.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, want) {
		t.Errorf("the document is\n%s", b)
	}
}

func TestQualifyThisMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := quorumctl(t, "none", "qualify", dir, "--duration", "1s", "--writers", "2", "-o", "json")
	var doc qualify.Report
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil {
		t.Fatalf("%v: exit %d: %s%s", err, r.code, r.stdout, r.stderr)
	}
	codes := map[qualify.Result]int{qualify.Pass: 0, qualify.Fail: exitUnfit, qualify.Undecided: exitUndecided}
	code, known := codes[doc.Result]
	if !known || r.code != code || r.stderr != "" || doc.Dir != dir || len(doc.Runs) != 2 || doc.Runs[1].Writers != 2 {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	checkEmpty(t, dir)
}

func TestQualifyUsesTheParentOfAMissingDirectory(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	dir := filepath.Join(above, "etcd", "default")
	r := quorumctl(t, "none", "qualify", dir, "--duration", "1s", "--writers", "1", "-o", "json")
	var doc qualify.Report
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil {
		t.Fatalf("%v: exit %d: %s%s", err, r.code, r.stdout, r.stderr)
	}
	first := doc.Findings[0]
	if doc.Dir != above || len(doc.Runs) != 1 || doc.Runs[0].Writes == 0 || first.Result != qualify.Warn ||
		first.Text != dir+" does not exist; measured the disk of "+above+" instead" {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	checkEmpty(t, above)
}

// TestQualifyWithFio runs the command of the documentation for a shorter time. The report must contain a result of fio
// if, and only if, fio is installed.
func TestQualifyWithFio(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	peer, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	r := quorumctl(t, "none", "qualify", dir, "--fio", "--writers", "1,4,16", "--peer", peer.Addr().String(),
		"--duration", "1s", "-o", "json")
	var doc qualify.Report
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil {
		t.Fatalf("%v: exit %d: %s%s", err, r.code, r.stdout, r.stderr)
	}
	var writers []int
	for _, run := range doc.Runs {
		writers = append(writers, run.Writers)
	}
	if !slices.Equal(writers, []int{1, 4, 16}) || len(doc.Peers) != 1 {
		t.Errorf("exit %d: runs of %v writers: %s%s", r.code, writers, r.stdout, r.stderr)
	}
	_, err = exec.LookPath("fio")
	if compared := doc.Fio != nil; compared != (err == nil) {
		t.Errorf("compared with fio: %v, and looking for it: %v\n%s", compared, err, r.stdout)
	}
	checkEmpty(t, dir)
}

func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

func TestQualifyMistakes(t *testing.T) {
	t.Parallel()
	got := transcript(t, "none", "qualify /dev/null/etcd", "qualify a b", "qualify --writers 0", "qualify --writers 65",
		"qualify --writers one", "qualify --writers ''", "qualify --duration 1ms", "qualify --duration 2h",
		"qualify --duration soon", "qualify --peer n1", "qualify --peer http://n1:2380")
	golden(t, "qualify-mistakes.golden", got)
}

// TestInterruptedQualifyLeavesNoFiles stops a running benchmark in three ways.
func TestInterruptedQualifyLeavesNoFiles(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			var output bytes.Buffer
			cmd := exec.CommandContext(t.Context(), self, "qualify", dir, "--duration", "1h")
			cmd.Env = append(os.Environ(), "QUORUMCTL_TEST_MAIN=1")
			cmd.Stderr = &output
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			entries := func() int {
				list, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				return len(list)
			}
			eventually(t, "a file of its", func() bool { return entries() > 0 })
			_ = cmd.Process.Signal(signal)
			_ = cmd.Wait()
			want := "quorumctl: cannot finish the benchmark: it was interrupted\n"
			if signal == syscall.SIGKILL { // the child removes the files
				want = ""
				eventually(t, "an empty directory", func() bool { return entries() == 0 })
			} else if code := cmd.ProcessState.ExitCode(); code != exitUndecided {
				t.Errorf("exit %d", code)
			}
			if output.String() != want {
				t.Errorf("stderr is %q", &output)
			}
			checkEmpty(t, dir)
		})
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
