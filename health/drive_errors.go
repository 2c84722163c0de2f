// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// DriveErrorsGrown is the code of the check of what drives count.
const DriveErrorsGrown Code = "DRIVE_ERRORS"

const (
	driveErrorsSpan = 7 * 24 * time.Hour
	countersKept    = 256 // of all drives
)

// declareDriveErrors declares the check of errors that drives count. What they had counted when they were first looked
// at says nothing: many run for years with a few.
func declareDriveErrors() declaration {
	limit := Limit{Of: "errors that a drive counts", Unit: "a week"}
	return declaration{
		Check: Check{
			Name: "drive-errors", Component: Machine, Gates: Nothing, Behind: []string{"smart"},
			Source: smartSource,
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					DriveErrorsGrown, Machine, Warm, "A drive counts errors of its medium.",
					"It has met blocks lately that it cannot read or write as it should. A drive on which such " +
						"errors appear fails more often than others, and what lay in them may be lost.",
					"look at 'smartctl -x /dev/NAME'; if they become more, have the drive replaced",
				},
			},
			Runbook: findingRunbook,
		},
		start:  OK,
		gather: func(*track) evidence { return &driveErrors{kept: map[string]growth{}} },
	}
}

// driveErrors is the evidence on the counters of all drives.
type driveErrors struct {
	plain

	why   string
	found []string
	kept  map[string]growth // by drive and counter
}

func (e *driveErrors) read(in Input) {
	e.why = in.Hardware.Drives.absent()
	for key, k := range e.kept {
		k.age(in.Now, driveErrorsSpan)
		e.kept[key] = k
	}
	if e.why != "" {
		return
	}
	e.found = nil
	for _, d := range in.Hardware.Drives.All {
		for _, c := range d.Errors {
			key := d.Name + "/" + d.Serial + "/" + c.Of
			k, known := e.kept[key]
			if d.Absent != "" || !known && len(e.kept) >= countersKept {
				continue
			}
			k.take(in.Now, float64(c.N))
			e.kept[key] = k
			if n := k.sum(); n > 0 {
				e.found = append(e.found, fmt.Sprintf("%s: %.0f more %s in a week, limit 0", d.title(), n, c.Of))
			}
		}
	}
}

func (e *driveErrors) absent() string { return e.why }

func (e *driveErrors) text() string { return enumerated(e.found, errorsWell()) }

func errorsWell() string { return "no counter of a drive has grown in " + show(driveErrorsSpan) }

func (e *driveErrors) ways() []rule {
	return []rule{
		{
			[]State{OK},
			Warm, DriveErrorsGrown, "a counter of a drive has grown in " + show(driveErrorsSpan),
			func() (string, bool) { return e.text(), len(e.found) > 0 }, false,
		},
		{
			[]State{Warm},
			OK, "", errorsWell(),
			func() (string, bool) { return e.text(), len(e.found) == 0 },
			false, // a whole span without is long enough each time
		},
	}
}

func (e *driveErrors) memory() any { return e.kept }

func (e *driveErrors) recall(memory []byte, at, _ time.Duration) error {
	var kept map[string]growth
	if err := strictly(memory, &kept); err != nil {
		return err
	}
	if len(kept) > countersKept {
		return fmt.Errorf("it has %d counters of drives, more than %d", len(kept), countersKept)
	}
	for _, key := range slices.Sorted(maps.Keys(kept)) {
		if err := kept[key].check(at); err != nil {
			return err
		}
		if !kept[key].Seen {
			return errors.New("it has a counter that nobody has seen")
		}
	}
	if kept != nil {
		e.kept = kept
	}
	return nil
}
