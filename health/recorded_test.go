// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// recording contains the readings of a machine, second by second; see testdata/record.
type recording struct {
	seconds  int
	writes   map[int][]disk.Sample // the samples of each second, without times
	machines map[int][4]Figure
}

func recorded(t *testing.T) recording {
	t.Helper()
	f, err := os.Open("testdata/recorded.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := recording{writes: map[int][]disk.Sample{}, machines: map[int][4]Figure{}}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		at := number(t, fields[0])
		r.seconds = max(r.seconds, int(at)+1)
		switch fields[1] {
		case "machine":
			var m [4]Figure
			for i, text := range fields[2:] {
				if m[i] = (Figure{Absent: "the kernel does not report it"}); text != "-" {
					m[i] = known(number(t, text))
				}
			}
			r.machines[int(at)] = m
		default:
			s := disk.Sample{Lane: map[string]disk.Lane{"direct": disk.LaneDirect, "wal": disk.LaneWAL}[fields[1]]}
			text, short := strings.CutSuffix(fields[2], "!")
			s.Contaminated, s.Latency = short, time.Duration(number(t, text))*time.Microsecond
			r.writes[int(at)] = append(r.writes[int(at)], s)
		}
	}
	return r
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// live lets one second of the recording pass. After its end, the recording starts again.
func (r recording) live(b *bench, at time.Duration) {
	b.now += time.Second
	second := int(at/time.Second) % r.seconds
	for _, s := range r.writes[second] {
		s.End = b.now
		b.pending = append(b.pending, s)
	}
	if m, recorded := r.machines[second]; recorded {
		b.machine.MemoryAvailable, b.machine.MemoryStalled = m[0], m[1]
		b.machine.ProcessorWaited, b.machine.DiskWaited = m[2], m[3]
	}
}

func TestADayOfARecordedMachineRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	lifeOf(t, recordedName, recorded(t).live, 24*time.Hour)
}

const recordedName = "virtual machine, recorded"
