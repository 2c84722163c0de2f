// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"time"
)

// The codes of the checks of the memory modules.
const (
	MemoryCorrected   Code = "MEMORY_ERRORS_CORRECTED"
	MemoryUncorrected Code = "MEMORY_ERRORS_UNCORRECTED"
)

const (
	modulesSpan  = 24 * time.Hour
	modulesLimit = 10 // corrected errors in that span
)

// checkModules is the check of corrected memory errors. They do no harm themselves, but a module with many corrected
// errors is likely to have an uncorrectable one soon.
var checkModules = advice{
	name: "modules", component: Machine,
	source:  "ce_count of the memory controllers (EDAC)",
	limit:   Limit{Of: "corrected errors", Unit: "a day", Enter: modulesLimit, Leave: modulesLimit / 2},
	code:    MemoryCorrected,
	title:   "A memory module reports many corrected errors.",
	meaning: "No data was lost. Modules with many corrected errors fail more often than others.",
	remedy:  "find the module with 'edac-util -v' or 'ras-mc-ctl --errors'; replace it",
	measure: grows(modulesSpan, func(in Input) Figure { return in.Machine.MemoryCorrected },
		withLimit("%.0f corrected memory errors in the last day, limit %.0f")),
}

// declareBroken declares the check of uncorrectable memory errors. The affected memory holds wrong data, and etcd would
// write it to its disk and send it to other members.
func declareBroken() declaration {
	return declaration{
		Check: Check{
			Name: "uncorrectable", Component: Machine, Gates: Everything,
			Source: "ue_count of the memory controllers (EDAC)",
			Limits: []Limit{{Of: "uncorrectable errors", Unit: "since the boot"}},
			Problems: []Problem{
				{
					MemoryUncorrected, Machine, Failed, "The memory has uncorrectable errors.",
					"The affected memory holds wrong data. etcd on this host may write it to disk and " +
						"replicate it.",
					"take the host down with 'quorumctl maintenance on --reason …' and replace the module; the " +
						"error count restarts at zero with the next boot",
				},
			},
			Runbook: findingRunbook,
		},
		start:  OK,
		gather: func(*track) evidence { return &uncorrectable{} },
	}
}

// uncorrectable is the evidence on uncorrectable memory errors. It ignores those that an operator has acknowledged.
type uncorrectable struct {
	plain

	figure Figure
	reset  bool
	known  float64 // number of errors that an operator has acknowledged
}

func (u *uncorrectable) read(in Input) { u.figure, u.reset = in.Machine.MemoryUncorrected, in.reset }

func (u *uncorrectable) absent() string { return u.figure.absent() }

func (u *uncorrectable) text() string {
	return plural(int(u.figure.Value-u.known), "uncorrectable memory error") + ", limit 0"
}

func (u *uncorrectable) transitions() []rule {
	return []rule{
		{
			[]State{OK},
			Failed, MemoryUncorrected, "an uncorrectable memory error",
			func() (string, bool) { return u.text(), u.figure.Value > u.known }, false,
		},
		{
			[]State{Failed},
			OK, "", "an operator resets the health state",
			func() (string, bool) { return "reset by an operator", u.reset }, false,
		},
	}
}

func (u *uncorrectable) entered(from State) {
	if from == Failed {
		u.reset, u.known = false, u.figure.Value
	}
}

func (u *uncorrectable) memory() any { return u.known }

func (u *uncorrectable) recall(memory []byte, _, _ time.Duration) error {
	return strictly(memory, &u.known)
}
