// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package smart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/systemd/rootfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func percent(n int) *int { return &n }

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestOutputOfSmartctlIsParsed(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]health.Drive{
		"nvme.json": {
			Name: "x", Model: "EXAMPLE DC 960", Serial: "EX0001", Firmware: "1.0",
			Failed: true, Warns: true, Warnings: 17,
			Spare: percent(8), SpareLimit: percent(10), Used: percent(103), HotMinutes: percent(9),
			Errors: []health.DriveErrors{{Of: "media errors", N: 12}},
		},
		"ata.json": {
			Name: "x", Model: "EXAMPLE HDD", Serial: "EX0002", Used: percent(12), Hours: percent(4),
			Capacitor: &health.CapacitorTest{Value: 4, Threshold: 10}, Errors: []health.DriveErrors{
				{Of: "reallocated sectors", N: 16},
				{Of: "uncorrectable errors", N: 3},
				{Of: "unreadable sectors", N: 1},
			},
		},
		"scsi.json": {
			Name: "x", Model: "EXAMPLE SAS", Serial: "EX0003", Firmware: "HPD3", Hours: percent(31000),
			Used: percent(3), Errors: []health.DriveErrors{
				{Of: "grown defects", N: 4}, {Of: "uncorrectable errors", N: 3},
			},
		},
		"raid.json": {Name: "x", Absent: "/dev/sdc: this is a RAID controller; please try adding '-d megaraid,N'"},
	} {
		if got := parseDrive("x", fixture(t, file)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as\n%+v, want\n%+v", file, got, want)
		}
	}
}

func TestOutputWithoutResultsIsUnknown(t *testing.T) {
	t.Parallel()
	for said, why := range map[string]string{
		"":                                  "not JSON",
		"{}":                                "no SMART support",
		`"two"`:                             "is not of type smart.output",
		`{"smart_status":{}}`:               "no SMART support",
		`{"smart_status":{"passed":"yes"}}`: "smart_status.passed is not of type bool",
		`{"nvme_smart_health_information_log":{"available_spare":9}}`:                        "no SMART support",
		`{"nvme_smart_health_information_log":{"critical_warning":300}}`:                     "critical_warning is not of type uint8",
		`{"smartctl":{"messages":[{"string":"It is in STANDBY\u0007","severity":"error"}]}}`: "It is in STANDBY",
	} {
		d := parseDrive("sda", []byte(said))
		if !strings.HasSuffix(d.Absent, why) || d.Failed || d.Used != nil || d.Errors != nil {
			t.Errorf("%s is read as %+v, want why: %s", said, d, why)
		}
	}
	d := parseDrive("nvme0", []byte(`{"smart_status":{"passed":true},"nvme_smart_health_information_log":{}}`))
	if d.Absent != "" || d.Warns || d.Spare != nil || d.SpareLimit != nil || d.Used != nil || d.Errors != nil {
		t.Errorf("an empty log is read as %+v", d)
	}
}

func TestACounterWithoutANumberIsNotZero(t *testing.T) {
	t.Parallel()
	for _, said := range []string{
		`"ata_smart_attributes":{"table":[{"id":5,"raw":{}},{"id":187}]}`,
		`"scsi_error_counter_log":{"read":{},"write":{"errors_corrected_by_eccfast":9}}`,
		`"scsi_grown_defect_list":null`,
	} {
		d := parseDrive("sda", []byte(`{"smart_status":{"passed":true},`+said+`}`))
		if d.Absent != "" || d.Errors != nil {
			t.Errorf("%s is read as %+v", said, d)
		}
	}
}

func TestImpossibleNumbersAreDropped(t *testing.T) {
	t.Parallel()
	d := parseDrive("sda", []byte(`{"smart_status":{"passed":true},"scsi_percentage_used_endurance_indicator":-7,
		"scsi_grown_defect_list":18446744073709551615}`))
	if d.Absent != "" || d.Used != nil || d.Errors != nil {
		t.Errorf("read as %+v", d)
	}
}

