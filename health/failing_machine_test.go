// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// whole writes the full assessment: the listed findings, those hidden behind a cause, and what is not available.
func (s *timeline) whole() {
	// missing readings are listed below
	s.changes = slices.DeleteFunc(s.changes, func(c Change) bool { return c.NotAvailable != "" })
	s.write()
	v := s.result
	fmt.Fprintf(&s.page, "              gates %q\n", v.Gates.Names())
	for _, f := range v.Findings {
		fmt.Fprintf(&s.page, "              [%s] %s since %s, gates %q: %s\n", f.State, f.Code, f.Since-time.Hour,
			f.Gates.Names(), f.Text)
		if f.Cause != "" {
			fmt.Fprintf(&s.page, "                likely cause: %s: %s\n", f.Cause, f.Why)
		}
	}
	for _, c := range v.Checks {
		if c.Behind != "" {
			fmt.Fprintf(&s.page, "              hidden behind %s: %s: %s\n", c.Behind, c.Code, c.Text)
		}
	}
	for _, a := range v.NotAvailable {
		fmt.Fprintf(&s.page, "              not available: %s: %s\n", a.Check, a.Why)
	}
}

// TestTheTimelineOfAFailingMachine shows the whole assessment of each step, not only what it reports about the disk.
func TestTheTimelineOfAFailingMachine(t *testing.T) {
	t.Parallel()
	s := &timeline{bench: newBench(t, DefaultThresholds())}
	s.member = true
	s.heading("The machine is healthy")
	s.each(10*time.Minute, ms)
	s.whole()

	s.heading("A member device of the RAID array fails, and a new one is rebuilt")
	s.devices.Arrays[0].Missing, s.devices.Arrays[0].Failed = 1, []string{"sdb"}
	s.devices.Arrays[0].Doing, s.devices.Arrays[0].Done = "recover", 0.1
	s.hardware.Logged.All[0].Errors++
	s.devices.Chain[1].Errors.Value++
	s.each(10*time.Second, ms)
	s.whole()

	s.heading("The writes of the probe and of etcd are slow meanwhile")
	s.etcd.fsyncs = over32ms
	for range 20 {
		s.each(time.Minute, 18*ms)
		s.etcd.ProposalsFailed.Value++
	}
	s.whole()

	s.heading("The writes hang")
	s.stall(3 * time.Second)
	s.whole()

	s.heading("The array is complete again, and 20 min later the disk is OK")
	s.devices, s.etcd.fsyncs = wellDevices(), 0
	s.devices.Chain[1].Errors.Value++
	s.until(OK, time.Hour)
	s.whole()

	s.heading("Memory runs low, and the kernel kills a process")
	s.machine.MemoryAvailable, s.machine.MemoryStalled = known(4), known(12)
	s.machine.ProcessesKilled.Value++
	s.each(2*time.Minute, ms)
	s.whole()

	s.heading("A drive reports that it is failing; it is worn out, and its errors increase")
	s.machine.MemoryAvailable, s.machine.MemoryStalled = known(60), known(0)
	s.hardware = driven(func(d *Drive) { d.Failed, d.Warnings, d.Used = true, 1, percent(103); d.Errors[0].N += 5 })
	s.each(2*time.Minute, ms)
	s.whole()

	s.heading("A port of the bond loses its link, and packets are lost")
	s.links.Links[2].Carrier = known(0)
	s.machine.Segments.Of += 900
	s.machine.Segments.Among += 9000
	s.each(2*time.Minute, ms)
	s.whole()

	s.heading("No source reports any longer")
	const silent = "the kernel does not report it"
	s.hardware, s.devices = NotAvailable[HardwareReading]("not read"), NotAvailable[DevicesReading](silent)
	s.machine, s.links = NotAvailable[MachineReading](silent), NotAvailable[LinkReading](silent)
	s.each(2*time.Minute, ms)
	s.whole()
	golden(t, "testdata/failing_machine.golden", strings.TrimSpace(s.page.String())+"\n")
}
