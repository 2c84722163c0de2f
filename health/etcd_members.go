// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"time"
)

// The codes of the checks that compare the local member with the others.
const (
	EtcdAlarm       Code = "ETCD_ALARM"
	EtcdSizeDiffers Code = "ETCD_SIZE_DIFFERS"
)

const (
	sizeApart, sizeApartLeave = 3, 2 // times the smallest of the others
	sizeApartFrom             = 256 << 20
	sizeApartFor              = time.Hour
)

// declareAlarm declares the check of errors that etcd itself reports.
func declareAlarm() declaration {
	return declaration{
		Check: Check{
			Name: "etcd-alarm", Component: Etcd, Gates: Nothing, Source: "the status of the local member",
			Limits: []Limit{{Of: "alarms of etcd", Unit: "at a time"}},
			Problems: []Problem{
				{
					EtcdAlarm, Etcd, Warm, "etcd raised an alarm.",
					"With NOSPACE, etcd rejects all writes. With CORRUPT, the data of one member differs from the " +
						"rest.",
					"run 'etcdctl alarm list'; for NOSPACE 'etcdctl compact REVISION', then 'etcdctl " +
						"--command-timeout=10m defrag' on one member at a time, the leader last, then 'etcdctl " +
						"alarm disarm'; for CORRUPT replace the member that it names, then disarm",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			return &listed{
				spell: spell{code: EtcdAlarm, track: at, wellFor: time.Minute},
				bad:   "etcd reports an alarm", well: "etcd reports no alarm",
				look:    func(in Input, _ bool) []string { return reported(in.Etcd.Errors) },
				missing: func(in Input) string { return in.Etcd.Alarms.absent() },
			}
		},
	}
}

// declareSizeApart declares the check of a database that is larger than the others': the same content with more free
// pages.
func declareSizeApart() declaration {
	limit := Limit{
		Of: "database size", Unit: "times that of the smallest voter's", Enter: sizeApart, Leave: sizeApartLeave,
	}
	return declaration{
		Check: Check{
			Name: "etcd-size", Component: Etcd, Gates: Nothing, Source: "the status of each member",
			Limits: []Limit{limit},
			Problems: []Problem{
				{
					EtcdSizeDiffers, Etcd, Warm, "The database of this member is far larger than another member's.",
					"All members hold the same keys, so the difference is free pages. They are read, copied and " +
						"sent all the same, and count against the quota.",
					"run 'etcdctl --command-timeout=10m defrag' on this member only, at a quiet time: it serves no " +
						"requests meanwhile",
				},
			},
			Runbook: findingRunbook,
		},
		start: OK,
		gather: func(at *track) evidence {
			var seen EtcdReading
			return &level{
				spell: spell{code: EtcdSizeDiffers, track: at, badFor: sizeApartFor, wellFor: time.Minute},
				limit: limit,
				of: func(in Input) Figure {
					seen = in.Etcd
					return apart(seen)
				},
				words: func(f Figure, l Limit) string {
					return fmt.Sprintf("database %s, on the smallest other voter %s: factor %.1f, limit %.0f",
						showBytes(uint64(seen.OwnSize.Value)), showBytes(uint64(seen.SmallestSize.Value)),
						f.Value, l.Enter)
				},
			}
		},
	}
}

// apart returns the ratio of the local database to the smallest of the others. It ignores small ones.
func apart(r EtcdReading) Figure {
	switch own, least := r.OwnSize, r.SmallestSize; {
	case !own.Known:
		return own
	case !least.Known:
		return least
	case own.Value < sizeApartFrom:
		return Figure{Known: true, Value: 1}
	default:
		return Figure{Known: true, Value: own.Value / max(least.Value, 1)}
	}
}

// reported shortens texts from another program.
func reported(texts []string) (found []string) {
	const longest = 120
	for _, text := range texts {
		if len(text) > longest {
			text = strings.ToValidUTF8(text[:longest], "") + "…"
		}
		found = append(found, "etcd reports: "+text)
	}
	return found
}
