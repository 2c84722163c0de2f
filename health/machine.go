// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"time"
)

// MachineReading is what the kernel tells of the machine beside its disk, at one moment. The zero value says that
// nothing is known.
type MachineReading struct {
	// MemoryAvailable is the part of the memory that may be had without swapping, in percent.
	MemoryAvailable Figure
	// MemoryStalled is the part of the last minute in which all processes waited for memory, in percent (PSI, full).
	MemoryStalled Figure
	// ProcessesKilled is how many processes the kernel has ended since the boot because there was no memory left.
	ProcessesKilled Figure
	// MemoryCorrected and MemoryUncorrected are errors of the memory modules since the boot (EDAC).
	MemoryCorrected, MemoryUncorrected Figure
	// ClockError is what the kernel thinks the wall clock may be off at most, in seconds. It grows while nobody
	// corrects it.
	ClockError Figure
}

// Silent is the reading of a machine that tells nothing, and why.
func Silent(why string) MachineReading {
	f := Figure{Absent: why}
	return MachineReading{f, f, f, f, f, f}
}

// Figure is a number that may not be there. The zero value says that nobody has looked.
type Figure struct {
	Value float64
	// Known says that there is one, and Absent otherwise why not, without numbers that change.
	Known  bool
	Absent string
}

// notYet says why there is no figure before the first look.
const notYet = "not looked at yet"

// absent says why there is no figure; empty when there is.
func (f Figure) absent() string {
	if f.Known {
		return ""
	}
	return cmp.Or(f.Absent, notYet)
}

// level is the evidence of a check that holds one figure against one limit: beyond it for a while things
// are bad, within the other one for a while they are well again.
type level struct {
	plain

	now     time.Duration
	code    Code
	limit   Limit
	track   *track
	of      func(Input) Figure
	words   func(Figure, Limit) string
	figure  Figure
	begun   bool
	badFor  time.Duration // that it must be beyond the limit
	wellFor time.Duration // that it must be within the other one, before patience doubles that
	lastOK  time.Duration // when it was last within the limit
	lastBad time.Duration // when it was last beyond the limit that it is left by
}

func (l *level) read(in Input) {
	l.now, l.figure = in.Now, l.of(in)
	if !l.begun {
		l.begun, l.lastOK, l.lastBad = true, l.now, l.now
	}
	if !l.figure.Known || !l.limit.beyond(l.figure.Value, false) {
		l.lastOK = l.now
	}
	if !l.figure.Known || l.limit.beyond(l.figure.Value, true) {
		l.lastBad = l.now
	}
}

func (l *level) absent() string { return l.figure.absent() }

func (l *level) text() string { return l.words(l.figure, l.limit) }

func (l *level) ways() []rule {
	bad, well := "over", "at most"
	if l.limit.Below {
		bad, well = "below", "at least"
	}
	lasting := ""
	if l.badFor > 0 {
		lasting = " for " + show(l.badFor)
	}
	return []rule{
		{
			[]State{OK},
			Warm, l.code, fmt.Sprintf("%s %s %.10g %s%s", l.limit.Of, bad, l.limit.Enter, l.limit.Unit, lasting),
			func() (string, bool) { return l.text(), l.now-l.lastOK >= l.badFor && l.lastOK < l.now },
			false,
		},
		{
			[]State{Warm},
			OK, "", fmt.Sprintf("%s %s %.10g %s for %s", l.limit.Of, well, l.limit.Leave, l.limit.Unit,
				show(l.wellFor)),
			func() (string, bool) {
				return l.text(), l.now-l.lastBad >= l.track.patience(OK, l.wellFor, l.now)
			},
			true,
		},
	}
}
