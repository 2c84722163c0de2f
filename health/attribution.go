// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// Cause is the most likely reason for slow writes. It is only a hint for operators: no decision depends on it.
type Cause string

// The causes.
const (
	CauseProcessor  Cause = "processor"
	CauseRAID       Cause = "raid"
	CauseOthers     Cause = "other-writers"
	CauseDevice     Cause = "device"
	CauseFileSystem Cause = "file-system"
	CauseEtcd       Cause = "etcd"
)

// Attribution is a cause, with the condition under which it is reported.
type Attribution struct {
	Cause Cause
	When  string
}

// Attributions returns the conditions of the causes in the order in which they are tried. The first cause whose
// condition holds is reported.
func Attributions() []Attribution {
	var all []Attribution
	for _, a := range attributions() {
		all = append(all, a.Attribution)
	}
	return all
}

// attribution is a cause and the measurements that indicate it.
type attribution struct {
	Attribution
	// of returns the measurement as text, and whether it indicates the cause.
	of func(facts) (string, bool)
}

const (
	factsSpan     = time.Minute
	factsKept     = 32
	othersWritten = 16 << 20 // bytes per second; etcd writes about a hundredth of that
	othersBusy    = 80       // percent of the time
	lanesSpan     = 5 * time.Minute
	lanesKept     = 1024
	fewestWrites  = 20  // minimum number of samples of the WAL lane for a conclusion from them
	fewestDirect  = 100 // minimum number of samples of the direct lane for a p99
	stolenMuch    = 10  // percent
	fewestTicks   = 1   // minimum number of ticks, over all CPUs, for a percentage

	// slowByItself is the lowest mean flush time that shows that the drive itself is slow. CPU starvation does not
	// explain it, because the kernel records the end of a flush in an interrupt, which does not wait to be scheduled.
	slowByItself = 100 * time.Millisecond
)

// facts are the measurements while writes were slow.
type facts struct {
	limit   time.Duration // limit of the latency of a write
	stalled bool          // a write is hanging at this moment
	lanes   [2]samples    // the probe's samples of the last five minutes that are not contaminated
	starved float64       // percentage of the last minute's samples that were taken during CPU starvation
	stolen  float64       // percentage of CPU time that the hypervisor gave to other machines
	waited  float64       // percentage of the time in which a process waited for a CPU
	arrays  []Array
	leaves  []work // I/O of the drives, the leaves of the chain of devices, within factsSpan
	// I/O of the drives between the last two readings. While a write hangs, it is set only if the last reading was
	// taken after the write began.
	lately []work
	unseen bool      // a write hangs, and the drives have not been read since the write began
	halted string    // the first suspended device of the chain; empty if none is suspended
	etcd   Histogram // etcd's own fsyncs within factsSpan
}

// work is the I/O of a drive within a span.
type work struct {
	name     string
	span     time.Duration
	writes   uint64        // completed writes, including flushes
	flush    time.Duration // mean duration of a flush, or of a write if there was no flush
	written  float64       // bytes per second
	busy     float64       // percentage of the span in which the drive was busy
	inFlight uint64
}

