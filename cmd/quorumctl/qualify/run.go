// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/disk"
)

const (
	// look is the interval at which the children's results are read. The memory that each child shares has room for
	// 4096 writes.
	look = 10 * time.Millisecond
	// firstWrite is how long to wait until each writer has written once. After this time, the run starts even if some
	// have not written yet.
	firstWrite = 5 * time.Second
	// longestWait is the duration of a write that ends the run, because the disk hangs.
	longestWait = 10 * time.Second
	// mostWrites is the number of writes that ends a run early: more of them would not change the result.
	mostWrites = 1 << 20
)

// Run is the result of a run with this number of concurrent writers. Times are in seconds.
type Run struct {
	Writers int `json:"writers"`
	// Writes is the number of writes that count. LeftOut writes are not evidence about the disk, because of CPU
	// starvation. Lost writes came too fast to be recorded one by one. Hung writes were still in flight at the end,
	// already for longer than Limit and than the 99th percentile of the others; Writes includes them, with the time
	// that they had taken so far.
	Writes  int     `json:"writes"`
	LeftOut int     `json:"leftOut"`
	Lost    int     `json:"lost"`
	Hung    int     `json:"hung"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"perSecond"`
	P50     float64 `json:"p50Seconds"`
	P90     float64 `json:"p90Seconds"`
	P99     float64 `json:"p99Seconds"`
	// P99Low and P99High are the 95 % confidence interval of the 99th percentile. P99High is absent if there were too
	// few writes for an upper end.
	P99Low       float64 `json:"p99LowSeconds"`
	P99High      float64 `json:"p99HighSeconds,omitempty"`
	P999         float64 `json:"p999Seconds"`
	Max          float64 `json:"maxSeconds"`
	Distribution []Bin   `json:"distribution"`

	device uint64 // device number of the directory, 0 if unknown
}

// writers are the concurrent child processes, each with its own files.
type writers struct {
	probes []*disk.Probe
	dirs   []string

	begun, end time.Duration
	first      []bool // whether each child has written
	latencies  []time.Duration
	run        Run
}

// write runs n children that write to the directory, and removes their files. left are the directories that it could
// not remove.
func write(ctx context.Context, o Options, n int, said func(took time.Duration, text string)) (run Run,
	left []string, err error,
) {
	w := &writers{first: make([]bool, n), run: Run{Writers: n}}
	defer func() { left = w.close() }()
	for i := range n {
		dir := filepath.Join(o.Dir, fmt.Sprintf(".quorumctl-qualify-%d-%d", os.Getpid(), i))
		probe, err := disk.StartProbe(disk.Options{Command: o.Child, Dir: dir, Target: o.Dir, Exam: true})
		if err != nil {
			return w.run, nil, cannot("check the memory and process limits", "examine the disk: %v", err)
		}
		w.probes, w.dirs = append(w.probes, probe), append(w.dirs, dir)
	}
	if err := w.measure(ctx, o.For, said); err != nil {
		return w.run, nil, err
	}
	w.conclude()
	return w.run, nil, nil
}

// measure collects writes until the run's time has passed, there are mostWrites, or a write hangs.
func (w *writers) measure(ctx context.Context, length time.Duration,
	said func(took time.Duration, text string),
) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	started := disk.Monotonic()
	for {
		select {
		case <-ctx.Done():
			return cannot("", "finish the benchmark: it was interrupted")
		case <-tick.C:
		}
		now, hangs := disk.Monotonic(), time.Duration(0)
		for i, p := range w.probes {
			r := p.Read()
			if err := w.take(i, r); err != nil {
				return err
			}
			hangs = max(hangs, r.InFlightAge)
		}
		if w.begun == 0 && (w.all() || now-started > firstWrite) {
			w.begun = now
			w.latencies = w.latencies[:0]
			w.run.LeftOut, w.run.Lost = 0, 0
		}
		if w.begun == 0 {
			continue
		}
		w.end = now
		took := now - w.begun
		// On a busy machine, the last read may be late, so took can exceed length.
		said(took, fmt.Sprintf("%.0f s of %.0f s, %d writes", min(took, length).Seconds(), length.Seconds(),
			len(w.latencies)))
		if took >= length || len(w.latencies) >= mostWrites || hangs > longestWait {
			return nil
		}
	}
}

// all reports whether every child has written.
func (w *writers) all() bool {
	for _, first := range w.first {
		if !first {
			return false
		}
	}
	return true
}

// take records the writes of one child since the last read.
func (w *writers) take(i int, r disk.Reading) error {
	switch {
	case r.Failure != nil:
		return failed(r.Failure)
	case !r.Alive:
		return cannot("check the kernel log for the reason", "examine the disk: the writing child process died")
	}
	w.run.device = r.Device
	w.run.Lost += int(r.Lost)
	for _, s := range r.Samples {
		w.first[i] = true
		switch {
		case s.Contaminated:
			w.run.LeftOut++
		default:
			w.latencies = append(w.latencies, s.Latency)
		}
	}
	return nil
}

// failed returns the error for a failure of the disk or its path.
func failed(f *disk.Failure) error {
	remedy := f.Remedy()
	if f.Errno == syscall.EACCES || f.Errno == syscall.EPERM {
		remedy = "run this command as etcd's user or as root"
	}
	if f.Errno == syscall.EEXIST {
		remedy = "remove " + f.Dir + ", and find out what created it"
	}
	return cannot(remedy, "write in %s: %s: %s", f.Target, f.Op, f.Cause())
}

// conclude computes the result. A write in flight counts with its age, but only if its age exceeds Limit and the 99th
// percentile of the others. Otherwise the writes in flight at the end would add short latencies to every run.
func (w *writers) conclude() {
	usual := sorted(w.latencies).at(0.99)
	for _, p := range w.probes {
		if age, _ := p.InFlight(); age > max(usual, Limit) {
			w.latencies = append(w.latencies, age)
			w.run.Hung++
		}
	}
	s := sorted(w.latencies)
	low, high := s.within(0.99)
	r := &w.run
	r.Writes, r.Seconds = len(s), (w.end - w.begun).Seconds()
	if r.Seconds > 0 {
		r.Rate = float64(r.Writes+r.LeftOut+r.Lost-r.Hung) / r.Seconds
	}
	r.P50, r.P90, r.P99 = s.at(0.5).Seconds(), s.at(0.9).Seconds(), s.at(0.99).Seconds()
	r.P999, r.Max = s.at(0.999).Seconds(), s.at(1).Seconds()
	r.P99Low, r.P99High = low.Seconds(), high.Seconds()
	r.Distribution = s.bins()
}

// close stops the children in parallel and returns the directories that it could not remove.
func (w *writers) close() (left []string) {
	var wait sync.WaitGroup
	for _, p := range w.probes {
		wait.Go(p.Close)
	}
	wait.Wait()
	for i, p := range w.probes {
		if !p.Tidy() {
			left = append(left, w.dirs[i])
		}
	}
	return left
}
