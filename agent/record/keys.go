// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"reflect"
	"strings"
)

// Keys builds the keys of one cluster's records.
type Keys struct{ prefix string }

// KeysFor returns the keys of the cluster with the given name.
func KeysFor(cluster string) Keys { return Keys{prefix: "/quorumd/" + cluster + "/"} }

// Prefix returns the prefix of all keys.
func (k Keys) Prefix() string { return k.prefix }

// Host returns the key of a host record.
func (k Keys) Host(id string) string { return k.prefix + "hosts/" + id }

// Hosts returns the prefix of all host records.
func (k Keys) Hosts() string { return k.prefix + "hosts/" }

// Lock returns the key of the lock.
func (k Keys) Lock() string { return k.prefix + "lock" }

// Request returns the key in the agent's periodic requests to the local member. The key is never stored.
func (k Keys) Request() string { return k.prefix + "request" }

// Op returns the key of the operation in flight.
func (k Keys) Op() string { return k.prefix + "op" }

// Ended returns the key of the history line that ended the last operation. A change of this key shows that there was an
// operation, even to a host that did not poll during it.
func (k Keys) Ended() string { return k.prefix + "op-ended" }

// Pause returns the key of the cluster-wide pause.
func (k Keys) Pause() string { return k.prefix + "pause" }

// Queue returns the key of the join queue.
func (k Keys) Queue() string { return k.prefix + "queue" }

// Rollout returns the key of the last rollout.
func (k Keys) Rollout() string { return k.prefix + "rollout" }

// History returns the prefix of the history.
func (k Keys) History() string { return k.prefix + "history/" }

// HistoryLine returns the key of a line written by a host whose last known revision was revision. Keys sort by
// revision; n distinguishes the lines that one host writes at the same revision.
func (k Keys) HistoryLine(revision int64, host string, n int) string {
	return fmt.Sprintf("%s%016x-%s-%d", k.History(), revision, host, n)
}

// State returns the range of all keys except those that sort before the host records: the history and the manifests'
// hashes.
func (k Keys) State() (start, end string) { return k.Hosts(), k.prefix[:len(k.prefix)-1] + "0" }

// Cluster returns the keys of the records that concern every host. They are read individually, so that other keys
// between them cost nothing.
func (k Keys) Cluster() []string {
	return []string{
		k.Lock(), k.Op(), k.Ended(), k.Pause(), k.Queue(), k.Rollout(), k.Repairs(), k.Recovered(), k.Backup(),
		k.RestoreTest(), k.Size(), k.Permit(1), k.Permit(2), k.Permit(3),
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