// attributions returns the causes in the order in which they are tried. A cause that distorts measurements comes before
// the causes that those measurements indicate. A suspended or hung device comes first nevertheless, because its writes
// do not wait for a CPU.
func attributions() []attribution {
	declare := func(c Cause, when string, of func(facts) (string, bool)) attribution {
		return attribution{Attribution{c, when}, of}
	}
	return []attribution{
		declare(CauseDevice, "a write hangs and a device-mapper device is suspended", facts.suspended),
		declare(CauseDevice, "a write hangs and a drive with requests in flight completes none, unless CPU steal "+
			"is 10 % or more", facts.hung),
		declare(CauseProcessor, "20 % or more of the last minute's samples were taken under CPU starvation, unless "+
			"a drive's flushes took 100 ms or more",
			func(f facts) (string, bool) {
				return fmt.Sprintf("%.0f %% of the last minute's samples were taken under CPU starvation",
					f.starved), f.starved >= 20 && !f.slowDrive()
			}),
		declare(CauseProcessor, "CPU steal of this virtual machine is 10 % or more",
			func(f facts) (string, bool) {
				return fmt.Sprintf("CPU steal was %.0f %% in the last minute", f.stolen), f.stolen >= stolenMuch
			}),
		declare(CauseProcessor, "a process waited for a CPU (PSI) for 80 % of the time or more, unless a drive's "+
			"flushes took 100 ms or more",
			func(f facts) (string, bool) {
				return fmt.Sprintf("a process waited for a CPU for %.0f %% of the last minute", f.waited),
					f.waited >= waited && !f.slowDrive()
			}),
		declare(CauseRAID, "an array is being checked, repaired, rebuilt, resynced or reshaped", facts.rebuilding),
		declare(CauseOthers, "a drive is busy for 80 % of the time or more, with writes of 16 MiB/s or more",
			facts.crowded),
		declare(CauseFileSystem, "a write hangs and no drive has a request in flight", facts.held),
		declare(CauseDevice, "the p99 of direct writes exceeds the limit", facts.slowBeneath),
		declare(CauseFileSystem, "WAL-like writes exceed the limit, and the p99 of direct writes is at most half of it",
			facts.slowAbove),
	}
}

// attribute returns the cause that the facts indicate, and why. It returns no cause if they indicate none, or if the
// drives have not been read since a write began to hang.
func attribute(f facts) (Cause, string) {
	if f.unseen {
		return "", ""
	}
	for _, a := range attributions() {
		if text, holds := a.of(f); holds {
			return a.Cause, text + f.etcdMeasured()
		}
	}
	return "", ""
}

func (f facts) rebuilding() (string, bool) {
	for _, a := range f.arrays {
		if slices.Contains([]string{"check", "repair", "resync", "recover", "reshape"}, a.Doing) {
			return fmt.Sprintf("%s %s, %.0f %% done", a.Name, busyWith(a.Doing), 100*a.Done), true
		}
	}
	return "", false
}

// busyWith describes what an array does in addition to serving I/O.
func busyWith(doing string) string {
	switch doing {
	case "check":
		return "is being checked"
	case "repair":
		return "is being repaired"
	case "recover":
		return "is rebuilding"
	}
	return doing + "s"
}

func (f facts) crowded() (string, bool) {
	for _, w := range f.leaves {
		if w.written >= othersWritten && w.busy >= othersBusy {
			return fmt.Sprintf("%s was busy for %.0f %% of the last minute with writes of %s/s", w.name,
				min(w.busy, 100), showBytes(uint64(w.written))), true
		}
	}
	return "", false
}

func (f facts) held() (string, bool) {
	idle := !slices.ContainsFunc(f.lately, func(w work) bool { return w.inFlight > 0 })
	return "no drive under the file system has a request in flight", f.stalled && len(f.lately) > 0 && idle
}

func (f facts) suspended() (string, bool) {
	return f.halted + " is suspended, so all writes to it wait", f.stalled && f.halted != ""
}

func (f facts) hung() (string, bool) {
	for _, w := range f.lately {
		if f.stalled && w.inFlight > 0 && w.writes == 0 {
			return fmt.Sprintf("%s has %d requests in flight and has completed no write for %s", w.name, w.inFlight,
				show(w.span)), f.stolen < stolenMuch
		}
	}
	return "", false
}

// slowDrive reports whether a drive was recently so slow that CPU starvation cannot explain it.
func (f facts) slowDrive() bool {
	return slices.ContainsFunc(f.lately, func(w work) bool { return w.flush >= slowByItself })
}

