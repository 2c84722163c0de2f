// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

const (
	// fioGrace is how long fio may run beyond its time, and also how long it may take to stop after an interrupt.
	fioGrace = 10 * time.Second
	// mostOfFio limits how much of fio's output is read, in bytes.
	mostOfFio = 1 << 20
)

// Fio is the result of fio on the same disk. Times are in seconds.
type Fio struct {
	Version string  `json:"version"`
	Writes  int     `json:"writes"`
	P50     float64 `json:"p50Seconds"`
	P99     float64 `json:"p99Seconds"`
	Max     float64 `json:"maxSeconds"`
	Ratio   float64 `json:"p99Ratio"` // 99th percentile of this benchmark divided by fio's
}

// fioCommand returns the command that etcd's documentation recommends to test a disk, with a time limit.
func fioCommand(path string, length time.Duration) []string {
	return []string{
		"fio", "--name=etcd", "--rw=write", "--ioengine=sync", "--fdatasync=1", "--size=22m", "--bs=2300",
		"--filename=" + strings.ReplaceAll(path, ":", `\:`), "--unlink=1", "--output-format=json",
		fmt.Sprintf("--runtime=%d", int(math.Ceil(length.Seconds()))),
	}
}

// askFio runs fio once and compares its result with the run of one writer.
func (r *Report) askFio(ctx context.Context, length time.Duration) {
	command := fioCommand("FILE", length)
	path, err := exec.LookPath(command[0])
	if err != nil {
		r.find("fio", NotAvailable, "", "it is not installed")
		return
	}
	said, err := inTime(func() ([]byte, error) { return runFio(ctx, path, r.Dir, length, fioGrace) }, length+4*fioGrace)
	if err == nil {
		r.Fio, err = readFio(said)
	}
	if err != nil {
		r.find("fio", Warn, strings.Join(command, " "), "%s failed: %v", path, err)
		return
	}
	if r.Fio.P99 > 0 {
		r.Fio.Ratio = r.Runs[0].P99 / r.Fio.P99
	}
	text := fmt.Sprintf("%s: the 99th percentile of %d writes is %s; this benchmark measured %.2f times that",
		r.Fio.Version, r.Fio.Writes, show(r.Fio.P99), r.Fio.Ratio)
	if (r.Fio.P99 > r.Limit) != (r.Runs[0].P99 > r.Limit) {
		r.find("fio", Warn, "examine the machine again while it is idle, with a longer --duration",
			"%s, so the two results are on different sides of the limit", text)
		return
	}
	r.find("fio", Pass, "", "%s", text)
}

// place is the file that fio writes, and the user that it runs as.
type place struct {
	file, dir string // dir is created for fio; empty if not needed
	as        *syscall.Credential
}

// fioPlace returns a file that no other user can replace with a symbolic link to one of root's files. If root runs the
// benchmark in another user's directory, fio runs as that user. Otherwise it writes to a new directory of this user.
func fioPlace(dir string) (place, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return place{}, err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 && owner.Uid != 0 {
		file := filepath.Join(dir, fmt.Sprintf(".quorumctl-qualify-%d-fio", os.Getpid()))
		return place{file: file, as: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}, nil
	}
	own, err := os.MkdirTemp(dir, ".quorumctl-qualify-fio-")
	return place{file: filepath.Join(own, "file"), dir: own}, err
}

// remove deletes the file, which remains if fio was killed, and the directory.
func (p place) remove() {
	os.Remove(p.file)
	if p.dir != "" {
		os.Remove(p.dir)
	}
}

// inTime returns the result of run, but waits no longer than bound, because run waits for a process that cannot be
// killed while it waits for a disk.
func inTime(run func() ([]byte, error), bound time.Duration) ([]byte, error) {
	type end struct {
		said []byte
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		said, err := run()
		ended <- end{said, err}
	}()
	late := time.NewTimer(bound)
	defer late.Stop()
	select {
	case e := <-ended:
		return e.said, e.err
	case <-late.C:
		return nil, fmt.Errorf("it was killed but did not end within %s, because it waits for the disk; it ends "+
			"when the disk answers", durationfmt.Text(bound))
	}
}

// runFio runs fio in a directory and returns its output. It interrupts fio after length+grace or when ctx ends, and
// kills it if it still runs after another grace. It signals the process group, because fio works in child processes.
func runFio(ctx context.Context, path, dir string, length, grace time.Duration) ([]byte, error) {
	at, err := fioPlace(dir)
	if err != nil {
		return nil, err
	}
	defer at.remove()
	ctx, cancel := context.WithTimeout(ctx, length+grace)
	defer cancel()
	cmd := exec.Command(path, fioCommand(at.file, length)[1:]...)
	cmd.Dir, cmd.WaitDelay = "/", grace
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	// a process group of its own, so that Ctrl-C does not reach fio twice
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: at.as}
	var said, complaint bounded
	cmd.Stdout, cmd.Stderr = &said, &complaint
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = cmd.Wait()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		group := -cmd.Process.Pid
		_ = syscall.Kill(group, syscall.SIGINT) // the group may be gone already
		select {
		case <-ended:
		case <-time.After(grace):
			_ = syscall.Kill(group, syscall.SIGKILL)
			<-ended
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("it did not end within %s", durationfmt.Text(length+grace))
	}
	if first, _, _ := strings.Cut(complaint.String(), "\n"); err != nil && first != "" {
		return nil, fmt.Errorf("%w: %s", err, first)
	}
	return said.Bytes(), err
}

// bounded keeps the beginning of its input.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), mostOfFio-b.Len())])
	return len(p), nil
}

// readFio parses the fdatasync latencies. fio may print lines before its JSON document.
func readFio(said []byte) (*Fio, error) {
	var doc struct {
		Version string `json:"fio version"`
		Jobs    []struct {
			Sync struct {
				Latency struct {
					N          int                `json:"N"`
					Max        float64            `json:"max"`
					Percentile map[string]float64 `json:"percentile"`
				} `json:"lat_ns"`
			} `json:"sync"`
		} `json:"jobs"`
	}
	if begin := bytes.IndexByte(said, '{'); begin > 0 {
		said = said[begin:]
	}
	if err := json.Unmarshal(said, &doc); err != nil {
		return nil, fmt.Errorf("cannot parse its output: %w", err)
	}
	if len(doc.Jobs) != 1 {
		return nil, errors.New("cannot parse its output: it did not run exactly one job")
	}
	took := doc.Jobs[0].Sync.Latency
	f := &Fio{
		Version: doc.Version, Writes: took.N, Max: took.Max / 1e9,
		P50: took.Percentile["50.000000"] / 1e9, P99: took.Percentile["99.000000"] / 1e9,
	}
	if f.Writes <= 0 || !(f.P50 > 0 && f.P50 <= f.P99 && f.P99 <= 2*f.Max) {
		return nil, errors.New("it reports no fdatasync latencies")
	}
	return f, nil
}
