// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// Release records that an operator has released a host's operation. The host considers its operation in flight until
// the operation ends or is released. A missing operation record proves nothing, because it may have been deleted.
type Release struct {
	Version int       `json:"version"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"` // when the operation began, to identify it
	Time    time.Time `json:"time"`
	By      string    `json:"by"`
	Reason  string    `json:"reason" bound:"text"`
	Extra   Extra     `json:"-"`
}

// Release returns the key of the last release of a host's operation.
func (k Keys) Release(host string) string { return k.Releases() + host }

// Releases returns the prefix of all releases.
func (k Keys) Releases() string { return k.prefix + "released/" }

// ReleasesEnd returns the first key after all releases.
func (k Keys) ReleasesEnd() string { return k.prefix + "released0" }