func (f facts) slowBeneath() (string, bool) {
	direct := f.lanes[disk.LaneDirect]
	text := fmt.Sprintf("p99 of direct writes %s over the last five minutes, limit %s",
		show(direct.spread().at(990)), show(f.limit))
	worst := work{}
	for _, w := range f.leaves {
		if w.flush > worst.flush {
			worst = w
		}
	}
	if worst.flush > 0 {
		text += fmt.Sprintf("; a flush or write on %s took %s on average", worst.name, show(worst.flush))
	}
	return text, !f.stalled && len(direct) >= fewestDirect && direct.spread().at(990) > f.limit
}

func (f facts) slowAbove() (string, bool) {
	wal, direct := f.lanes[disk.LaneWAL], f.lanes[disk.LaneDirect]
	beneath := direct.spread().at(990)
	return fmt.Sprintf("%d of %d WAL-like writes in the last five minutes took longer than %s; the p99 of direct "+
			"writes is %s", wal.over(f.limit), len(wal), show(f.limit), show(beneath)),
		!f.stalled && len(wal) >= fewestWrites && len(direct) >= fewestDirect && wal.over(f.limit) > 1 &&
			beneath <= f.limit/2
}

// etcdMeasured describes etcd's own measurement of its fsyncs; empty if there were too few.
func (f facts) etcdMeasured() string {
	if f.etcd.Count() < etcdWritesFewest {
		return ""
	}
	at, _ := f.etcd.Quantile(990)
	return "; the p99 of etcd's own fsyncs is " + at.String()
}

// circumstances keeps the recent readings, from which causes are derived.
type circumstances struct {
	now     time.Duration
	devices []DevicesReading // recent readings, oldest first; see keep
	etcds   []EtcdReading
	lanes   [2]samples // uncontaminated samples of the last five minutes, at most lanesKept of a lane
	ticks   window     // CPU time, and the part that the hypervisor gave to other machines
	waited  Figure
}

// read adds the new readings of an input.
func (w *circumstances) read(in Input) {
	w.now = in.Now
	for _, s := range in.Disk.Samples {
		if !s.Contaminated {
			w.lanes[s.Lane] = append(w.lanes[s.Lane], s)
		}
	}
	for i, lane := range w.lanes {
		recent := lane.since(in.Now - lanesSpan)
		w.lanes[i] = lane.keep(min(len(recent), lanesKept))
	}
	w.ticks.span, w.waited = factsSpan, in.Machine.ProcessorWaited
	w.ticks.take(in.Machine.At, in.Machine.Processor)
	w.devices = keep(w.devices, in.Devices, in.Now, func(d DevicesReading) (time.Duration, bool) {
		return d.At, len(d.Chain) > 0
	})
	w.etcds = keep(w.etcds, in.Etcd, in.Now, func(e EtcdReading) (time.Duration, bool) {
		return e.At, e.WALFsync.Known
	})
}

// keep adds a reading, unless it is the last one again. It then drops the oldest readings: it keeps at most factsKept,
// and of those older than factsSpan only the newest, but always at least two. An unknown reading discards all.
func keep[R any](all []R, last R, now time.Duration, of func(R) (at time.Duration, known bool)) []R {
	at, known := of(last)
	if !known {
		return nil
	}
	if n := len(all); n > 0 {
		before, _ := of(all[n-1])
		if at <= before {
			return all
		}
	}
	all = append(all, last)
	for len(all) > 2 {
		if next, _ := of(all[1]); now-next < factsSpan && len(all) <= factsKept {
			break
		}
		all = slices.Delete(all, 0, 1)
	}
	return all
}

// facts combines the kept readings with the figures of an assessment.
func (w *circumstances) facts(v Figures, stalled bool) facts {
	f := facts{
		limit: v.Limit, stalled: stalled, lanes: w.lanes, starved: v.Contaminated,
		stolen: w.ticks.share(fewestTicks), waited: w.waited.Value, arrays: v.Devices.Arrays,
	}
	if n := len(w.devices); n > 1 {
		f.leaves = worked(w.devices[0], w.devices[n-1])
		if f.unseen = stalled && w.devices[n-1].At <= w.now-v.InFlight; !f.unseen {
			f.lately = worked(w.devices[n-2], w.devices[n-1])
			f.halted = halted(w.devices[n-1].Chain)
		}
	}
	if n := len(w.etcds); n > 1 {
		f.etcd, _ = w.etcds[n-1].WALFsync.Delta(w.etcds[0].WALFsync)
	}
	return f
}

