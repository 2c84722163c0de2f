// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// DatabaseSpaceLow is the code of the check of the room beside etcd's database.
const DatabaseSpaceLow Code = "DATABASE_SPACE_LOW"

// DatabaseReading is what was seen last of the file system of etcd's database where that of its log, which the probe
// stands for, is another one. The zero value says that both lie on one, and counts for nothing.
type DatabaseReading struct {
	// Apart says that it is another one, or that nobody can tell.
	Apart bool
	// Free and Total are its bytes. With a Total of 0 they are not known, and Absent says why.
	Free, Total uint64
	Absent      string
	// Inodes and InodesFree are as in [DiskReading].
	Inodes, InodesFree uint64
	// Devices is what the kernel tells of the devices below it.
	Devices DevicesReading
}

// SilentDatabase is the reading of a file system that tells nothing, and why.
func SilentDatabase(why string) DatabaseReading {
	return DatabaseReading{Apart: true, Absent: why, Devices: SilentDevices(why)}
}

// declareDatabaseSpace declares the check of the room left for etcd's database where its log lies elsewhere. What
// declareSpace judges is then the log's.
func declareDatabaseSpace(t Thresholds) declaration {
	limit := Limit{
		Of: "free", Unit: "bytes", Enter: float64(t.MinFree), Leave: float64(t.MinFree + t.MinFree/10), Below: true,
	}
	return declaration{
		Check: Check{
			Name: "database-space", Component: Disk, Gates: Everything,
			Source: "statfs of the file system of etcd.dataDir, if etcd.walDir is on a separate one",
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					DatabaseSpaceLow, Disk, Warm, "The disk of etcd's database is nearly full.",
					"Less space is free than a join needs, however much the disk of the WAL has. etcd stops when " +
						"it runs out of space.",
					"free space on the file system of etcd's data directory, or lower disk.minFree",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			var last Figure // one that is full and falls silent is still full
			return &level{
				spell: spell{code: DatabaseSpaceLow, track: at, wellFor: time.Minute},
				limit: limit,
				of: func(in Input) Figure {
					if room := in.Database.room(); room.Known || !last.Known || !limit.beyond(last.Value, true) {
						last = room
					}
					return last
				},
				words: func(f Figure, l Limit) string {
					if math.IsInf(f.Value, 1) {
						return "etcd's database is on the same file system as its WAL"
					}
					return fmt.Sprintf("%s free for etcd's database, limit %s", showBytes(uint64(f.Value)),
						showBytes(uint64(l.Enter)))
				},
			}
		},
	}
}

// room is what is free, without an end where the database lies with its log: then nothing of it is to be told.
func (d DatabaseReading) room() Figure {
	switch {
	case !d.Apart:
		return Figure{Value: math.Inf(1), Known: true}
	case d.Total == 0:
		return Figure{Absent: d.Absent}
	}
	return Figure{Value: float64(d.Free), Known: true}
}

// inodes is the part of them that is free, in percent, where fewer are, and where that is. It is not known while a file
// system is silent.
func (in Input) inodes() (Figure, string) {
	log, d := in.Disk.inodes(), in.Database
	silent := in.Disk.Total == 0 || in.Disk.UsageAge > usageFresh
	if !d.Apart || silent {
		return log, ""
	}
	if d.Total == 0 {
		return Figure{Absent: d.Absent}, ""
	}
	database := inodesOf(d.InodesFree, d.Inodes)
	if database.Known && (!log.Known || database.Value < log.Value) {
		return database, " of etcd's database"
	}
	return log, ""
}

// place is a file system that etcd writes to, with what lies under it.
type place struct {
	DevicesReading

	of string // what of etcd lies there
}

// places returns those that there are. What lies under both is told of the log's alone.
func (in Input) places() []place {
	if !in.Database.Apart {
		return []place{{in.Devices, "etcd's data"}}
	}
	own := in.Database.Devices
	own.Chain = slices.DeleteFunc(slices.Clone(own.Chain), func(d Device) bool {
		return slices.ContainsFunc(in.Devices.Chain, func(o Device) bool { return o.Name == d.Name })
	})
	own.Arrays = slices.DeleteFunc(slices.Clone(own.Arrays), func(a Array) bool {
		return slices.ContainsFunc(in.Devices.Arrays, func(o Array) bool { return o.Name == a.Name })
	})
	return []place{{in.Devices, "etcd's log"}, {own, "etcd's database"}}
}

// missing returns why nothing is known of any place; empty when something is of one.
func (in Input) missing(why func(place) string) (first string) {
	for _, p := range in.places() {
		reason := why(p)
		if reason == "" {
			return ""
		}
		first = cmp.Or(first, reason)
	}
	return first
}

// partly names the places of which nothing is known, and why.
func (in Input) partly(why func(place) string) (all []string) {
	for _, p := range in.places() {
		if reason := why(p); reason != "" {
			all = append(all, p.of+": "+reason)
		}
	}
	return all
}
