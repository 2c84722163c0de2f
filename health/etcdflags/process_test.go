// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcdflags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// process describes a process 42 that runs etcd. It was started at Unix time 1000.
type process struct {
	args, environ, file []string
	unreadable, changed bool // its environment cannot be read; the file was changed after its start
}

func (p process) maxLearners(t *testing.T) (int, error) {
	t.Helper()
	return p.reader(t).MaxLearners(42)
}

// reader returns a reader of that process.
func (p process) reader(t *testing.T) Reader {
	t.Helper()
	proc := t.TempDir()
	dir, file := filepath.Join(proc, "42"), filepath.Join(proc, "etcd.env")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	line := append([]string{"/usr/bin/etcd"}, p.args...)
	write(filepath.Join(dir, "cmdline"), strings.Join(line, "\x00")+"\x00")
	write(filepath.Join(dir, "stat"), "42 (etcd) S 1 42 42 0 -1 0"+strings.Repeat(" 0", 8)+" 20 0 9 0 100000"+
		strings.Repeat(" 0", 30))
	write(filepath.Join(proc, "stat"), "btime 0\n")
	write(file, strings.Join(p.file, "\n"))
	at := time.Unix(999, 0)
	if p.changed {
		at = time.Unix(1002, 0)
	}
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
	r := Reader{Proc: proc, EnvironmentFile: file, Program: "/opt/bin/etcd"}
	if !p.unreadable {
		write(filepath.Join(dir, "environ"), strings.Join(p.environ, "\x00")+"\x00")
		return r
	}
	r.Environ = func(int) ([]string, error) { return nil, os.ErrPermission }
	return r
}

func TestMaxLearnersIsThatOfTheRunningProcess(t *testing.T) {
	t.Parallel()
	two := []string{"PATH=/bin", "ETCD_MAX_LEARNERS=2"}
	for name, c := range map[string]struct {
		process
		want int
	}{
		"nothing is set":            {process{}, 1},
		"a flag":                    {process{args: []string{"--max-learners=3"}, environ: two}, 3},
		"a flag and its value":      {process{args: []string{"-max-learners", "3"}}, 3},
		"a variable":                {process{environ: two}, 2},
		"the file changed since":    {process{environ: two, file: []string{"ETCD_MAX_LEARNERS=5"}, changed: true}, 2},
		"not a number":              {process{environ: []string{"ETCD_MAX_LEARNERS=many"}}, 0},
		"none":                      {process{args: []string{"--max-learners=0"}}, 0},
		"a config file":             {process{args: []string{"--config-file=/etc/etcd.yaml"}, environ: two}, 0},
		"a config file, a variable": {process{environ: []string{"ETCD_CONFIG_FILE=/etc/etcd.yaml"}}, 0},
		"a file":                    {process{unreadable: true, file: two}, 2},
		"a file without it":         {process{unreadable: true}, 0}, // /etc/default/etcd may set it
		"a flag beats the file":     {process{unreadable: true, args: []string{"--max-learners=3"}, file: two}, 3},
		"a file changed since":      {process{unreadable: true, file: two, changed: true}, 0},
		"the first of two entries":  {process{environ: []string{"ETCD_MAX_LEARNERS=2", "ETCD_MAX_LEARNERS=3"}}, 2},
	} {
		got, err := c.maxLearners(t)
		if got != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

func TestMaxLearnersOfAnotherProgramIsUnknown(t *testing.T) {
	t.Parallel()
	r := Reader{Program: "/usr/bin/etcd"}
	for what, pid := range map[string]int{"this test": os.Getpid(), "none": 0} {
		if got, err := r.MaxLearners(pid); got != 0 || err == nil {
			t.Errorf("%s: %d, %v", what, got, err)
		}
	}
}

func TestPeerFilesAreThoseOfTheRunningProcess(t *testing.T) {
	t.Parallel()
	vars := []string{"ETCD_PEER_CERT_FILE=/c", "ETCD_PEER_KEY_FILE=/k", "ETCD_PEER_TRUSTED_CA_FILE=/ca"}
	for name, c := range map[string]struct {
		process
		want  [3]string
		fails bool
	}{
		"nothing is set": {process: process{}},
		"variables":      {process: process{environ: vars}, want: [3]string{"/c", "/k", "/ca"}},
		"a flag beats one": {
			process{args: []string{"--peer-key-file=/f"}, environ: vars}, [3]string{"/c", "/f", "/ca"}, false,
		},
		"the file":             {process: process{unreadable: true, file: vars}, want: [3]string{"/c", "/k", "/ca"}},
		"the file has none":    {process: process{unreadable: true}},
		"the file is newer":    {process: process{unreadable: true, file: vars, changed: true}, fails: true},
		"the process is older": {process: process{file: vars, changed: true}},
		"a config file":        {process: process{args: []string{"--config-file=/x"}, environ: vars}, fails: true},
	} {
		r := c.reader(t)
		got, err := r.PeerFiles(42)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestNextMaxLearnersIsThatOfTheEnvironmentFileAsItIsNow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		process process
		want    int
	}{
		"the file was lowered since": {
			process{environ: []string{"ETCD_MAX_LEARNERS=3"}, file: []string{"ETCD_MAX_LEARNERS=1"}, changed: true}, 1,
		},
		"the flag counts first": {
			process{args: []string{"--max-learners=2"}, file: []string{"ETCD_MAX_LEARNERS=1"}}, 2,
		},
		"neither is set":     {process{file: []string{"ETCD_NAME=n1"}}, 0},
		"it is not a number": {process{file: []string{"ETCD_MAX_LEARNERS=many"}}, 0},
		"a config file":      {process{args: []string{"--config-file=/x"}, file: []string{"ETCD_MAX_LEARNERS=1"}}, 0},
		"the file is too large": {
			process{file: []string{"ETCD_MAX_LEARNERS=1", "# " + strings.Repeat("x", mostEnvironment)}}, 0,
		},
	} {
		r := c.process.reader(t)
		got, from, err := r.NextMaxLearners(42)
		want := ""
		switch {
		case c.want == 2:
			want = "etcd's unit"
		case c.want > 0:
			want = r.EnvironmentFile
		}
		if got != c.want || from != want {
			t.Errorf("%s: %d from %q, %v; want %d from %q", name, got, from, err, c.want, want)
		}
	}
}
