// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package kernellog

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd/rootfile"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// log is a log that returns one record per read, like the kernel's.
type log struct {
	records []string // an empty record means that the kernel has overwritten it
	fails   error    // returned after the last record
}

func (l *log) Read(into []byte) (int, error) {
	if len(l.records) == 0 {
		return 0, l.fails
	}
	record := l.records[0]
	l.records = l.records[1:]
	if record == "" {
		return 0, errOverwritten
	}
	return copy(into, record), nil
}

func (l *log) Close() error { return nil }

// bench is a directory for the report.
type bench struct {
	t     *testing.T
	files rootfile.Tree
	now   time.Duration
	dir   string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	return &bench{t: t, files: rootfile.Beneath(dir, os.Getuid()), now: time.Hour, dir: dir}
}

// publishes reads a log and publishes its counts. It returns what the agent then reads, and the news.
func (b *bench) publishes(open func() (io.ReadCloser, error)) (health.Several[health.LoggedErrors], string) {
	b.t.Helper()
	var news strings.Builder
	f := follower{open: open, dir: b.dir, now: func() time.Duration { return b.now }}
	if err := f.publish(b.files, &news); err != nil {
		b.t.Fatal(err)
	}
	return b.reads(), news.String()
}

func (b *bench) reads() health.Several[health.LoggedErrors] {
	devices, _ := Read(b.files, filepath.Join(b.dir, File), b.now)
	return devices
}

func of(records ...string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return &log{records: records, fails: io.EOF}, nil }
}

// failedRequest returns a kernel record of a failed request to a device.
func failedRequest(number int, device string) string {
	return fmt.Sprintf("3,%d,5140900,-;I/O error, dev %s, sector 8 op 0x1:(WRITE) flags 0x0\n SUBSYSTEM=block\n",
		number, device)
}

func TestLinesAboutDevicesAreParsed(t *testing.T) {
	t.Parallel()
	lines, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	r := newReader()
	for text := range strings.Lines(string(lines)) {
		device, of, does := r.deviceError(line{kernel: true, text: strings.TrimSpace(text)})
		if !does {
			device, of.name = "-", "nothing"
		}
		fmt.Fprintf(&got, "%s, %s: %s", device, of.name, text)
	}
	const golden = "testdata/lines.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil { //nolint:gosec // as git has it
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || got.String() != string(want) {
		t.Errorf("%v; parsed as\n%s\nwant\n%s", err, got.String(), want)
	}
}

func TestEachLineIsCountedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	got, news := b.publishes(of(failedRequest(7, "sda"), failedRequest(8, "sdb"), failedRequest(9, "sda")))
	want := []health.LoggedErrors{{Device: "sda", Errors: 2}, {Device: "sdb", Errors: 1}}
	if !got.Known || !reflect.DeepEqual(got.All, want) || news != "" {
		t.Errorf("at first: %+v, news %q", got, news)
	}
	got, news = b.publishes(of(failedRequest(8, "sdb"), failedRequest(9, "sda"), failedRequest(10, "sda")))
	want[0].Errors = 3
	if !got.Known || !reflect.DeepEqual(got.All, want) || news != "" {
		t.Errorf("then: %+v, news %q", got, news)
	}
}

func TestOverwrittenLinesAreReported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publishes(of(failedRequest(1, "sda")))
	got, news := b.publishes(of(failedRequest(5, "sda"), "", failedRequest(8, "sda")))
	if !got.Known || got.All[0].Errors != 3 ||
		news != "The kernel overwrote 5 log lines before they were read.\n" {
		t.Errorf("%+v, news %q", got, news)
	}
}

func TestARestartedLogIsReadFromItsBeginning(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publishes(of(failedRequest(70, "sda"), failedRequest(71, "sda")))
	got, news := b.publishes(of(failedRequest(0, "sdb"), failedRequest(1, "sdb")))
	if want := []health.LoggedErrors{{Device: "sdb", Errors: 2}}; !reflect.DeepEqual(got.All, want) || news != "" {
		t.Errorf("%+v, news %q", got, news)
	}
}

func TestLinesWrittenByProgramsAreIgnored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	forged := "11,1,5140900,-;I/O error, dev sda, sector 8 op 0x1:(WRITE)\n" // user.err
	got, _ := b.publishes(of(forged, "no record", "3,x,1,-;I/O error, dev sda, sector 8", "3,2;EXT4-fs error"))
	if !got.Known || len(got.All) > 0 {
		t.Errorf("counted: %+v", got)
	}
}

func TestAHungTaskIsCountedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	hung := func() health.Figure {
		_, f := Read(b.files, filepath.Join(b.dir, File), b.now)
		return f
	}
	if f := hung(); f.Known || !strings.HasPrefix(f.Absent, "no kernel log report yet; see ") {
		t.Errorf("before: %+v", f)
	}
	records := []string{
		"3,4,1,-;INFO: task jbd2/dm-0-8:412 blocked for more than 122 seconds.\n", failedRequest(5, "sda"),
		"3,6,1,-;INFO: task kworker/u8:1 x:99 blocked for more than 245 seconds.\n",
		"3,7,1,-;      Not tainted 6.1.0-28-amd64 #1 Debian 6.1.119-1\n",
		"11,8,1,-;INFO: task forged:1 blocked for more than 122 seconds.\n", // user.err
		"6,9,1,-;x INFO: task forged:1 blocked for more than 122 seconds.\n",
	}
	b.publishes(of(records...))
	if f := hung(); f != (health.Figure{Known: true, Value: 2}) {
		t.Errorf("two: %+v", f)
	}
	b.publishes(of(append(records[2:], "3,10,1,-;INFO: task etcd:7 blocked for more than 122 seconds.\n")...))
	if f := hung(); f != (health.Figure{Known: true, Value: 3}) {
		t.Errorf("one more: %+v", f)
	}
}

