// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
)

const (
	portDir = "sys/devices/pci0000:00/0000:00:1d.0/"
	nvmeDir = portDir + "0000:02:00.0/"

	nvmeLink = "-> ../../devices/pci0000:00/0000:00:1d.0/0000:02:00.0/nvme/nvme0/nvme0n1"
)

// nvmeOnPCI returns the files of an NVMe drive that has had PCI Express errors, and uses fewer lanes than its slot has.
func nvmeOnPCI() map[string]string {
	return map[string]string{
		"sys/dev/block/259:0":                            nvmeLink,
		nvmeDir + "nvme/nvme0/nvme0n1/queue/write_cache": "write back\n",
		nvmeDir + "current_link_width":                   "2\n",
		nvmeDir + "max_link_width":                       "4\n",
		nvmeDir + "aer_dev_correctable":                  "RxErr 3\nBadTLP 4\nTOTAL_ERR_COR 7\n",
		nvmeDir + "aer_dev_nonfatal":                     "Undefined 0\nTOTAL_ERR_NONFATAL 2\n",
		nvmeDir + "aer_dev_fatal":                        "TOTAL_ERR_FATAL 1\n",
		portDir + "max_link_width":                       "8\n",
	}
}

func TestTheLinkOfADriveIsReadFromItsPCIDevice(t *testing.T) {
	t.Parallel()
	const unsupported = "the kernel has no error counters for this PCI Express device (AER)"
	known := func(n float64) health.Figure { return health.Figure{Value: n, Known: true} }
	for what, c := range map[string]struct {
		files map[string]string // an empty text means that there is no file
		want  health.PCIDevice
	}{
		"a drive with fewer lanes than the slot": {nil, health.PCIDevice{
			Address: "0000:02:00.0", Lanes: 2, MostLanes: 4, Corrected: known(7), Uncorrected: known(3),
		}},
		"a slot with fewer lanes than the drive": {
			map[string]string{portDir + "max_link_width": "2\n"},
			health.PCIDevice{
				Address: "0000:02:00.0", Lanes: 2, MostLanes: 2, Corrected: known(7), Uncorrected: known(3),
			},
		},
		"no counters, unknown width": {
			map[string]string{
				nvmeDir + "aer_dev_correctable": "", nvmeDir + "aer_dev_nonfatal": "", nvmeDir + "aer_dev_fatal": "",
				nvmeDir + "max_link_width": "255\n", nvmeDir + "current_link_width": "0\n",
			},
			health.PCIDevice{
				Address: "0000:02:00.0", Corrected: health.Figure{Absent: unsupported},
				Uncorrected: health.Figure{Absent: unsupported},
			},
		},
		"no PCI device": {
			map[string]string{nvmeDir + "current_link_width": ""}, health.PCIDevice{},
		},
	} {
		files := nvmeOnPCI()
		maps.Copy(files, c.files)
		maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
		got := linked(t, files).Devices(unix.Mkdev(259, 0))
		if diff := cmp.Diff(c.want, of(t, got, "nvme0n1").PCI); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

func TestADriveWithSeveralControllersHasTheLinkOfTheFirst(t *testing.T) {
	t.Parallel()
	files := nvmeOnPCI()
	delete(files, nvmeDir+"nvme/nvme0/nvme0n1/queue/write_cache")
	files["sys/dev/block/259:0"] = "-> ../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1"
	files["sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/queue/write_cache"] = "write back\n"
	const controller = "pci0000:00/0000:00:1d.0/0000:02:00.0/nvme/nvme0"
	files["sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0"] = "-> ../../../" + controller
	files[nvmeDir+"nvme/nvme0/model"] = "M\n"
	files["sys/class/nvme/nvme0"] = "-> ../../devices/" + controller
	got := of(t, linked(t, files).Devices(unix.Mkdev(259, 0)), "nvme0n1").PCI
	if got.Address != "0000:02:00.0" || got.Lanes != 2 {
		t.Errorf("got %+v", got)
	}
}
