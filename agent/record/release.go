// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// Release says that a person has released the operation of a host. That host takes its operation for one in flight
// until it has ended or this says otherwise: that the record of the operation is gone says nothing, it may have been
// deleted.
type Release struct {
	Version int       `json:"version"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"` // when the operation began, by which it is known
	Time    time.Time `json:"time"`
	By      string    `json:"by"`
	Reason  string    `json:"reason" bound:"text"`
	Extra   Extra     `json:"-"`
}

// Release is the key of the last release of an operation of a host.
func (k Keys) Release(host string) string { return k.Releases() + host }

// Releases is the prefix of all of them.
func (k Keys) Releases() string { return k.prefix + "released/" }

// ReleasesEnd is the first key behind them.
func (k Keys) ReleasesEnd() string { return k.prefix + "released0" }
