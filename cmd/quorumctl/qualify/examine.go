// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package qualify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/disk/blockdevice"
)

// Limit is the limit for the 99th percentile of one writer's fdatasync: etcd's guidance for its write-ahead log.
const Limit = 10 * time.Millisecond

// The limits of a benchmark. Each writer is a process.
const (
	MostWriters = 64
	ShortestRun = time.Second
	LongestRun  = time.Hour
)

// Options describe a benchmark. Child, Dir and For are required.
type Options struct {
	// Child is the command line of package disk's child process, such as {"/proc/self/exe", "probe-disk"}.
	Child []string
	// Dir is the directory to write to: an absolute path on etcd's future disk.
	Dir string
	// Writers are the numbers of concurrent writers, one run each. The first run always has one writer, and it alone
	// decides whether the disk passes.
	Writers []int
	// NextToEtcd allows runs with several writers even if an etcd has files on the same disk.
	NextToEtcd bool
	// Peers are the addresses (HOST:PORT) of other current or future members, to test the network.
	Peers []string
	// Fio also runs fio, if it is installed, and compares the results.
	Fio bool
	// For is the length of each run.
	For time.Duration
	// Said receives the progress, many times per second; it may be nil.
	Said func(Stage)
}

// Stage describes the progress of a benchmark: the current step, its progress, and about how much time is left.
type Stage struct {
	What, Text string
	Left       time.Duration
}

// Check returns an error if the options are invalid.
func (o Options) Check() error {
	for _, n := range o.Writers {
		if n < 1 || n > MostWriters {
			return fmt.Errorf("%d writers are out of range; use 1 to %d", n, MostWriters)
		}
	}
	if len(o.Peers) > MostPeers {
		return fmt.Errorf("%d peers are too many; name up to %d", len(o.Peers), MostPeers)
	}
	for _, address := range o.Peers {
		if err := CheckPeer(address); err != nil {
			return err
		}
	}
	if o.For < ShortestRun || o.For > LongestRun {
		return fmt.Errorf("a run of %s is out of range; use %s to %s", durationfmt.Text(o.For),
			durationfmt.Text(ShortestRun), durationfmt.Text(LongestRun))
	}
	return nil
}

// Examine benchmarks the machine. Its errors are [Error] values.
func Examine(ctx context.Context, o Options) (Report, error) {
	wanted := o.Dir
	o.Dir = existing(o.Dir)
	r := Report{Dir: o.Dir, Limit: Limit.Seconds(), Runs: []Run{}, Findings: []Finding{}}
	if o.Dir != wanted {
		r.find("directory", Warn, "if etcd gets a disk of its own, mount it at "+wanted+", then run this command again",
			"%s does not exist; measured the disk of %s instead", wanted, o.Dir)
	}
	if err := safeFor(os.Geteuid(), o.Dir); err != nil {
		return r, err
	}
	runs := slices.Compact(slices.Sorted(slices.Values(append([]int{1}, o.Writers...))))
	for i, n := range runs {
		run, left, err := write(ctx, o, n, func(took time.Duration, text string) {
			o.say(plural(n), text, o.rest(len(runs)-i, n == 1)-took)
		})
		if err != nil {
			return r, leaving(err, left)
		}
		r.Runs = append(r.Runs, run)
		r.Device = deviceName(r.Runs[0].device)
		if len(left) > 0 {
			r.find("files", Warn, "when the disk answers again: rm -r "+strings.Join(left, " "),
				"the written files could not be removed, because the disk hangs")
			break // the next run would hang, too
		}
		if n == 1 && o.Fio {
			o.say("fio", "it runs for up to "+durationfmt.Text(o.For), o.rest(len(runs)-i, false))
			r.askFio(ctx, o.For)
		}
		if n == 1 && r.findNeighbours(o.NextToEtcd) && !o.NextToEtcd {
			break
		}
	}
	r.judgeRuns()
	if len(o.Peers) > 0 {
		r.testPeers(ctx, o.Peers)
	}
	if ctx.Err() != nil {
		return r, cannot("", "finish the benchmark: it was interrupted")
	}
	r.judgeMachine(thisKernel())
	r.Result = r.sum()
	return r, nil
}

// rest returns the time that this number of runs takes, plus fio if it has not run yet.
func (o Options) rest(runs int, fio bool) time.Duration {
	if fio && o.Fio {
		runs++
	}
	return time.Duration(runs) * o.For
}

func (o Options) say(what, text string, left time.Duration) {
	if o.Said != nil {
		o.Said(Stage{What: what, Text: text, Left: max(left, 0)})
	}
}