func FuzzUnderstand(f *testing.F) {
	for _, file := range []string{"nvme.json", "ata.json", "scsi.json", "raid.json"} {
		f.Add(fixture(f, file))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		d := parseDrive("sda", said)
		var o output
		if err := json.Unmarshal(said, &o); d.Absent == "" && (err != nil || !d.Warns &&
			(o.Status == nil || o.Status.Passed == nil)) {
			t.Errorf("without a self-assessment: %+v", d)
		}
		data, err := json.Marshal(answers{Drives: []health.Drive{d}})
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseAnswers(data)
		if err != nil || !reflect.DeepEqual(again.Drives[0], d) {
			t.Errorf("%+v is read back as %+v: %v", d, again, err)
		}
	})
}

// machine returns an asker for a machine with these drives in its /sys, and the tree of its files. The asker's smartctl
// runs the script, in which $drive is the drive that is asked about; if the script is empty, there is no smartctl.
func machine(t *testing.T, script string, drives ...string) (asker, rootfile.Tree) {
	t.Helper()
	dir := t.TempDir()
	a := asker{
		program: filepath.Join(dir, "smartctl"), sys: filepath.Join(dir, "sys"), dir: filepath.Join(dir, "run"),
		each: 20 * time.Second, all: time.Minute,
	}
	write := func(path, text string, mode os.FileMode) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	if script != "" {
		write(a.program, "#!/bin/sh\nfor drive; do :; done\n"+script, 0o755)
	}
	for _, name := range drives {
		if strings.HasPrefix(name, "nvme") {
			write(filepath.Join(a.sys, "class/nvme", name, "model"), "M\n", 0o644)
		} else {
			write(filepath.Join(a.sys, "block", name, "removable"), "0\n", 0o644)
		}
	}
	if err := os.MkdirAll(a.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return a, rootfile.Beneath(dir, os.Getuid())
}

// published asks the drives, and returns what the agent reads, and the news.
func published(t *testing.T, a asker, files rootfile.Tree) (health.Several[health.Drive], string) {
	t.Helper()
	var news strings.Builder
	if err := a.publish(t.Context(), files, &news); err != nil {
		t.Fatal(err)
	}
	return Read(files, filepath.Join(a.dir, File), Monotonic()), news.String()
}

func TestTheResultsOfAllDrivesReachTheAgent(t *testing.T) {
	t.Parallel()
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("cd %s\ncase $drive in /dev/nvme0) cat nvme.json; exit 8;; /dev/sda) cat ata.json;; "+
		"*) cat raid.json; exit 2;; esac\n", testdata)
	a, files := machine(t, script, "nvme0", "sda", "sdc")
	got, news := published(t, a, files)
	if !got.Known || len(got.All) != 3 || !got.All[0].Failed || got.All[1].Serial != "EX0002" ||
		got.All[2].Absent == "" {
		t.Errorf("the agent reads %+v", got)
	}
	if !strings.HasPrefix(news, "sdc is skipped: /dev/sdc: this is a RAID") ||
		strings.Count(news, "\n") != 1 {
		t.Errorf("news: %q", news)
	}
	if _, news := published(t, a, files); news != "" {
		t.Errorf("reported again: %q", news)
	}
}

func TestTheReasonForMissingResultsReachesTheAgent(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		script string
		drives []string
		why    string
	}{
		"no smartctl":       {"", []string{"sda"}, "smartctl is not installed"},
		"no drives":         {"exit 1\n", nil, "no NVMe, SCSI or SATA drive found"},
		"only a controller": {"echo '{}'\n", []string{"sda", "sdb"}, "sda: no SMART support"},
		"a broken smartctl": {
			"kill -9 $$\n", []string{"sda"}, "sda: cannot parse the output of smartctl: not JSON",
		},
		"an endless answer": {"exec yes\n", []string{"sda"}, "sda: the output of smartctl is too long"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a, files := machine(t, c.script, c.drives...)
			if got, _ := published(t, a, files); got.Known || got.Absent != c.why {
				t.Errorf("the agent reads %+v, want why: %s", got, c.why)
			}
		})
	}
}

