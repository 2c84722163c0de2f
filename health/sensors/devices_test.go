// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
)

const (
	arrayDir = "sys/devices/virtual/block/md127/md/"
	sdaDir   = "sys/devices/pci0/ata1/block/sda/"
)

// degraded returns the files of an ext4 file system on a volume. The volume is on a mirror that has lost a member
// device and is being rebuilt.
func degraded() map[string]string {
	files := lvmOnRAID()
	maps.Copy(files, map[string]string{
		"sys/block/dm-0":                "-> ../devices/virtual/block/dm-0",
		"sys/block/sda":                 "-> ../devices/pci0/ata1/block/sda",
		"sys/block/nvme0n1":             "-> ../devices/pci0/nvme/nvme0/nvme0n1",
		arrayDir + "array_state":        "clean\n",
		arrayDir + "degraded":           "1\n",
		arrayDir + "sync_action":        "recover\n",
		arrayDir + "sync_completed":     "500 / 2000\n",
		arrayDir + "dev-sda2/state":     "faulty,write_error\n",
		arrayDir + "dev-sda2/errors":    "5\n",
		arrayDir + "dev-nvme0n1/state":  "in_sync\n",
		sdaDir + "device/iotmo_cnt":     "0x1a\n",
		sdaDir + "stat":                 "90 1 720 30 500 20 8000 700 3 650 900 0 0 0 0 250 400\n",
		"sys/fs/ext4/dm-0/errors_count": "3\n", "sys/fs/ext4/dm-0/last_error_time": "1763629920\n",
		"proc/self/mountinfo": "21 1 8:1 / / rw,relatime - xfs /dev/sdb1 rw\n" +
			"22 21 252:0 / /var/lib/etcd ro,relatime - ext4 /dev/mapper/vg0-etcd rw,errors=remount-ro,nobarrier\n",
	})
	return files
}

func TestDevicesAreReadFromTheKernelsFiles(t *testing.T) {
	t.Parallel()
	got := linked(t, degraded()).Devices(unix.Mkdev(252, 0))
	want := []health.Array{{
		Name: "md127", Level: "raid1", Missing: 1, Failed: []string{"sda2"}, Doing: "recover", Done: 0.25,
	}}
	if diff := cmp.Diff(want, got.Arrays); diff != "" {
		t.Error(diff)
	}
	system := health.FileSystem{
		Type: "ext4", ReadOnly: health.Figure{Known: true}, Errors: health.Figure{Value: 3, Known: true},
		LastError: time.Unix(1763629920, 0), Unsafe: "nobarrier",
	}
	if diff := cmp.Diff(system, got.FileSystem); diff != "" {
		t.Error(diff)
	}
	traffic := health.Traffic{
		Known: true, Writes: 500, Flushes: 250, Written: 8000 * 512, Read: 720 * 512, InFlight: 3,
		WriteTime: 700 * time.Millisecond, FlushTime: 400 * time.Millisecond, Busy: 650 * time.Millisecond,
	}
	sda, leg := of(t, got, "sda"), of(t, got, "sda2")
	if diff := cmp.Diff(traffic, sda.Traffic); diff != "" {
		t.Error(diff)
	}
	if sda.Errors != (health.Figure{Value: 26, Known: true}) || leg.Errors != (health.Figure{Value: 5, Known: true}) {
		t.Errorf("errors of sda %+v, of its partition %+v", sda.Errors, leg.Errors)
	}
	if nvme := of(t, got, "nvme0n1"); nvme.Errors.Known || nvme.Errors.Absent == "" || nvme.Traffic.Known {
		t.Errorf("a drive without counters: %+v", nvme)
	}
	if got.At != time.Hour {
		t.Errorf("read at %s", got.At)
	}
}

func of(t *testing.T, d health.DevicesReading, name string) health.Device {
	t.Helper()
	for _, device := range d.Chain {
		if device.Name == name {
			return device
		}
	}
	t.Fatalf("there is no %s in %+v", name, d.Chain)
	return health.Device{}
}

