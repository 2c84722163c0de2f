// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// The codes of the checks of the PCI Express links of the drives under etcd's data.
const (
	PCILanesMissing Code = "PCI_LANES_MISSING"
	PCIErrors       Code = "PCI_ERRORS"
)

const (
	pciErrorsSpan = day
	// pciCorrected is how many corrected errors a day are normal. The link repeats the packet within microseconds.
	pciCorrected = 100
)

// checkLanes is the check that the PCI Express links of the drives use all their lanes. It ignores the speed of the
// links, which power management reduces.
var checkLanes = advice{
	name: "pci-lanes", component: Machine,
	source: "current_link_width and max_link_width of the PCI Express devices of the drives under etcd's data, and " +
		"of the ports that they are connected to",
	limit: Limit{Of: "links with fewer lanes than both ends support", Unit: "links"},
	code:  PCILanesMissing,
	title: "A drive under etcd's data is connected with fewer PCIe lanes than it could use.",
	meaning: "Some lanes failed when the link was trained, often because of a dirty or loose contact. The drive is " +
		"slower, and the link may fail.",
	remedy: "check 'lspci -vv -s ADDRESS' (LnkSta); take the host down, reseat the drive, its cable or riser, and " +
		"check how the firmware of the machine divides the lanes of the slot",
	measure: lists(time.Minute, time.Minute, listed{
		bad:  "a link has fewer lanes than both ends support",
		well: "every link has all its lanes",
		missing: func(in Input) string {
			return in.noPCI("no drive under etcd's data has a PCI Express link with a known width",
				func(p PCIDevice) bool { return p.Lanes > 0 && p.MostLanes > 0 })
		},
		look: func(in Input, _ bool) (wrong []string) {
			for _, d := range in.leaves() {
				if p := d.PCI; p.Lanes > 0 && p.Lanes < p.MostLanes {
					wrong = append(wrong, fmt.Sprintf("%s (%s) uses %d PCIe lanes of %d", d.Name, p.Address, p.Lanes,
						p.MostLanes))
				}
			}
			return wrong
		},
	}),
}

// checkPCIErrors is the check of the errors of the PCI Express links of the drives. The counts at the first reading are
// ignored, because a link often has some errors when it is trained.
var checkPCIErrors = advice{
	name: "pci-errors", component: Machine,
	source: "aer_dev_correctable, aer_dev_nonfatal and aer_dev_fatal of the PCI Express devices of the drives under " +
		"etcd's data",
	limit: Limit{Of: "uncorrected errors of a PCI Express device", Unit: "a day"},
	also: []Limit{
		{Of: "corrected errors of a PCI Express device", Unit: "a day", Enter: pciCorrected, Leave: pciCorrected},
	},
	code:  PCIErrors,
	title: "The PCIe link of a drive under etcd's data has errors.",
	meaning: "The link loses packets and repeats them, which delays writes. Such a link may fail, and then the drive " +
		"disappears.",
	remedy: "check 'journalctl -k -g AER'; take the host down, reseat the drive, its cable or riser, and update the " +
		"drive's firmware",
	measure: errorCounts(counters{
		span: pciErrorsSpan,
		over: "a day",
		bad:  "a PCI Express device has too many new errors",
		well: "no PCI Express device has too many new errors",
		missing: func(in Input) string {
			return in.noPCI("the kernel counts no PCI Express errors of the drives under etcd's data (AER)",
				func(p PCIDevice) bool { return p.Corrected.Known || p.Uncorrected.Known })
		},
		look: func(in Input) (all []counter) {
			seen := map[string]bool{} // several drives may share a controller
			for _, d := range in.leaves() {
				if p := d.PCI; !seen[p.Address] {
					seen[p.Address] = true
					all = append(all, p.counted(d.Name+" ("+p.Address+")")...)
				}
			}
			return all
		},
	}),
}

// counted returns the error counters that the kernel has.
func (p PCIDevice) counted(title string) (all []counter) {
	if p.Uncorrected.Known {
		all = append(all, counter{
			key: p.Address + "/uncorrected", title: title, of: "uncorrected PCIe errors", value: p.Uncorrected.Value,
		})
	}
	if p.Corrected.Known {
		all = append(all, counter{
			key: p.Address + "/corrected", title: title, of: "corrected PCIe errors", value: p.Corrected.Value,
			tolerated: pciCorrected,
		})
	}
	return all
}

// leaves returns the drives under etcd's data.
func (in Input) leaves() (all []Device) {
	for _, p := range in.places() {
		for _, d := range p.Chain {
			if d.Leaf() {
				all = append(all, d)
			}
		}
	}
	return all
}

// noPCI returns why no PCI Express device of a drive reports what is needed; empty if one does.
func (in Input) noPCI(none string, reports func(PCIDevice) bool) string {
	if why := in.missing(place.absent); why != "" {
		return why
	}
	for _, d := range in.leaves() {
		if reports(d.PCI) {
			return ""
		}
	}
	return none
}
