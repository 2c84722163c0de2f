// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// unreadableKept is the number of unreadable records after which a round omits unreadable host records.
const unreadableKept = 100

// NoteUnreadable adds an unreadable record to the round.
func (r *Round) NoteUnreadable(kind policy.RecordKind, pair cluster.Pair, err error) {
	if kind == policy.RecordHost && len(r.Unreadable) >= unreadableKept {
		return
	}
	r.Unreadable = append(r.Unreadable, policy.Unreadable{
		Kind: kind, Key: pair.Key,
		Why: record.Shorten(err.Error(), 300),
	})
}

// CarryUnreadable copies the unreadable host records of the previous round, except the one under ownKey, into a round
// that does not read host records.
func (r *Round) CarryUnreadable(before []policy.Unreadable, ownKey string) {
	for _, u := range before {
		if u.Kind == policy.RecordHost && u.Key != ownKey {
			r.Unreadable = append(r.Unreadable, u)
		}
	}
}

// Oversized returns an error if the value was too large to be read, otherwise nil.
func Oversized[T any](pair cluster.Pair) error {
	if pair.Oversized > 0 {
		var r T
		bound := record.MaxBytes
		if _, is := any(r).(record.Rollout); is {
			bound = record.MaxRolloutBytes
		}
		return fmt.Errorf("%d bytes or more; the limit is %d", pair.Oversized, bound)
	}
	return nil
}

// DecodeRetired decodes the retirement of a host. On an error it returns the host's ID, taken from the key.
func DecodeRetired(pair cluster.Pair, keys record.Keys) (Retired, error) {
	retired := Retired{Host: keys.RetiredHost(pair.Key), At: pair.ModRevision}
	err := Oversized[record.Retired](pair)
	if err == nil {
		retired.Retired, err = record.Decode[record.Retired](pair.Value)
	}
	retired.Unreadable = err != nil
	return retired, err
}

// DecodeHost decodes a host record. It fails if the record's host ID differs from the ID in its key.
func DecodeHost(pair cluster.Pair, id string) (record.Host, error) {
	if err := Oversized[record.Host](pair); err != nil {
		return record.Host{}, err
	}
	h, err := record.Decode[record.Host](pair.Value)
	if err == nil && h.ID != id {
		err = fmt.Errorf("it holds the record of host %q", record.Shorten(h.ID, 60))
	}
	return h, err
}
