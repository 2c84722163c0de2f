// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quorumd/quorumd/health"
)

const (
	linkWidth    = "current_link_width"
	maxLinkWidth = "max_link_width"
	mostLanes    = 32 // of PCI Express; an unknown width is 0 or 255
)

// pci returns the PCI Express device that connects a block device. The directory of an NVMe drive with several
// controllers is not below a PCI device, so the first of its controllers is used.
//
// The kernel reads the width from the configuration space of the device. Such a read waits for no command, and fails at
// once if the device does not answer.
func (r *Reader) pci(dir string, attachedTo []string) health.PCIDevice {
	starts := []string{dir}
	for _, name := range attachedTo {
		if controller, err := filepath.EvalSymlinks(filepath.Join(r.sys, "class/nvme", name)); err == nil {
			starts = append(starts, controller)
		}
	}
	for _, start := range starts {
		for above := start; above != filepath.Dir(above); above = filepath.Dir(above) {
			if exists(above, linkWidth) {
				return pciDevice(above)
			}
		}
	}
	return health.PCIDevice{}
}

func pciDevice(dir string) health.PCIDevice {
	p := health.PCIDevice{
		Address: word(filepath.Base(dir)), Lanes: lanes(dir, linkWidth), MostLanes: lanes(dir, maxLinkWidth),
		Corrected: pciErrors(dir, "correctable", "TOTAL_ERR_COR"),
	}
	// A slot may have fewer lanes than the drive.
	if port := lanes(filepath.Dir(dir), maxLinkWidth); port > 0 && p.MostLanes > 0 {
		p.MostLanes = min(p.MostLanes, port)
	}
	nonfatal, fatal := pciErrors(dir, "nonfatal", "TOTAL_ERR_NONFATAL"), pciErrors(dir, "fatal", "TOTAL_ERR_FATAL")
	if p.Uncorrected = nonfatal; nonfatal.Known && fatal.Known {
		p.Uncorrected.Value += fatal.Value
	}
	return p
}

// lanes reads the width of a link; 0 if it is unknown.
func lanes(dir, name string) int {
	n, err := strconv.ParseUint(attribute(dir, name), 10, 8)
	if err != nil || n > mostLanes {
		return 0
	}
	return int(n)
}

// pciErrors reads how many errors of one severity a device has had.
func pciErrors(dir, severity, total string) health.Figure {
	path := filepath.Join(dir, "aer_dev_"+severity)
	text, err := read(path)
	if err != nil {
		return health.Figure{Absent: "the kernel has no error counters for this PCI Express device (AER)"}
	}
	for line := range strings.Lines(text) {
		if n, found := strings.CutPrefix(strings.TrimSpace(line), total+" "); found {
			return figure(count(path, n))
		}
	}
	return health.Figure{Absent: "cannot read " + path}
}