func TestTheReasonForAnUnreadableLogReachesTheAgentAndIsLoggedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if got := b.reads(); !strings.HasPrefix(got.Absent, "no kernel log report yet; see ") {
		t.Errorf("before: %+v", got)
	}
	b.publishes(of(failedRequest(4, "sda")))
	none := func() (io.ReadCloser, error) { return nil, errors.New("there is no /dev/kmsg") }
	got, news := b.publishes(none)
	if got.Known || got.Absent != "there is no /dev/kmsg" ||
		news != "Cannot read the kernel log: there is no /dev/kmsg.\n" {
		t.Errorf("%+v, news %q", got, news)
	}
	if _, news := b.publishes(none); news != "" {
		t.Errorf("reported again: %q", news)
	}
	broken := func() (io.ReadCloser, error) { return &log{fails: unix.EINVAL}, nil }
	if got, _ := b.publishes(broken); got.Absent != "cannot read /dev/kmsg: invalid argument" {
		t.Errorf("%+v", got)
	}
	b.publishes(func() (io.ReadCloser, error) { // the next call reads both records again, and must not count them twice
		return &log{records: []string{failedRequest(4, "sda"), failedRequest(5, "sda")}, fails: unix.EINVAL}, nil
	})
	got, news = b.publishes(of(failedRequest(4, "sda"), failedRequest(5, "sda")))
	if !got.Known || got.All[0].Errors != 2 || news != "" {
		t.Errorf("read again: %+v, news %q", got, news)
	}
	b.now += stale + 1
	if got := b.reads(); got.Known || !strings.Contains(got.Absent, "is stale") {
		t.Errorf("later: %+v", got)
	}
}

func TestAForeignReportIsIgnored(t *testing.T) {
	t.Parallel()
	many, err := json.Marshal(summary{Devices: make([]health.LoggedErrors, mostDevices+1)})
	if err != nil {
		t.Fatal(err)
	}
	for text, why := range map[string]string{
		"x": "unexpected format", "{}": "unexpected format",
		`{"at":-1}`: "unexpected format", string(many): "more than 128 devices", `{"at":1}`: "is stale",
		strings.Repeat(" ", fileLimit+1): "more than 65536 bytes",
	} {
		b := newBench(t)
		if err := os.WriteFile(filepath.Join(b.dir, File), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := b.reads(); got.Known || !strings.Contains(got.Absent, why) {
			t.Errorf("%.20s is read as %+v, want why: %s", text, got, why)
		}
		if got, _ := b.publishes(of(failedRequest(0, "sda"))); !got.Known || len(got.All) != 1 {
			t.Errorf("%.20s is not replaced: %+v", text, got)
		}
	}
}

func TestDevicesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var records []string
	for i := range mostDevices + 10 {
		records = append(records, failedRequest(i, fmt.Sprintf("dev%d", i)))
	}
	if got, _ := b.publishes(of(records...)); len(got.All) != mostDevices {
		t.Errorf("%d devices: %s", len(got.All), got.Absent)
	}
}

func FuzzUnderstand(f *testing.F) {
	f.Add([]byte(failedRequest(1, "sda")))
	f.Add([]byte("6,339,5140900,-,caller=T1;ata3.00: failed command: READ\n DEVICE=b8:0\n"))
	f.Add([]byte("3,4,1,-;INFO: task jbd2/dm-0-8:412 blocked for more than 122 seconds."))
	f.Add([]byte("4,1,2,c;EXT4-fs error (device dm-0) in x"))
	r := newReader()
	f.Fuzz(func(t *testing.T, record []byte) {
		l, is := parseRecord(record)
		if r.hangs(l) && (!is || !strings.Contains(l.text, " blocked ")) {
			t.Fatalf("%q is taken for a hung task", record)
		}
		device, of, does := r.deviceError(l)
		if !does {
			return
		}
		if !is || device == "" || len(device) > 32 || !strings.Contains(l.text, device) {
			t.Fatalf("%q names %q", record, device)
		}
		now := summary{At: 1}
		now.add(device, of)
		data, err := json.Marshal(now)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parse(data); err != nil || !reflect.DeepEqual(again.Devices, now.Devices) {
			t.Errorf("%+v is read back as %+v: %v", now, again, err)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"at":1,"next":3,"devices":[{"device":"sda","errors":2,"resets":1,"fileSystem":1}],"hung":1}`))
	f.Add([]byte(`{"at":1,"absent":"there is no /dev/kmsg","next":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), File)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		devices, hung := Read(rootfile.Beneath(filepath.Dir(path), os.Getuid()), path, time.Minute)
		if devices.Known != hung.Known || devices.Known == (devices.Absent != "") ||
			hung.Known == (hung.Absent != "") || !devices.Known && len(devices.All) > 0 ||
			!hung.Known && hung.Value != 0 {
			t.Errorf("%q is read as %+v and %+v", data, devices, hung)
		}
	})
}
