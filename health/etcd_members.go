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
	sizeApart, sizeApartLeave = 3, 2      // multiples of the smallest database of the other voters
	sizeApartFrom             = 256 << 20 // bytes; a smaller database is ignored
	sizeApartFor              = time.Hour
)

// checkAlarm is the check of errors that etcd itself reports.
var checkAlarm = advice{
	name: "etcd-alarm", component: Etcd,
	source: "the status of the local member",
	limit:  Limit{Of: "alarms of etcd", Unit: "alarms"},
	code:   EtcdAlarm,
	title:  "etcd raised an alarm.",
	meaning: "With NOSPACE, etcd rejects all writes except deletions. With CORRUPT, the data of one member differs " +
		"from that of the others.",
	remedy: "run 'etcdctl alarm list'; for NOSPACE 'etcdctl compact REVISION', then 'etcdctl " +
		"--command-timeout=10m defrag' on one member at a time, the leader last, then 'etcdctl " +
		"alarm disarm'; for CORRUPT replace the member that the list names, then disarm the alarm",
	measure: lists(0, time.Minute, listed{
		bad:     "etcd reports an alarm",
		well:    "etcd reports no alarm",
		missing: func(in Input) string { return in.Etcd.Alarms.absent() },
		look:    func(in Input, _ bool) []string { return reported(in.Etcd.Errors) },
	}),
}

// checkSizeApart is the check of a database that is far larger than the smallest database of the other voters. All
// databases hold the same content, so a larger one has more free pages.
var checkSizeApart = advice{
	name: "etcd-size", component: Etcd,
	source: "the status of each member",
	limit: Limit{
		Of: "database size", Unit: "times the smallest other voter's", Enter: sizeApart, Leave: sizeApartLeave,
	},
	code:  EtcdSizeDiffers,
	title: "The database of this member is far larger than another voter's.",
	meaning: "All members hold the same keys, so the difference is free pages. etcd reads, copies and sends " +
		"free pages as well, and they count against the quota.",
	remedy: "run 'etcdctl --command-timeout=10m defrag' on this member only, at a quiet time: the member serves no " +
		"requests meanwhile",
	measure: func(a advice, at *track) evidence {
		var seen EtcdReading
		return exceeds(sizeApartFor, time.Minute,
			func(in Input) Figure {
				seen = in.Etcd
				return apart(seen)
			},
			func(n float64, l Limit) string {
				return fmt.Sprintf("database %s, smallest database of the other voters %s: factor %.1f, limit %.0f",
					showBytes(uint64(seen.OwnSize.Value)), showBytes(uint64(seen.SmallestSize.Value)),
					n, l.Enter)
			},
		)(a, at)
	},
}

// apart returns the size of the local database divided by that of the smallest one of the other voters; 1 for a small
// local database.
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

// reported formats the errors that etcd reports, and shortens long ones.
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