// existing returns the directory or its nearest existing parent. The directory may be missing before etcd is installed.
func existing(dir string) string {
	for dir != "/" {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// safeFor refuses a directory of root in which other users may rename entries, if root runs the benchmark: they could
// redirect root's writes with a symbolic link. In another user's directory, the children write as that user.
func safeFor(user int, dir string) error {
	info, err := os.Stat(dir)
	if user != 0 || err != nil { // the first write reports the error
		return nil //nolint:nilerr // see above
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if known && owner.Uid == 0 && othersMayRename(info.Mode()) {
		return cannot("let only root write to it (chmod go-w "+dir+"), or run this as another user",
			"examine %s as root: other users can write to it (mode %04o), and could redirect root's writes", dir,
			info.Mode().Perm())
	}
	return nil
}

// othersMayRename reports whether users who do not own a directory may rename its entries.
func othersMayRename(mode fs.FileMode) bool { return mode.Perm()&0o022 != 0 && mode&fs.ModeSticky == 0 }

// leaving adds the directories that could not be removed to an error's remedy.
func leaving(err error, left []string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || len(left) == 0 {
		return err
	}
	remedy := "remove the remaining files: rm -r " + strings.Join(left, " ")
	if e.Remedy != "" {
		remedy = e.Remedy + "; then " + remedy
	}
	return &Error{Message: e.Message, Remedy: remedy}
}

func plural(n int) string {
	if n == 1 {
		return "1 writer"
	}
	return fmt.Sprintf("%d writers", n)
}

// findNeighbours reports whether an etcd writes to the same disk, and adds a finding about it.
func (r *Report) findNeighbours(nextToEtcd bool) bool {
	found := usualSearch().etcdOn(r.Runs[0].device)
	r.Neighbour = found.pid
	switch {
	case r.Neighbour != 0:
		only := ""
		if !nextToEtcd {
			only = "; only one writer was measured (--writers measures several)"
		}
		r.find("neighbours", Warn, "examine a disk before etcd runs on it, or stop etcd",
			"etcd, process %d, writes to the same disk, so etcd and this benchmark delay each other%s", r.Neighbour,
			only)
	case found.hidden != 0:
		r.find("neighbours", Warn, "run quorumctl qualify as root",
			"etcd, process %d, is running; this user cannot see whether it writes to the same disk", found.hidden)
	case found.cut != "":
		r.find("neighbours", NotAvailable, "", "cannot see whether an etcd writes to the same disk: %s", found.cut)
	}
	return r.Neighbour != 0
}

// deviceName returns the name of the whole disk that contains the device with this number, or "" if it is no block
// device. It reads only sysfs.
func deviceName(number uint64) string {
	devices, err := blockdevice.New("", "")
	if err != nil {
		return ""
	}
	progress, err := devices.Progress(number)
	if err != nil {
		return ""
	}
	return progress.Name
}

// judgeRuns compares the latencies of one and of several writers with etcd's guidance, and reports CPU starvation.
func (r *Report) judgeRuns() {
	const (
		other  = "use a different disk: an SSD with power-loss protection that nothing else writes to"
		longer = "measure longer, with --duration"
	)
	one := r.Runs[0]
	figure := fmt.Sprintf("the 99th percentile of %d writes is %s", one.Writes, show(one.P99))
	limit := show(r.Limit)
	switch between := fmt.Sprintf("%s to %s with 95 %% confidence", show(one.P99Low), show(one.P99High)); {
	case one.Hung > 0 && one.Max > 1:
		r.find("fsync", Fail, other, "a write had not completed after %s", show(one.Max))
	case one.P99Low > r.Limit:
		r.find("fsync", Fail, other, "%s, and with 95 %% confidence more than %s; limit %s", figure,
			show(one.P99Low), limit)
	case one.P99High == 0:
		r.find("fsync", Undecided, longer, "%s, but these are too few writes for a result; limit %s", figure, limit)
	case one.P99High > r.Limit:
		r.find("fsync", Undecided, longer, "%s (%s), too close to the limit of %s to tell", figure, between, limit)
	default:
		r.find("fsync", Pass, "", "%s (%s), limit %s", figure, between, limit)
	}
	for _, run := range r.Runs[1:] {
		if run.P99Low > r.Limit {
			r.find("concurrent fsync", Warn, "let nothing else write to etcd's disk",
				"with %d writers at once, the 99th percentile is %s", run.Writers, show(run.P99))
			break
		}
	}
	for _, run := range r.Runs {
		if run.LeftOut > run.Writes/4 {
			r.find("processor", Warn, "examine the machine while it is idle",
				"with %s, %d of %d writes were discarded because of CPU starvation", plural(run.Writers),
				run.LeftOut, run.Writes+run.LeftOut)
			break
		}
	}
}

// show formats seconds for operators.
func show(seconds float64) string {
	if seconds < 0.9995 {
		return fmt.Sprintf("%.3g ms", seconds*1000)
	}
	return fmt.Sprintf("%.3g s", seconds)
}
