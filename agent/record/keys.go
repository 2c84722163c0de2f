// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"reflect"
	"strings"
)

// Keys returns the keys of one cluster's records.
type Keys struct{ prefix string }

// KeysFor returns the keys of the cluster of that name.
func KeysFor(cluster string) Keys { return Keys{prefix: "/quorumd/" + cluster + "/"} }

// Prefix is the prefix of all keys.
func (k Keys) Prefix() string { return k.prefix }

// Host is the key of a host record.
func (k Keys) Host(id string) string { return k.prefix + "hosts/" + id }

// Hosts is the prefix of all host records.
func (k Keys) Hosts() string { return k.prefix + "hosts/" }

// Lock is the key of the lock.
func (k Keys) Lock() string { return k.prefix + "lock" }

// Op is the key of the operation in flight.
func (k Keys) Op() string { return k.prefix + "op" }

// Ended is the key of the history line that ended the last operation. It shows hosts that did not look in the meantime
// that there was one.
func (k Keys) Ended() string { return k.prefix + "op-ended" }

// Pause is the key of the cluster-wide pause.
func (k Keys) Pause() string { return k.prefix + "pause" }

// Queue is the key of the join queue.
func (k Keys) Queue() string { return k.prefix + "queue" }

// Rollout is the key of the last rollout.
func (k Keys) Rollout() string { return k.prefix + "rollout" }

// History is the prefix of the history.
func (k Keys) History() string { return k.prefix + "history/" }

// HistoryLine is the key of a line written by a host whose last known revision was that one. Keys sort by revision; n
// distinguishes lines that one host writes at one revision.
func (k Keys) HistoryLine(revision int64, host string, n int) string {
	return fmt.Sprintf("%s%016x-%s-%d", k.History(), revision, host, n)
}

// State returns the range with everything but the history: one read returns all of it.
func (k Keys) State() (start, end string) { return k.Hosts(), k.prefix[:len(k.prefix)-1] + "0" }

// Cluster returns the keys of the records that concern every host. They are read one by one, so that other records
// nearby cost nothing.
func (k Keys) Cluster() []string {
	return []string{
		k.Lock(), k.Op(), k.Ended(), k.Pause(), k.Queue(), k.Rollout(), k.Repairs(), k.Recovered(), k.Backup(),
		k.RestoreTest(),
	}
}

// fieldNames lists the JSON names of a record's own fields.
func fieldNames(r any) []string {
	t := reflect.TypeOf(r)
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "-" {
			names = append(names, name)
		}
	}
	return names
}
