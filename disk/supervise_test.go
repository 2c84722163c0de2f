// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bufio"
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAProbeReturnsSamplesOfBothLanes(t *testing.T) {
	t.Parallel()
	f := follow(t, options(t))
	f.until("five samples in each lane, and the space", func() bool {
		return len(f.good(LaneDirect)) >= 5 && len(f.good(LaneWAL)) >= 5 && f.last.Usage != nil
	})
	var before Sample
	for _, s := range f.samples {
		if s.End <= before.End || s.Latency <= 0 || s.Latency > 30*time.Second || s.End-s.Latency < before.End {
			t.Fatalf("%+v cannot follow %+v", s, before)
		}
		before = s
	}
	if age := Monotonic() - before.End; age < 0 || age > 30*time.Second {
		t.Errorf("the last sample is %s old", age)
	}
	var stat unix.Stat_t
	if err := unix.Stat(f.set.dir, &stat); err != nil {
		t.Fatal(err)
	}
	if f.last.Device != stat.Dev {
		t.Errorf("device is %#x, want %#x", f.last.Device, stat.Dev)
	}
	if u := f.last.Usage; u.Total == 0 || u.InodesFree > u.Inodes || u.Free > u.Total || u.Age < 0 ||
		u.Age > 30*time.Second {
		t.Errorf("usage is %+v", u)
	}
	if f.last.Failure != nil || f.last.Lost != 0 || !f.last.Alive || f.last.PID == 0 || f.last.Restarts != 0 {
		t.Errorf("reading is %+v", f.last)
	}
}

func TestAProbeStaysWithinItsSpace(t *testing.T) {
	t.Parallel()
	f := follow(t, options(t))
	f.until("samples in both lanes", func() bool { return len(f.good(LaneDirect)) > 0 && len(f.good(LaneWAL)) > 0 })
	f.Close()
	want := map[string]int64{lockName: 0, directName: directBlocks * blockSize, walName: walBytes}
	entries, err := os.ReadDir(f.set.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if size, known := want[entry.Name()]; !known || info.Size() != size || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has %d bytes, mode %v", entry.Name(), info.Size(), info.Mode())
		}
		delete(want, entry.Name())
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
	if info, err := os.Stat(f.set.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info, err)
	}
}

func TestABurstReachesItsRateAndEnds(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.WALInterval = time.Hour
	f := follow(t, o)
	f.until("the sample at rest", func() bool { return len(f.good(LaneWAL)) == 1 })
	f.SetBurst(true)
	// Whatever the rate, a longer rest follows a slow operation. Only the rests after fast operations show the rate.
	var rests []time.Duration
	f.until("thirty rests of a burst", func() bool {
		rests = rests[:0]
		burst := f.good(LaneWAL)[1:]
		for i := 1; i < len(burst); i++ {
			if burst[i-1].Latency < slow/2 {
				rests = append(rests, burst[i].End-burst[i].Latency-burst[i-1].End)
			}
		}
		return len(rests) >= 30
	})
	f.SetBurst(false)
	slices.Sort(rests)
	// The target is 20 ms ±10 %. The margin is for timers, and for a machine that is busy with other tests.
	if rests[0] < 17*time.Millisecond {
		t.Errorf("a burst rested %s only", rests[0])
	}
	if quarter := rests[len(rests)/4]; quarter > 40*time.Millisecond {
		t.Errorf("three quarters of a burst rested %s or more, too slow for its rate", quarter)
	}
	f.until("the lane at rest again", func() bool { return f.last.NextWAL > time.Minute })
}

func TestARestingLaneReportsWhenItIsDue(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.DirectInterval = time.Hour
	f := follow(t, o)
	f.until("the next direct write in an hour", func() bool {
		return f.last.NextDirect > 50*time.Minute && f.last.NextDirect < 70*time.Minute
	})
}

