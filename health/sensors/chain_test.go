// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
)

// lvmOnRAID returns the files of a logical volume on a mirror of two devices: a partition of a SATA disk, and a whole
// NVMe drive.
func lvmOnRAID() map[string]string {
	return map[string]string{
		"sys/dev/block/252:0": "-> ../../devices/virtual/block/dm-0",

		"sys/devices/virtual/block/dm-0/dm/name":          "vg0-etcd\n",
		"sys/devices/virtual/block/dm-0/dm/uuid":          "LVM-0y6tFzKQ\n",
		"sys/devices/virtual/block/dm-0/slaves/md127":     "-> ../../md127",
		"sys/devices/virtual/block/dm-0/queue/rotational": "1\n",

		"sys/devices/virtual/block/md127/md/level":       "raid1\n",
		"sys/devices/virtual/block/md127/slaves/sda2":    "-> ../../../../pci0/ata1/block/sda/sda2",
		"sys/devices/virtual/block/md127/slaves/nvme0n1": "-> ../../../../pci0/nvme/nvme0/nvme0n1",

		"sys/devices/pci0/ata1/block/sda/sda2/partition":                      "2\n",
		"sys/devices/pci0/ata1/block/sda/device/model":                        "ST4000NM0035-1V4\n",
		"sys/devices/pci0/ata1/block/sda/device/vpd_pg80":                     "\x00\x80\x00\x14            ZC18ABCD",
		"sys/devices/pci0/ata1/block/sda/queue/rotational":                    "1\n",
		"sys/devices/pci0/ata1/block/sda/device/scsi_disk/2:0:0:0/cache_type": "write back\n",
		"sys/devices/pci0/ata1/block/sda/queue/write_cache":                   "write back\n",

		"sys/devices/pci0/nvme/nvme0/nvme0n1/device":            "-> ../../nvme0",
		"sys/devices/pci0/nvme/nvme0/model":                     "SAMSUNG MZQL2960HCJR-00A07              \n",
		"sys/devices/pci0/nvme/nvme0/serial":                    "S64FNE0R123456      \n",
		"sys/devices/pci0/nvme/nvme0/nvme0n1/queue/rotational":  "0\n",
		"sys/devices/pci0/nvme/nvme0/nvme0n1/queue/write_cache": "write through\n",
	}
}

