// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// HardwareShared is the code of the check that no other voter is on this machine or its disks.
const HardwareShared Code = "HARDWARE_SHARED"

// MaxDisks bounds the disks whose identities a host publishes.
const MaxDisks = 8

// SharedReading describes where the other voters run, as their hosts report it. The zero value means not read.
type SharedReading struct {
	Known  bool
	Absent string // why nothing is known, as a stable text
	Voters []Placement
}

// Placement describes where the voter of another host runs.
type Placement struct {
	Host        string
	SameMachine bool     // the host reports the same boot ID as this host
	Disks       []string // the identities of the disks below the voter's data
}

// checkShared is the check that the failure of one machine or disk costs at most one voter. Its finding keeps this host
// from becoming a voter. If the host is a voter already, an operator has to decide whether to remove it.
var checkShared = advice{
	name: "shared-hardware", component: Machine, gates: Joins,
	source: "the boot ID of the kernel and the identities (WWID, or model and serial number) of the disks under " +
		"etcd's data, compared with those that the other voters' hosts report",
	limit: Limit{Of: "other voters on the same machine or disk", Unit: "voters"},
	code:  HardwareShared,
	title: "Another voter runs on this machine or on one of its disks.",
	meaning: "One failure then costs two voters, so the fault tolerance is lower than reported. While the finding " +
		"lasts, a host that is not a voter does not become one.",
	remedy: "move one of the voters to a machine and disk of its own: 'quorumctl retire HOST --reason TEXT' if " +
		"another host is ready. If this is intended, as in a test, or if distinct disks report the same serial " +
		"number, set host.allowSharedHardware: true and reload quorumd",
	measure: lists(0, time.Minute, listed{
		bad:     "another voter shares this host's hardware",
		well:    "no other voter shares this host's hardware",
		missing: func(in Input) string { return Figure{Known: in.Shared.Known, Absent: in.Shared.Absent}.absent() },
		look:    func(in Input, _ bool) []string { return in.shared() },
	}),
}

// shared lists the other voters that run on this host's hardware.
func (in Input) shared() (wrong []string) {
	for _, v := range in.Shared.Voters {
		if v.SameMachine {
			wrong = append(wrong, "the voter of "+v.Host+" runs on this machine, under the same kernel")
			continue
		}
		for _, d := range in.Devices.Chain {
			if id := d.Identity(); id != "" && slices.Contains(v.Disks, id) {
				wrong = append(wrong, fmt.Sprintf("the voter of %s has its data on the same disk: %s", v.Host,
					strings.TrimSpace(d.Model+" "+d.Name)))
			}
		}
	}
	return wrong
}

// Identities returns the identities of the disks below etcd's data, at most MaxDisks, sorted.
func (r DevicesReading) Identities() (ids []string) {
	for _, d := range r.Chain {
		if id := d.Identity(); id != "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids[:min(len(ids), MaxDisks)]
}

// Identity returns a hash of what identifies a disk worldwide: its WWID, or else its model and serial number. It
// returns "" for a device that is not a leaf, and if these values do not distinguish disks.
func (d Device) Identity() string {
	const digits = 16
	id := cmp.Or(distinct(d.WWID), distinct(d.Serial))
	if !d.Leaf() || id == "" {
		return ""
	}
	if distinct(d.WWID) == "" {
		id = d.Model + " " + id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:digits]
}

// distinct returns the value, or "" if many disks may have the same one: virtual machines and cheap controllers report
// short, repetitive or sequential values.
func distinct(value string) string {
	const shortest, characters = 8, 5
	var seen []rune
	n, ascending := 0, 0
	var last rune
	for _, c := range strings.ToLower(value) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			continue
		}
		if n++; c == last+1 || last == '9' && c == '0' {
			ascending++
		}
		if last = c; !slices.Contains(seen, c) {
			seen = append(seen, c)
		}
	}
	if n < shortest || len(seen) < characters || ascending >= n-2 || strings.Contains(value, "QEMU") {
		return ""
	}
	return value
}
