// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"
)

// Options configure what [StartProbe] measures, and how often. A field that is zero has its default, if it has one.
type Options struct {
	// Command starts the child, for instance {"/proc/self/exe", "probe-disk"}: a program that calls [ChildMain] with
	// the arguments that follow.
	Command []string
	// Dir is the directory for the probe's files. The child creates it (mode 0700) if only its last element is missing.
	Dir string
	// Target is the directory whose disk is measured: etcd's WAL directory, or its data directory. Dir must be on the
	// same file system (the same st_dev). While Target does not exist, its nearest existing ancestor counts. The child
	// repeats this check at every UsageInterval.
	Target string

	// DirectInterval is the rest between two writes of LaneDirect. The default is 1 s, the minimum 200 ms. All rests
	// vary by ±10 %.
	DirectInterval time.Duration
	// WALInterval is the rest between two writes of LaneWAL outside a burst. The default is 10 s, the minimum 200 ms.
	WALInterval time.Duration
	// BurstRate is the number of writes per second of LaneWAL in a burst. The default is 50, which is also the maximum.
	// It sets the rest between two writes, so the actual rate is a little lower.
	BurstRate int
	// VerifyInterval is the time after which the last written block is read back. The default is 1 min, the minimum 200
	// ms.
	VerifyInterval time.Duration
	// UsageInterval is the rest between two checks of the free space and the device. The default is 30 s, the minimum
	// 200 ms.
	UsageInterval time.Duration

	// Exam makes the probe an examination, for a disk that is not in use yet: it uses LaneWAL alone, one write after
	// the other without a rest, and the child removes its files and Dir when it ends.
	Exam bool

	// Logger logs the ends and the restarts of children, and their output. It may be nil.
	Logger *slog.Logger
}

// The limits of the load on a disk.
const (
	MinInterval  = 200 * time.Millisecond // shortest rest between operations of one kind, outside a burst
	MaxBurstRate = 50                     // writes per second
)

// settings are the options that the child needs; they are passed as arguments.
type settings struct {
	dir, target                string
	direct, wal, verify, usage time.Duration
	burst                      int
	exam                       bool
}

func (o Options) settings() (settings, error) {
	s := settings{
		dir: o.Dir, target: o.Target, burst: o.BurstRate, exam: o.Exam,
		direct: o.DirectInterval, wal: o.WALInterval, verify: o.VerifyInterval, usage: o.UsageInterval,
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{{&s.direct, time.Second}, {&s.wal, 10 * time.Second}, {&s.verify, time.Minute}, {&s.usage, 30 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	if s.burst == 0 {
		s.burst = MaxBurstRate
	}
	return s, s.check()
}

// Check returns an error if an option other than Command is invalid.
func (o Options) Check() error {
	_, err := o.settings()
	return err
}

func (s settings) check() error {
	var wrong []error
	for _, p := range []struct{ name, value string }{{"the probe directory", s.dir}, {"the target", s.target}} {
		if !filepath.IsAbs(p.value) {
			wrong = append(wrong, fmt.Errorf("%s %q is not an absolute path; use one that begins with /", p.name,
				p.value))
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"direct", s.direct}, {"WAL", s.wal}, {"verify", s.verify}, {"usage", s.usage}} {
		if d.value < MinInterval {
			wrong = append(wrong, fmt.Errorf("the %s interval %s is too short; use %s or more", d.name,
				d.value, MinInterval))
		}
	}
	if s.burst < 1 || s.burst > MaxBurstRate {
		wrong = append(wrong, fmt.Errorf("the burst rate %d is out of range; use 1 to %d per second", s.burst,
			MaxBurstRate))
	}
	return errors.Join(wrong...)
}

func (s settings) args() []string {
	return []string{
		"-dir", s.dir, "-target", s.target,
		"-direct-interval", s.direct.String(), "-wal-interval", s.wal.String(),
		"-verify-interval", s.verify.String(), "-usage-interval", s.usage.String(),
		"-burst-rate", strconv.Itoa(s.burst), "-exam=" + strconv.FormatBool(s.exam),
	}
}

func parseSettings(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("probe-disk", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.dir, "dir", "", "`directory` for the probe's files")
	flags.StringVar(&s.target, "target", "", "`path` on the file system to measure; -dir must be on the same one")
	flags.DurationVar(&s.direct, "direct-interval", 0, "pause between direct writes")
	flags.DurationVar(&s.wal, "wal-interval", 0, "pause between WAL writes")
	flags.DurationVar(&s.verify, "verify-interval", 0, "pause between read-backs")
	flags.DurationVar(&s.usage, "usage-interval", 0, "pause between checks of free space")
	flags.IntVar(&s.burst, "burst-rate", 0, "WAL writes per second in a burst")
	flags.BoolVar(&s.exam, "exam", false, "write WAL records without pauses, then delete the probe's files")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	return s, s.check()
}

// ChildPlace returns the two paths in the arguments of a child, as composed by [StartProbe]: Dir and Target of
// [Options]. It returns an error if the arguments are invalid.
func ChildPlace(args []string) (dir, target string, err error) {
	s, err := parseSettings(args, io.Discard)
	return s.dir, s.target, err
}