// linked writes the kernel's files below a temporary directory; a text that begins with "-> " is a symbolic link.
func linked(t *testing.T, files map[string]string) *Reader {
	t.Helper()
	plain, links := map[string]string{}, map[string]string{}
	for name, text := range files {
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			links[name] = to
		} else {
			plain[name] = text
		}
	}
	r := tree(t, plain)
	for name, to := range links {
		path := filepath.Join(filepath.Dir(r.sys), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestEveryDeviceBelowAVolumeIsFound(t *testing.T) {
	t.Parallel()
	want := []health.Device{
		{Name: "dm-0", Kind: "lvm", Label: "vg0-etcd", On: []string{"md127"}},
		{Name: "md127", Kind: "raid", On: []string{"nvme0n1", "sda2"}},
		{
			Name: "nvme0n1", Kind: "disk", Model: "SAMSUNG MZQL2960HCJR-00A07", Serial: "S64FNE0R123456",
			Medium: "solid", Cache: "write through", AttachedTo: []string{"nvme0"},
		},
		{Name: "sda2", Kind: "partition", On: []string{"sda"}},
		{
			Name: "sda", Kind: "disk", Model: "ST4000NM0035-1V4", Serial: "ZC18ABCD", Medium: "rotating",
			Cache: "write back", OwnCache: "write back", AttachedTo: []string{"ata1"},
		},
	}
	_, got, err := linked(t, lvmOnRAID()).chain(unix.Mkdev(252, 0))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestASuspendedVolumeIsFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"1\n": true, "0\n": false, "": false} {
		files := lvmOnRAID()
		files["sys/devices/virtual/block/dm-0/dm/suspended"] = text
		chain := linked(t, files).Devices(unix.Mkdev(252, 0)).Chain
		if len(chain) == 0 || chain[0].Suspended != want {
			t.Errorf("%q: the volume is %+v, want it suspended: %v", text, chain, want)
		}
	}
}

func TestADriveUnderBothHalvesOfAMirrorIsListedOnce(t *testing.T) {
	t.Parallel()
	files := lvmOnRAID()
	delete(files, "sys/devices/virtual/block/md127/slaves/nvme0n1")
	files["sys/devices/virtual/block/md127/slaves/sda3"] = "-> ../../../../pci0/ata1/block/sda/sda3"
	files["sys/devices/pci0/ata1/block/sda/sda3/partition"] = "3\n"
	var names []string
	for _, d := range linked(t, files).Devices(unix.Mkdev(252, 0)).Chain {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"dm-0", "md127", "sda2", "sda3", "sda"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestADriveWithSeveralControllersIsAttachedToAllOfThem(t *testing.T) {
	t.Parallel()
	r := linked(t, map[string]string{
		"sys/dev/block/259:0": "-> ../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1",

		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/queue/rotational": "0\n",
		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/model":                    "M\n",
		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme1":                    "-> ../../../pci0/nvme/nvme1",
		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0":                    "-> ../../../pci0/nvme/nvme0",
		"sys/devices/pci0/nvme/nvme0/state":                                        "live\n",
		"sys/devices/pci0/nvme/nvme1/state":                                        "live\n",
	})
	_, got, err := r.chain(unix.Mkdev(259, 0))
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if diff := cmp.Diff([]string{"nvme0", "nvme1"}, got[0].AttachedTo); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnreadableChainHasAReason(t *testing.T) {
	t.Parallel()
	many := lvmOnRAID()
	for i := range mostDevices {
		many[fmt.Sprintf("sys/devices/virtual/block/md127/slaves/loop%d", i)] = "-> ../../loop"
		many["sys/devices/virtual/block/loop/loop/backing_file"] = "/a\n"
		many[fmt.Sprintf("sys/devices/virtual/block/dm-0/slaves/ram%d", i)] = fmt.Sprintf("-> ../../ram%d", i)
		many[fmt.Sprintf("sys/devices/virtual/block/ram%d/size", i)] = "1\n"
	}
	broken := lvmOnRAID()
	broken["sys/devices/virtual/block/md127/slaves/sdb"] = "-> ../../gone"
	for what, c := range map[string]struct {
		files  map[string]string
		number uint64
		why    string
	}{
		"tmpfs":                   {lvmOnRAID(), unix.Mkdev(0, 42), string(noBlockDevice)},
		"too many devices":        {many, unix.Mkdev(252, 0), "more than 64 devices"},
		"a device that went away": {broken, unix.Mkdev(252, 0), "cannot resolve"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			got := linked(t, c.files).Devices(c.number)
			if len(got.Chain) > 0 || !strings.Contains(got.Absent, c.why) {
				t.Errorf("read %+v, want why: %s", got, c.why)
			}
		})
	}
}

func TestTheDevicesBelowThisDirectoryAreFound(t *testing.T) {
	t.Parallel()
	var stat unix.Stat_t
	if err := unix.Stat(t.TempDir(), &stat); err != nil {
		t.Fatal(err)
	}
	got := New().Devices(uint64(stat.Dev)) //nolint:unconvert // it is 32 bits wide on some architectures
	if unix.Major(uint64(stat.Dev)) == 0 { //nolint:unconvert // as above
		if got.Absent != string(noBlockDevice) {
			t.Errorf("read %+v without a block device", got)
		}
		return
	}
	if len(got.Chain) == 0 || !got.Chain[len(got.Chain)-1].Leaf() {
		t.Errorf("read %+v", got)
	}
	t.Logf("%+v", got)
}

// FuzzDevices replaces the text of one file.
func FuzzDevices(f *testing.F) {
	for name, text := range degraded() {
		if !strings.HasPrefix(text, "-> ") {
			f.Add(name, text)
		}
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		files := maps.Clone(degraded())
		if was, known := files[name]; !known || strings.HasPrefix(was, "-> ") || strings.HasPrefix(text, "-> ") {
			return
		}
		files[name] = text
		got := linked(t, files).Devices(unix.Mkdev(252, 0))
		if len(got.Chain) != 5 || got.Absent != "" {
			t.Fatalf("read %+v", got)
		}
		for _, f := range []health.Figure{got.FileSystem.ReadOnly, got.FileSystem.Errors} {
			if f.Known == (f.Absent != "") || f.Value < 0 {
				t.Errorf("read %+v", f)
			}
		}
		for _, a := range got.Arrays {
			missing, err := strconv.ParseUint(word(files[arrayDir+"degraded"]), 10, 16)
			if a.Missing < 0 || !(a.Done >= 0 && a.Done <= 1) || a.Absent == "" && redundant(a.Level) &&
				(err != nil || a.Missing != int(missing) || !isSyncAction(a.Doing)) {
				t.Errorf("read %+v", a)
			}
		}
		for _, d := range got.Chain {
			for _, word := range []string{d.Label, d.Model, d.Serial} {
				if len(word) > longestWord || strings.ContainsAny(word, "\x00\n\x1b\t") {
					t.Errorf("read %q", word)
				}
			}
		}
	})
}
