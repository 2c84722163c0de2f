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
	"github.com/quorumd/quorumd/disk"
)

// Limit is what the 99th percentile of the time that one writer's fdatasync takes has to stay under: etcd's guidance
// for its write-ahead log.
const Limit = 10 * time.Millisecond

// The limits of what an examination does to a machine. Each writer is a process.
const (
	MostWriters = 64
	ShortestRun = time.Second
	LongestRun  = time.Hour
)

// Options tell what to examine. Child, Dir and For are needed.
type Options struct {
	// Child starts the child of package disk, for instance {"/proc/self/exe", "probe-disk"}.
	Child []string
	// Dir is where to write: an absolute path on the disk that etcd is to have.
	Dir string
	// Writers are how many write at once, run after run. One alone, which is judged, is always the first.
	Writers []int
	// Beside has several write at once even where an etcd has its files on the same disk.
	Beside bool
	// Peers are HOST:PORT of other members, to be, the network to which is examined.
	Peers []string
	// Fio runs fio too, if it is installed, and compares.
	Fio bool
	// For is how long each run takes.
	For time.Duration
	// Said hears how far it is, often. Nil: nobody does.
	Said func(Stage)
}

// Stage is how far an examination is: what it does, how far that is, and how long all that is to come takes, if nothing
// cuts it short.
type Stage struct {
	What, Text string
	Left       time.Duration
}

// Check tells whether a machine may be examined with the options.
func (o Options) Check() error {
	for _, n := range o.Writers {
		if n < 1 || n > MostWriters {
			return fmt.Errorf("%d writers are out of range; take 1 to %d", n, MostWriters)
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
		return fmt.Errorf("a run of %s is out of range; take %s to %s", durationfmt.Text(o.For),
			durationfmt.Text(ShortestRun), durationfmt.Text(LongestRun))
	}
	return nil
}

// Examine examines the machine. An error is an [Error].
func Examine(ctx context.Context, o Options) (Report, error) {
	wanted := o.Dir
	o.Dir = existing(o.Dir)
	r := Report{Dir: o.Dir, Limit: Limit.Seconds(), Runs: []Run{}, Findings: []Finding{}}
	if o.Dir != wanted {
		r.find("directory", Warn, "if etcd gets its own disk, mount it there, then run this command again",
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
				"what was written could not be removed, because the disk hangs")
			break // the next would hang too
		}
		if n == 1 && o.Fio {
			o.say("fio", "for up to "+durationfmt.Text(o.For), o.rest(len(runs)-i, false))
			r.askFio(ctx, o.For)
		}
		if n == 1 && r.meetNeighbours(o.Beside) && !o.Beside {
			break
		}
	}
	r.judgeRuns()
	if len(o.Peers) > 0 {
		r.meetPeers(ctx, o.Peers)
	}
	if ctx.Err() != nil {
		return r, cannot("", "finish the examination: it was interrupted")
	}
	r.judgeMachine(thisKernel())
	r.Result = r.sum()
	return r, nil
}

// rest is how long that many runs take, and fio if it is still to come.
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

// existing returns the directory, or the nearest one above it that exists: etcd need not be installed yet.
func existing(dir string) string {
	for dir != "/" {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// safeFor refuses to write as root where others could put a link in the way: into a directory of root's in which they
// may rename. In one of another user's it is that user who writes.
func safeFor(user int, dir string) error {
	info, err := os.Stat(dir)
	if user != 0 || err != nil { // the first write tells what is wrong
		return nil //nolint:nilerr // see above
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if known && owner.Uid == 0 && othersMayRename(info.Mode()) {
		return cannot("have it written to by root alone (chmod go-w "+dir+"), or run this as another user",
			"examine %s as root: others may write there, mode %04o, and could have root write elsewhere", dir,
			info.Mode().Perm())
	}
	return nil
}

// othersMayRename says whether users who do not own a directory may rename what lies in it.
func othersMayRename(mode fs.FileMode) bool { return mode.Perm()&0o022 != 0 && mode&fs.ModeSticky == 0 }

// leaving adds to an error what it leaves behind.
func leaving(err error, left []string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || len(left) == 0 {
		return err
	}
	remedy := "remove what could not be removed: rm -r " + strings.Join(left, " ")
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

// meetNeighbours says who else is on the disk, and tells whether it is an etcd.
func (r *Report) meetNeighbours(beside bool) bool {
	found := usualSearch().etcdOn(r.Runs[0].device)
	r.Neighbour = found.pid
	switch {
	case r.Neighbour != 0:
		only := ""
		if !beside {
			only = "; so one writer had to do, unless --writers asks for several"
		}
		r.find("neighbours", Warn, "examine a disk before etcd runs on it, or stop etcd",
			"etcd, process %d, writes to the same disk: it waits for these writes, and they for it%s", r.Neighbour,
			only)
	case found.hidden != 0:
		r.find("neighbours", Warn, "run it as root",
			"etcd, process %d, runs, and whether it writes to the same disk cannot be seen", found.hidden)
	case found.cut != "":
		r.find("neighbours", NotAvailable, "", "whether an etcd writes to the same disk cannot be told: %s", found.cut)
	}
	return r.Neighbour != 0
}

// deviceName gives the whole disk behind a device number, empty where there is no block device. It asks sysfs only.
func deviceName(number uint64) string {
	devices, err := disk.NewBlockDevices("", "")
	if err != nil {
		return ""
	}
	progress, err := devices.Progress(number)
	if err != nil {
		return ""
	}
	return progress.Name
}

// judgeRuns holds one writer against etcd's guidance, and says where several make it much worse.
func (r *Report) judgeRuns() {
	const (
		other  = "take another disk: an SSD with power-loss protection, which nothing else writes to"
		longer = "measure longer: --duration"
	)
	one := r.Runs[0]
	figure := fmt.Sprintf("the 99th percentile of %d writes is %s", one.Writes, show(one.P99))
	limit := show(r.Limit)
	switch between := fmt.Sprintf("%s to %s with 95 %% confidence", show(one.P99Low), show(one.P99High)); {
	case one.Hung > 0 && one.Max > 1:
		r.find("fsync", Fail, other, "a write had not come back after %s", show(one.Max))
	case one.P99Low > r.Limit:
		r.find("fsync", Fail, other, "%s, and surely more than %s; limit %s", figure, show(one.P99Low), limit)
	case one.P99High == 0:
		r.find("fsync", Undecided, longer, "%s, and they are too few to prove it; limit %s", figure, limit)
	case one.P99High > r.Limit:
		r.find("fsync", Undecided, longer, "%s (%s), too close to the limit of %s to tell", figure, between, limit)
	default:
		r.find("fsync", Pass, "", "%s (%s), limit %s", figure, between, limit)
	}
	for _, run := range r.Runs[1:] {
		if run.P99Low > r.Limit {
			r.find("concurrent fsync", Warn, "let nothing else write to etcd's disk",
				"with %d writers at once the 99th percentile is %s", run.Writers, show(run.P99))
			break
		}
	}
	for _, run := range r.Runs {
		if run.LeftOut > run.Writes/4 {
			r.find("processor", Warn, "examine the machine while it is idle",
				"with %s the processor was short in %d of %d writes, which are left out", plural(run.Writers),
				run.LeftOut, run.Writes+run.LeftOut)
			break
		}
	}
}

// show shows seconds for people.
func show(seconds float64) string {
	if seconds < 0.9995 {
		return fmt.Sprintf("%.3g ms", seconds*1000)
	}
	return fmt.Sprintf("%.3g s", seconds)
}
