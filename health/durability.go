// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/disk"
)

// DurabilityDoubtful is the code of the check that acknowledged writes are durable.
const DurabilityDoubtful Code = "DURABILITY_DOUBTFUL"

const (
	// fastestFlush is less than any drive needs to receive a write, flush it to its medium and answer.
	fastestFlush   = 15 * time.Microsecond
	durabilityFor  = 5 * time.Minute
	durabilityKept = 300 // number of writes of the direct lane to keep
)

// checkDurability is the check that a device acknowledges writes only after they are durable. Its finding is a
// suspicion, because only a power cut would prove it. checkFlushes reports settings that are certain to disable
// flushes.
var checkDurability = advice{
	name: "durability", component: Disk,
	source: "the type of the file system, the type and cache mode of the drives under etcd's data, and the median " +
		"latency of the probe's direct writes",
	limit: Limit{
		Of: "median write latency of a drive that must flush its cache", Unit: "s",
		Enter: fastestFlush.Seconds(),
		Leave: fastestFlush.Seconds(), Below: true,
	},
	code:  DurabilityDoubtful,
	title: "Writes may be acknowledged before they are durable.",
	meaning: "A power cut may then undo writes that etcd has confirmed. A member that forgets writes breaks " +
		"the cluster's guarantees. Only a power cut can prove the loss.",
	remedy: "use neither a RAM disk nor the cache mode 'unsafe' of a virtual machine. If a battery or capacitors " +
		"protect the cache, acknowledge the finding with 'quorumctl health mute DURABILITY_DOUBTFUL'",
	measure: func(a advice, at *track) evidence {
		var direct samples
		unknown := func(p place) string {
			if p.FileSystem.inMemory() {
				return ""
			}
			return p.absent()
		}
		return lists(durabilityFor, durabilityFor, listed{
			bad:     "writes may be acknowledged early",
			well:    "no sign of early acknowledgement",
			missing: func(in Input) string { return in.missing(unknown) },
			partly:  func(in Input) []string { return in.partly(unknown) },
			look: func(in Input, _ bool) (wrong []string) {
				for _, s := range in.Disk.Samples {
					if s.Lane == disk.LaneDirect {
						direct = append(direct, s)
					}
				}
				direct = direct.keep(durabilityKept)
				timed := direct // the probe's writes, which go to the first place
				for _, p := range in.places() {
					wrong = append(wrong, p.durability(timed)...)
					timed = nil
				}
				return wrong
			},
		})(a, at)
	},
}

// durability lists what indicates that acknowledged writes are not durable.
func (p place) durability(direct samples) (wrong []string) {
	if p.FileSystem.inMemory() {
		return []string{p.of + " is on " + p.FileSystem.Type + ": it is in memory and lost on power loss"}
	}
	flushed := true
	for _, leaf := range p.Chain {
		switch {
		case !leaf.Leaf():
		case leaf.Kind == "memory":
			wrong = append(wrong, leaf.Name+" is in memory and lost on power loss")
		}
		flushed = flushed && (!leaf.Leaf() || leaf.Cache == "write back")
	}
	if median := direct.spread().at(500); flushed && len(direct) == durabilityKept && median < fastestFlush {
		wrong = append(wrong, fmt.Sprintf("the median latency of %d writes with a flush is %s, limit %s", len(direct),
			show(median), show(fastestFlush)))
	}
	return wrong
}