func TestASilentDriveIsSkippedAndNotAskedAgainMeanwhile(t *testing.T) {
	t.Parallel()
	a, files := machine(t, "case $drive in /dev/sda) sleep 15 & wait;; esac\n"+
		"echo '{\"smart_status\":{\"passed\":true}}'\n", "sda", "sdb")
	a.each = 2 * time.Second
	got, _ := published(t, a, files)
	if !got.Known || got.All[0].Absent != errHangs.Error() || got.All[1].Absent != "" {
		t.Errorf("the agent reads %+v", got)
	}
	// The sleep of the script still holds the lock, as does a smartctl that hangs in the kernel.
	began := time.Now()
	if _, err := a.smartctl(t.Context(), "sda"); err == nil || time.Since(began) > a.each {
		t.Errorf("asked again: %v after %s", err, time.Since(began))
	}
}

func TestAllDrivesTogetherHaveOneDeadline(t *testing.T) {
	t.Parallel()
	a, files := machine(t, "exec sleep 30\n", "sda", "sdb", "sdc")
	a.each, a.all = 300*time.Millisecond, 300*time.Millisecond
	if err := a.publish(t.Context(), files, &strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	data, err := files.Read(filepath.Join(a.dir, File), fileLimit)
	if err != nil || strings.Count(string(data), errNoTime.Error()) != 2 {
		t.Errorf("it wrote %s: %v", data, err)
	}
}

func TestAnOldOrInvalidReportIsIgnored(t *testing.T) {
	t.Parallel()
	many := `{"drives":[` + strings.Repeat(`{"name":"sda"},`, mostDrives) + `{"name":"sda"}]}`
	for text, why := range map[string]string{
		`{"at":3600000000000,"drives":[{"name":"sda"}]}`:      "",
		`{"at":1,"drives":[{"name":"sda"}]}`:                  "the drive report is stale",
		`{"at":99999999999999999,"drives":[{"name":"sda"}]}`:  "the drive report is stale",
		`{"at":3600000000000,"absent":"smartctl is missing"}`: "smartctl is missing",
		`[]`:                         "unexpected format",
		`{"drives":[{"model":"m"}]}`: "it has an invalid drive",
		`{"drives":[{"name":"a","errors":[{},{},{},{},{}]}]}`: "it has an invalid drive",
		many:                           "it has more than 64 drives",
		strings.Repeat(" ", fileLimit): "has more than 262144 bytes",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, File)
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		files := rootfile.Beneath(dir, os.Getuid())
		got := Read(files, path, 3*time.Hour)
		if got.Known != (why == "") || !strings.Contains(got.Absent, why) {
			t.Errorf("%.80s is read as %+v, want why: %s", text, got, why)
		}
	}
	dir := t.TempDir()
	if got := Read(rootfile.Beneath(dir, os.Getuid()), filepath.Join(dir, File), 0); got.Known ||
		!strings.Contains(got.Absent, "quorumd-smart.timer") {
		t.Errorf("without a file it reads %+v", got)
	}
}

func TestAReportWritableByOthersIsIgnored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, File)
	if err := os.WriteFile(path, []byte(`{"drives":[{"name":"sda"}]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := Read(rootfile.Beneath(dir, os.Getuid()), path, 0); got.Known || got.Absent == "" {
		t.Errorf("read as %+v", got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"at":1,"drives":[{"name":"sda","spare":3,"errors":[{"of":"media errors","n":2}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseAnswers(data)
		if err != nil {
			return
		}
		for _, d := range a.Drives {
			if len([]rune(d.Absent)) > longest || d.Used != nil && *d.Used > 255 {
				t.Errorf("read as %+v", d)
			}
		}
	})
}
