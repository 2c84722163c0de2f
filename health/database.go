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

// DatabaseSpaceLow is the code of the check of free space for etcd's database.
const DatabaseSpaceLow Code = "DATABASE_SPACE_LOW"

// DatabaseReading is the last reading of the file system of etcd's database, if the WAL is on a different one. The
// probe covers the file system of the WAL. The zero value means that both are on the same file system.
type DatabaseReading struct {
	// Apart means that the database is on a separate file system. If only Absent is set, this is assumed without proof.
	Apart bool
	// Free and Total are the free space and the size of that file system, in bytes. If Total is 0, they are unknown and
	// Absent is the reason.
	Free, Total uint64
	Absent      string
	// Inodes and InodesFree are as in [DiskReading].
	Inodes, InodesFree uint64
	// Devices is what the kernel reports about the devices below that file system.
	Devices DevicesReading
}

// declareDatabaseSpace declares the check of free space for etcd's database on a separate file system. declareSpace
// covers the file system of the WAL.
func declareDatabaseSpace(t Thresholds) declaration {
	limit := Limit{
		Of: "free space", Unit: "bytes", Enter: float64(t.MinFree), Leave: float64(t.MinFree + t.MinFree/10),
		Below: true,
	}
	return declaration{
		Check: Check{
			Name: "database-space", Component: Disk, Gates: Everything,
			Source: "statfs of the file system of etcd.dataDir, if etcd.walDir is on a separate one",
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					DatabaseSpaceLow, Disk, Warm, "The disk of etcd's database is nearly full.",
					"Less space is free than a join needs, no matter how much is free on the disk of the WAL. etcd " +
						"stops when it runs out of space.",
					"free space on the file system of etcd's data directory, or lower disk.minFree",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			var last Figure // a full disk that stops answering is still full
			return &level{
				hysteresis: hysteresis{code: DatabaseSpaceLow, track: at, wellFor: time.Minute},
				limit:      limit,
				of: func(in Input) Figure {
					if room := in.Database.room(); room.Known || !last.Known || !limit.beyond(last.Value, true) {
						last = room
					}
					return last
				},
				words: func(n float64, l Limit) string {
					if math.IsInf(n, 1) {
						return "etcd's database is on the same file system as its WAL"
					}
					return fmt.Sprintf("%s free for etcd's database, limit %s", showBytes(uint64(n)),
						showBytes(uint64(l.Enter)))
				},
			}
		},
	}
}

// apart reports whether the database is, or must be assumed to be, on a separate file system.
func (d DatabaseReading) apart() bool { return d.Apart || d.Absent != "" }

// room returns the free space. It is infinite if the database shares the WAL's file system: then there is no finding.
func (d DatabaseReading) room() Figure {
	switch {
	case !d.apart():
		return Figure{Value: math.Inf(1), Known: true}
	case d.Total == 0:
		return Figure{Absent: d.Absent}
	}
	return Figure{Value: float64(d.Free), Known: true}
}

// inodes returns the lower percentage of free inodes of the two file systems. The text is a suffix that names the
// database's file system if its percentage is the lower one, otherwise empty. The figure is unknown while a file system
// does not respond.
func (in Input) inodes() (Figure, string) {
	log, d := in.Disk.inodes(), in.Database
	silent := in.Disk.Total == 0 || in.Disk.UsageAge > usageFresh
	if !d.apart() || silent {
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

// place is a file system that etcd writes to, with the devices below it.
type place struct {
	DevicesReading

	of string // which part of etcd's data is on it
}

// places returns all places. A device below both file systems is listed only for the file system of the WAL.
func (in Input) places() []place {
	if !in.Database.apart() {
		return []place{{in.Devices, "etcd's data"}}
	}
	own := in.Database.Devices
	own.Chain = slices.DeleteFunc(slices.Clone(own.Chain), func(d Device) bool {
		return slices.ContainsFunc(in.Devices.Chain, func(o Device) bool { return o.Name == d.Name })
	})
	own.Arrays = slices.DeleteFunc(slices.Clone(own.Arrays), func(a Array) bool {
		return slices.ContainsFunc(in.Devices.Arrays, func(o Array) bool { return o.Name == a.Name })
	})
	return []place{{in.Devices, "etcd's WAL"}, {own, "etcd's database"}}
}

// missing returns why no place can be checked; empty if at least one can. why returns the reason for one place.
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

// partly lists the places that cannot be checked, with the reason.
func (in Input) partly(why func(place) string) (all []string) {
	for _, p := range in.places() {
		if reason := why(p); reason != "" {
			all = append(all, p.of+": "+reason)
		}
	}
	return all
}