func TestAnUnreadableFileSystemHasAReasonAndIsNotHealthy(t *testing.T) {
	t.Parallel()
	const line = "22 21 252:0 / /var/lib/etcd rw - "
	errorCount := "sys/fs/ext4/dm-0/errors_count"
	for what, c := range map[string]struct {
		file, text     string
		readOnly, errs string // the reason, or the value
	}{
		"read-only":            {"proc/self/mountinfo", line + "ext4 /dev/a ro,errors=remount-ro\n", "1", "3"},
		"an ext4 in emergency": {"proc/self/mountinfo", line + "ext4 /dev/a rw,emergency_ro\n", "1", "3"},
		"only this mount is ro": {
			"proc/self/mountinfo", strings.Replace(line, "rw", "ro", 1) + "ext4 /dev/a rw\n", "0", "3",
		},
		"not mounted":           {"proc/self/mountinfo", "", "is not in", "3"},
		"nonsense":              {"proc/self/mountinfo", "\x00 \x01\n", "cannot read", "3"},
		"a count below nothing": {errorCount, "-1\n", "0", "is not a number"},
		"a count of no end":     {errorCount, strings.Repeat("1", 1<<20), "0", "cannot read"},
		"no count":              {errorCount, "", "0", "does not report errors"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			files := degraded()
			if files[c.file] = c.text; c.text == "" {
				delete(files, c.file)
				files["proc/self/other"] = ""
			}
			if what == "not mounted" {
				files[c.file] = "21 1 8:1 / / rw,relatime - xfs /dev/sdb1 rw\n"
			}
			got := linked(t, files).Devices(unix.Mkdev(252, 0)).FileSystem
			for want, f := range map[string]health.Figure{c.readOnly: got.ReadOnly, c.errs: got.Errors} {
				if f.Known && want != map[float64]string{0: "0", 1: "1", 3: "3"}[f.Value] ||
					!f.Known && (!strings.Contains(f.Absent, want) || f.Value != 0) {
					t.Errorf("read %+v, want %s", f, want)
				}
			}
		})
	}
}

func TestAnUnknownArrayStateIsNotHealthy(t *testing.T) {
	t.Parallel()
	for file, texts := range map[string][]string{
		"degraded":    {"", "\n", "many\n", "-1\n", strings.Repeat("1", 40)},
		"sync_action": {"", "\x00\n", "healing\n"}, "array_state": {"", "fine\n"}, "level": {"", "raid0 \x01raid1\n"},
	} {
		for _, text := range texts {
			files := degraded()
			files[arrayDir+"degraded"] = "0\n"
			if files[arrayDir+file] = text; text == "" {
				delete(files, arrayDir+file)
			}
			got := linked(t, files).Devices(unix.Mkdev(252, 0)).Arrays
			known := file == "level" // the kernel reports everything else
			if len(got) != 1 || (got[0].Absent == "") != known {
				t.Errorf("with %q in %s: %+v", text, file, got)
			}
		}
	}
	files := degraded()
	files[arrayDir+"level"] = "raid0\n"
	delete(files, arrayDir+"degraded")
	delete(files, arrayDir+"sync_action")
	if got := linked(t, files).Devices(unix.Mkdev(252, 0)).Arrays; len(got) != 1 || got[0].Absent != "" {
		t.Errorf("without redundancy: %+v", got)
	}
}

func TestADelayedCheckOfAnArrayHasNoProgress(t *testing.T) {
	t.Parallel()
	files := degraded()
	files[arrayDir+"sync_action"], files[arrayDir+"sync_completed"] = "check\n", "delayed\n"
	files[arrayDir+"degraded"] = "0\n"
	files[arrayDir+"dev-sda2/state"] = "in_sync\n"
	got := linked(t, files).Devices(unix.Mkdev(252, 0)).Arrays
	want := []health.Array{{Name: "md127", Level: "raid1", Doing: "check"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
