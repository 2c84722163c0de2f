// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package kernellog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/disk"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd/rootfile"
)

const (
	device      = "/dev/kmsg"
	longest     = 16 << 10 // bytes of a record; the kernel writes no record above 8 KiB
	mostRecords = 1 << 20
	allTake     = 10 * time.Second
)

var errOverwritten = errors.New("it was overwritten while it was read")

// follower reads a log whose reader returns one record at a time.
type follower struct {
	open func() (io.ReadCloser, error)
	dir  string
	now  func() time.Duration
}

// Main reads the kernel's log from where the previous call stopped, and publishes how many errors of devices and hung
// tasks it has counted. It writes to news if lines were lost, and if the log has become unreadable.
func Main(files rootfile.Tree, news io.Writer) error {
	return follower{openLog, Dir, disk.Monotonic}.publish(files, news)
}

func (f follower) publish(files rootfile.Tree, news io.Writer) error {
	path := filepath.Join(f.dir, File)
	var before summary
	if data, err := files.Read(path, fileLimit); err == nil {
		before, _ = parse(data) // an invalid file is replaced
	}
	now, lost := f.read(before)
	if now.Absent == "" && now.Next < before.Next { // the log has restarted, so this is a different boot
		now, lost = f.read(summary{})
	}
	if now.Absent != "" && now.Absent != before.Absent {
		fmt.Fprintf(news, "Cannot read the kernel log: %s.\n", now.Absent)
	}
	if lost > 0 {
		fmt.Fprintf(news, "The kernel overwrote %d log lines before they were read.\n", lost)
	}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if err := files.Write(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write the kernel log report: %w", err)
	}
	return nil
}

// read adds the new lines of the log to an earlier summary, and returns how many lines were lost in between.
func (f follower) read(before summary) (now summary, lost uint64) {
	now = summary{Devices: slices.Clone(before.Devices), Hung: before.Hung}
	log, err := f.open()
	if err != nil {
		now.At, now.Next, now.Absent = f.now(), before.Next, err.Error()
		return now, 0
	}
	defer log.Close()
	lines, buffer, began := newReader(), make([]byte, longest), f.now()
	for n := 0; n < mostRecords && f.now()-began < allTake; n++ {
		size, err := log.Read(buffer)
		if errors.Is(err, errOverwritten) {
			continue
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			why := "cannot read " + device + ": " + err.Error() // the next call reads these lines again
			now, lost = summary{Devices: before.Devices, Hung: before.Hung, Next: before.Next, Absent: why}, 0
			break
		}
		l, is := parseRecord(buffer[:size])
		if !is {
			continue
		}
		first := max(now.Next, before.Next)
		now.Next = l.number + 1
		if l.number < first {
			continue
		}
		if first > 0 {
			lost += l.number - first
		}
		if name, of, does := lines.deviceError(l); does {
			now.add(name, of)
		} else if lines.hangs(l) {
			now.Hung++
		}
	}
	now.At = f.now()
	return now, lost
}

// add increments a counter of a device.
func (s *summary) add(device string, of kind) {
	i := slices.IndexFunc(s.Devices, func(e health.LoggedErrors) bool { return e.Device == device })
	if i < 0 {
		if len(s.Devices) >= mostDevices {
			return
		}
		i, s.Devices = len(s.Devices), append(s.Devices, health.LoggedErrors{Device: device})
	}
	of.count(&s.Devices[i])
}

// kmsg is an open kernel log. Reading it never blocks.
type kmsg int

func openLog() (io.ReadCloser, error) {
	fd, err := unix.Open(device, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, errors.New("there is no " + device)
	case err != nil:
		return nil, fmt.Errorf("cannot open %s: %w", device, err)
	}
	return kmsg(fd), nil
}

func (k kmsg) Read(into []byte) (int, error) {
	for {
		n, err := unix.Read(int(k), into)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN) || err == nil && n == 0:
			return 0, io.EOF
		case errors.Is(err, unix.EPIPE):
			return 0, errOverwritten
		case err != nil:
			return 0, err
		}
		return n, nil
	}
}

func (k kmsg) Close() error { return unix.Close(int(k)) }
