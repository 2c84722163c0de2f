// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// Recovered records that this cluster replaces one that lost its quorum for good. For a host that still has the old
// cluster's data, this record shows that the data is obsolete.
type Recovered struct {
	Version int       `json:"version"`
	Plan    string    `json:"plan"` // ID of the recovery plan
	Old     MemberID  `json:"oldClusterID"`
	New     MemberID  `json:"newClusterID"`
	Host    string    `json:"host"` // the name of the survivor
	By      string    `json:"by"`
	Time    time.Time `json:"time"`
	Extra   Extra     `json:"-"`
}

// Recovered returns the key of the last recovery of the cluster.
func (k Keys) Recovered() string { return k.prefix + "recovered" }
