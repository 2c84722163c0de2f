// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "time"

// Recovered tells of a cluster that lost its majority for good that this one goes on in its place. A host that has the
// old one's data and reaches this one knows from it that they are of no use any more.
type Recovered struct {
	Version int       `json:"version"`
	Plan    string    `json:"plan"` // its ID
	Old     MemberID  `json:"oldClusterID"`
	New     MemberID  `json:"newClusterID"`
	Host    string    `json:"host"` // the name of the host that went on alone
	By      string    `json:"by"`
	Time    time.Time `json:"time"`
	Extra   Extra     `json:"-"`
}

// Recovered is the key of the last recovery of the cluster.
func (k Keys) Recovered() string { return k.prefix + "recovered" }
