// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

func wellShared() SharedReading {
	return SharedReading{Known: true, Voters: []Placement{{Host: "n2", Disks: []string{"0123456789abcdef"}}}}
}

func onMachine() SharedReading {
	return SharedReading{Known: true, Voters: []Placement{{Host: "n2", SameMachine: true}}}
}

func sharedEdges() []edge {
	set := func(s SharedReading, lasting time.Duration) func(*bench) {
		return func(b *bench) { b.shared = s; b.each(lasting, quiet) }
	}
	return []edge{
		{"another voter shares this host's hardware", set(wellShared(), time.Minute), set(onMachine(), time.Second)},
		{
			"no other voter shares this host's hardware",
			func(b *bench) {
				set(onMachine(), time.Minute)(b)
				set(wellShared(), time.Minute-time.Second)(b)
			},
			set(wellShared(), time.Second),
		},
	}
}

func ssd(serial, wwid string) Device {
	return Device{Name: "sda", Kind: "disk", Model: "Samsung SSD 870", Serial: serial, WWID: wwid}
}

func TestAVoterOnTheSameMachineOrDiskPreventsAJoinAndNothingElse(t *testing.T) {
	t.Parallel()
	mine := ssd("S6PUNX0T900123", "")
	for want, s := range map[string]SharedReading{
		"": wellShared(),
		"the voter of n2 runs on this machine, under the same kernel": onMachine(),
		"the voter of n3 has its data on the same disk: Samsung SSD 870 sda": {
			Known: true, Voters: []Placement{{Host: "n3", Disks: []string{"x", mine.Identity()}}},
		},
	} {
		b := newBench(t, DefaultThresholds())
		b.member = true
		b.devices.Chain = []Device{{Name: "sda1", Kind: "partition", On: []string{"sda"}, Serial: mine.Serial}, mine}
		b.each(time.Hour, ms)
		b.shared = s
		b.each(time.Second, ms)
		if got := b.found(HardwareShared); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
		gates := Nothing
		if want != "" {
			gates = Joins
		}
		if b.result.Gates != gates {
			t.Errorf("%s: it gates %v", want, b.result.Gates.Names())
		}
	}
}

func TestOtherVotersThatAreUnknownAreNoFinding(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultThresholds())
	b.shared = SharedReading{Absent: "host.allowSharedHardware is set", Voters: onMachine().Voters}
	b.each(time.Minute, ms)
	if got := b.found(HardwareShared); got != "" {
		t.Error(got)
	}
}

func TestOnlyAValueThatDistinguishesDisksIdentifiesOne(t *testing.T) {
	t.Parallel()
	for _, d := range []Device{
		ssd("", ""), ssd("0001", ""), ssd("00000000000000000000", ""), ssd("1234567890", ""),
		ssd("12345678901", ""),
		ssd("QM00001", ""), ssd("", "t10.ATA     QEMU HARDDISK                           QM00001"),
		ssd("abababababab", ""), ssd("ABCDEFGHIJ", ""), ssd("drive-1", ""), ssd("................", "- -"),
	} {
		if id := d.Identity(); id != "" {
			t.Errorf("%q, %q identifies it: %s", d.Serial, d.WWID, id)
		}
	}
	a, b := ssd("S6PUNX0T900123", ""), ssd("S6PUNX0T900124", "")
	if len(a.Identity()) != 16 || a.Identity() == b.Identity() {
		t.Errorf("%q and %q", a.Identity(), b.Identity())
	}
	if d := ssd("S6PUNX0T900123", "naa.5002538f31a0c2b1"); d.Identity() == a.Identity() ||
		d.Identity() != ssd("", "naa.5002538f31a0c2b1").Identity() {
		t.Error("the WWID does not go before the serial number")
	}
	other := a
	other.Model = "another" // two vendors may use the same numbers
	if other.Identity() == a.Identity() {
		t.Error("the model does not count")
	}
}

func TestAHostPublishesEachDiskOnce(t *testing.T) {
	t.Parallel()
	var r DevicesReading
	for i := range 12 {
		d := ssd("S6PUNX0T9001"+string(rune('a'+i)), "")
		r.Chain = append(r.Chain, d, d)
	}
	if got := r.Identities(); len(got) != MaxDisks || got[0] == got[1] {
		t.Error(got)
	}
	r.Chain[0].On = []string{"sdb"}
	if got := (DevicesReading{Chain: r.Chain[:1]}).Identities(); len(got) != 0 {
		t.Error("a device on others is published")
	}
}
