// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// RestoreTest is the result of the last restore tests: a snapshot was restored and served by an isolated etcd. It has
// no lease.
type RestoreTest struct {
	Version int `json:"version"`

	Name          string    `json:"name,omitempty"`         // name of the last snapshot that passed
	RestoreTested time.Time `json:"restoreTested,omitzero"` // when the snapshot passed
	Host          string    `json:"host,omitempty"`         // the name of the host whose agent ran the test
	Revision      int64     `json:"revision,omitempty"`
	Keys          int64     `json:"keys,omitempty"`
	Etcd          string    `json:"etcd,omitempty"` // version of the etcd that served the snapshot
	// duration in seconds, including reading the snapshot from the store
	Took float64 `json:"took,omitempty"`

	// when the last attempt failed; absent if a test has passed since
	Failed     time.Time `json:"failed,omitzero"`
	FailedHost string    `json:"failedHost,omitempty"`
	Cause      string    `json:"cause,omitempty" bound:"text"`

	Extra Extra `json:"-"`
}

// The values of Host.RestoreTests, which is empty if the host cannot test restores.
const (
	RestoreTestReady  = "ready"
	RestoreTestSealed = "sealed"  // ready, except that the decryption key is missing
	RestoreTestNoRoom = "no-room" // ready, except that there is too little free space
)

// RestoreTest returns the key of the result of the last restore tests.
func (k Keys) RestoreTest() string { return k.prefix + "restores" }

// RestoreTesting returns the key of the claim to run a restore test. Its value is a [Saving].
func (k Keys) RestoreTesting() string { return k.prefix + "restore-now" }