// halted returns the name of the first suspended device, with its label if it has one; empty if none is suspended.
func halted(chain []Device) string {
	for _, d := range chain {
		switch {
		case d.Suspended && d.Label != "":
			return d.Label + " (" + d.Name + ")"
		case d.Suspended:
			return d.Name
		}
	}
	return ""
}

// worked returns the I/O of the drives between two readings. It omits drives whose counters are not known in both
// readings, or have restarted.
func worked(first, last DevicesReading) []work {
	var all []work
	span := last.At - first.At
	for _, d := range last.Chain {
		i := slices.IndexFunc(first.Chain, func(was Device) bool { return was.Name == d.Name })
		if !d.Leaf() || i < 0 || span <= 0 {
			continue
		}
		was, is := first.Chain[i].Traffic, d.Traffic
		if !was.Known || !is.Known || is.Writes < was.Writes || is.Flushes < was.Flushes || is.Written < was.Written {
			continue
		}
		w := work{
			name: d.Name, span: span, writes: is.Writes - was.Writes + is.Flushes - was.Flushes, inFlight: is.InFlight,
			written: float64(is.Written-was.Written) / span.Seconds(),
			busy:    100 * max(0, (is.Busy-was.Busy).Seconds()) / span.Seconds(),
		}
		if n := is.Flushes - was.Flushes; n > 0 {
			w.flush = max(0, is.FlushTime-was.FlushTime) / time.Duration(n)
		} else if n := is.Writes - was.Writes; n > 0 {
			w.flush = max(0, is.WriteTime-was.WriteTime) / time.Duration(n)
		}
		all = append(all, w)
	}
	return all
}

// attributed adds the likely cause to each finding about slow writes.
func (w *circumstances) attributed(v *Assessment) {
	for i := range v.Findings {
		f := &v.Findings[i]
		switch f.Code {
		case DiskFsyncWarm, DiskFsyncSlow, DiskUnfit, DiskStalled:
			f.Cause, f.Why = attribute(w.facts(v.Figures, f.Code == DiskStalled))
			if f.Cause == CauseDevice {
				f.Why += v.hindered()
			}
		case EtcdFsyncSlow:
			f.Cause, f.Why = w.etcdAlone(v.Figures)
		}
	}
}

// hindered lists what hinders the drives under etcd's data, according to other findings.
func (v *Assessment) hindered() (text string) {
	for _, f := range v.Findings {
		switch f.Code {
		case DriveThrottled, PCILanesMissing, PCIErrors:
			text += "; " + f.Text
		}
	}
	return text
}

// etcdAlone returns the cause of slow writes of etcd while the probe's writes are fast. If the probe's writes are slow
// as well, or too few, it returns the cause that attribute finds.
func (w *circumstances) etcdAlone(v Figures) (Cause, string) {
	f := w.facts(v, false)
	wal := f.lanes[disk.LaneWAL]
	if len(wal) < fewestWrites || wal.over(v.Limit) > 1 {
		return attribute(f)
	}
	for _, a := range attributions() { // some causes affect etcd first, because it writes more than the probe
		before := slices.Contains([]Cause{CauseProcessor, CauseRAID, CauseOthers}, a.Cause)
		if text, holds := a.of(f); holds && before {
			return a.Cause, text + f.etcdMeasured()
		}
	}
	return CauseEtcd, fmt.Sprintf("%d of the probe's last %d writes on the same file system took longer than %s: "+
		"the disk is fast, so etcd writes a lot, or its unit has an I/O limit", wal.over(v.Limit), len(wal),
		show(v.Limit)) + f.etcdMeasured()
}
