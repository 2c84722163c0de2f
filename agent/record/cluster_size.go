// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"time"
)

// Size is the number of voters to which an operator has resized the cluster. It has no lease. Once recorded, it
// replaces the configured number.
type Size struct {
	Version int `json:"version"`
	Voters  int `json:"voters"` // odd, at most MaxVoters
	// WithoutSnapshot lets the cluster become one voter without a recent snapshot.
	WithoutSnapshot bool      `json:"withoutSnapshot,omitempty"`
	By              string    `json:"by"`
	Host            string    `json:"host"` // the name of the host whose agent recorded the size
	Reason          string    `json:"reason" bound:"text"`
	Since           time.Time `json:"since"`
	Extra           Extra     `json:"-"`
}

// MaxVoters is the maximum size of a cluster.
const MaxVoters = 9

// Size returns the key of the cluster's size.
func (k Keys) Size() string { return k.prefix + "size" }

// check returns an error if no cluster may have that size.
func (s *Size) check() error {
	if s.Voters < 1 || s.Voters > MaxVoters || s.Voters%2 == 0 {
		return fmt.Errorf("its voters: %d is not an odd number from 1 to %d", s.Voters, MaxVoters)
	}
	return nil
}