func TestAKilledChildIsReplaced(t *testing.T) {
	t.Parallel()
	var out lockedBuffer
	o := options(t)
	o.Logger = slog.New(slog.NewTextHandler(&out, nil))
	f := follow(t, o)
	f.until("a sample", func() bool { return len(f.samples) > 0 })
	killed := f.last.PID
	if err := unix.Kill(killed, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.until("the death noticed", func() bool { return !f.last.Alive })
	if f.last.InFlight != OpNone || f.last.InFlightAge != 0 {
		t.Errorf("a dead child has %q in flight", f.last.InFlight)
	}
	had := len(f.good(LaneDirect))
	f.until("samples of another child", func() bool { return f.last.Alive && len(f.good(LaneDirect)) > had })
	if f.last.Restarts != 1 || f.last.PID == killed || f.last.Failure != nil {
		t.Errorf("reading is %+v", f.last)
	}
	if said := out.String(); !strings.Contains(said, "signal: killed") || !strings.Contains(said, "restarted") {
		t.Errorf("the log says only:\n%s", said)
	}
}

func TestAChildThatCannotRunIsStartedAgain(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Command = []string{"/bin/false"}
	f := follow(t, o)
	f.until("a second try", func() bool { return f.last.Restarts > 0 })
}

// hang puts a FIFO where the probe opens a file for writing: the open waits for a reader that never comes.
func hang(t *testing.T, o Options) {
	t.Helper()
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(o.Dir, walNextName), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAHangingOperationIsReportedWhileItHangs(t *testing.T) {
	t.Parallel()
	o := options(t)
	hang(t, o)
	f := follow(t, o)
	f.until("the operation in flight for a while", func() bool {
		return f.last.InFlight == OpRotate && f.last.InFlightAge > 300*time.Millisecond
	})
	before, op := f.InFlight()
	f.until("its age grow with the clock", func() bool { return f.last.InFlightAge > before+200*time.Millisecond })
	if op != OpRotate || f.last.InFlight != OpRotate {
		t.Errorf("in flight are %q and %q", op, f.last.InFlight)
	}
	if !f.last.Alive || f.last.Restarts != 0 {
		t.Errorf("a child that hangs was replaced: %+v", f.last)
	}
	closesWithin(t, f.Probe, time.Second)
}

func TestAStoppedChildDoesNotStopItsParent(t *testing.T) {
	t.Parallel()
	o := options(t)
	hang(t, o)
	f := follow(t, o)
	f.until("an operation in flight", func() bool { return f.last.InFlight == OpRotate })
	if err := unix.Kill(f.last.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	age := f.last.InFlightAge
	f.until("its age grow with the clock", func() bool { return f.last.InFlightAge > age+300*time.Millisecond })
	if !f.last.Alive || f.last.Restarts != 0 {
		t.Errorf("a child that is stopped was replaced: %+v", f.last)
	}
	// A stopped child cannot notice the end of its stdin, so it has to be killed.
	closesWithin(t, f.Probe, patience+closeGrace)
}

func TestAStoppedChildIsNoticedBetweenOperations(t *testing.T) {
	t.Parallel()
	f := follow(t, options(t))
	f.until("a sample", func() bool { return len(f.samples) > 0 })
	if err := unix.Kill(f.last.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f.until("overdue writes", func() bool { return min(f.last.NextDirect, f.last.NextWAL) < -time.Second })
	if err := unix.Kill(f.last.PID, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	had := len(f.samples)
	f.until("samples again", func() bool { return len(f.samples) > had })
}

func TestAStarvedChildMarksItsSamples(t *testing.T) {
	t.Parallel()
	f := follow(t, options(t))
	f.SetBurst(true)
	looks := 0
	f.until("a contaminated sample", func() bool {
		// The child is stopped for ten looks of 5 ms, then runs for ten: half of the operations, or the waits before
		// them, are interrupted.
		looks++
		signal := unix.SIGCONT
		if looks/10%2 == 1 {
			signal = unix.SIGSTOP
		}
		if err := unix.Kill(f.last.PID, signal); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(f.samples, func(s Sample) bool { return s.Contaminated })
	})
}

func closesWithin(t *testing.T, p *Probe, limit time.Duration) {
	t.Helper()
	begun := time.Now()
	p.Close()
	// Twice the limit, for a machine that is busy with other tests.
	if took := time.Since(begun); took > 2*limit {
		t.Errorf("Close took %s", took)
	}
}

func TestAClosedProbeIsSilent(t *testing.T) {
	t.Parallel()
	f := follow(t, options(t))
	f.until("a sample", func() bool { return len(f.samples) > 0 })
	gone := watchExit(t, f.last.PID)
	f.Close()
	f.Close()
	if !gone() {
		t.Error("the child is still there")
	}
	if r := f.Read(); r.Alive || r.Samples != nil {
		t.Errorf("reading is %+v", r)
	}
	if age, op := f.InFlight(); age != 0 || op != OpNone {
		t.Errorf("in flight is %q for %s", op, age)
	}
	f.SetBurst(true)
}

// watchExit returns a function that reports whether the process has ended, even if it has not been reaped.
func watchExit(t *testing.T, pid int) func() bool {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return func() bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return err == nil && n == 1
	}
}

func TestAChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/proc/self/exe", asParent, t.TempDir())
	if _, err := cmd.StdinPipe(); err != nil { // held open until the end
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Scan()
	pid, err := strconv.Atoi(lines.Text())
	if err != nil {
		t.Fatal(err)
	}
	gone := watchExit(t, pid)
	if gone() {
		t.Fatal("the child ended before its parent")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the child's end", gone, func() string { return "it is still there" })
}

func TestASecondProbeOfADirectoryIsRefusedUntilTheFirstEnds(t *testing.T) {
	t.Parallel()
	o := options(t)
	first := follow(t, o)
	first.until("a sample", func() bool { return len(first.samples) > 0 })
	second := follow(t, o)
	second.until("the refusal", func() bool { return second.failedWith(OpLock, syscall.EWOULDBLOCK) })
	if len(second.samples) != 0 {
		t.Errorf("the second probe wrote nevertheless: %+v", second.samples)
	}
	first.Close()
	second.until("a sample of the second", func() bool { return len(second.samples) > 0 })
}

func TestADirectoryOnAnotherFileSystemIsRefused(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Target = "/proc/not/there/yet"
	f := follow(t, o)
	f.until("the refusal", func() bool { return f.failedWith(OpDevice, syscall.EXDEV) })
	if len(f.samples) != 0 {
		t.Errorf("the wrong disk was measured: %+v", f.samples)
	}
}

func TestADirectoryWithoutPermissionIsReported(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Command = command(asUnprivilegedChild)
	// If the test runs as root, the child drops its privileges, and then has no access to root's directory.
	if err := os.Mkdir(o.Dir, 0); err != nil {
		t.Fatal(err)
	}
	f := follow(t, o)
	f.until("the refusal", func() bool { return f.failedWith(OpOpen, syscall.EACCES) })
	if f.last.Restarts != 0 {
		t.Error("the child died of it")
	}
}

func TestADirectoryThatComesBackIsProbedAgain(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Dir = filepath.Join(filepath.Dir(o.Dir), "mount", "probe")
	f := follow(t, o)
	f.until("the missing directory", func() bool { return f.failedWith(OpOpen, syscall.ENOENT) })
	if err := os.Mkdir(filepath.Dir(o.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	f.until("samples", func() bool { return len(f.good(LaneDirect)) > 0 && len(f.good(LaneWAL)) > 0 })
}

func TestAFileSizeLimitIsReported(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Command = command(asSmallChild)
	f := follow(t, o)
	seen := map[string]bool{}
	f.until("both lanes refused", func() bool {
		if f.last.Failure != nil && f.last.Failure.Errno == syscall.EFBIG {
			seen[f.last.Failure.Op] = true
		}
		return seen[OpPrepare] && seen[OpRotate]
	})
	if f.last.Restarts != 0 {
		t.Error("the child died of it")
	}
}

func TestCorruptedBytesAreReported(t *testing.T) {
	t.Parallel()
	o := options(t)
	f := follow(t, o)
	f.until("a sample", func() bool { return len(f.good(LaneDirect)) > 0 })
	file, err := os.OpenFile(filepath.Join(o.Dir, directName), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	garbage := bytes.Repeat([]byte("garbage "), directBlocks*blockSize/8)
	f.until("the damage", func() bool {
		if _, err := file.WriteAt(garbage, 0); err != nil {
			t.Fatal(err)
		}
		return f.failedWith(OpVerify, syscall.EBADMSG)
	})
	had := len(f.good(LaneDirect))
	f.until("writes to continue", func() bool { return len(f.good(LaneDirect)) > had })
}

func TestAllWrongOptionsAreReported(t *testing.T) {
	t.Parallel()
	_, err := StartProbe(Options{Dir: "here", DirectInterval: time.Millisecond, BurstRate: 51})
	if err == nil {
		t.Fatal("it started")
	}
	for _, want := range []string{
		`the probe directory "here"`, `the target ""`, "direct interval 1ms",
		"burst rate 51",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	o := options(t)
	o.Command = []string{"/no/such/command"}
	if _, err := StartProbe(o); err == nil || !strings.Contains(err.Error(), "check that the command exists") {
		t.Errorf("error is %v", err)
	}
	o.Command = nil
	if _, err := StartProbe(o); err == nil {
		t.Error("it started without a command")
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
