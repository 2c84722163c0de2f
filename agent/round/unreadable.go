// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// unreadableKept bounds how many records of hosts are named that cannot be read.
const unreadableKept = 100

// NoteUnreadable adds a record that cannot be read to what a round has seen.
func (r *Round) NoteUnreadable(kind policy.RecordKind, pair cluster.Pair, err error) {
	if kind == policy.RecordHost && len(r.Unreadable) >= unreadableKept {
		return
	}
	r.Unreadable = append(r.Unreadable, policy.Unreadable{
		Kind: kind, Key: pair.Key,
		Why: record.Shorten(err.Error(), 300),
	})
}

// CarryUnreadable keeps what was said of the hosts' records, in a turn that does not read them.
func (r *Round) CarryUnreadable(before []policy.Unreadable, ownKey string) {
	for _, u := range before {
		if u.Kind == policy.RecordHost && u.Key != ownKey {
			r.Unreadable = append(r.Unreadable, u)
		}
	}
}
