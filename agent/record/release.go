// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// Release says that an operator has released the operation of a host. That host considers its operation in flight until
// it ends or is released. A missing record of the operation means nothing, as it may have been deleted.
type Release struct {
	Version int       `json:"version"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"` // when the operation began, to identify it
	Time    time.Time `json:"time"`
	By      string    `json:"by"`
	Reason  string    `json:"reason" bound:"text"`
	Extra   Extra     `json:"-"`
}

// Release is the key of the last release of a host's operation.
func (k Keys) Release(host string) string { return k.Releases() + host }

// Releases is the prefix of all of them.
func (k Keys) Releases() string { return k.prefix + "released/" }

// ReleasesEnd is the first key after them.
func (k Keys) ReleasesEnd() string { return k.prefix + "released0" }
