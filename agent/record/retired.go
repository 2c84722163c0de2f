// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"time"
)

// Retired records that an operator has retired a host. It has no lease, so the host stays out of the cluster across
// reboots and reinstallations until an operator undoes the retirement. The host's ID is in the key.
type Retired struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	PeerURL string `json:"peerURL"` // the host's peer URL
	// MemberID is the ID that the host's member had when the host was retired; absent if there was no member.
	MemberID MemberID `json:"memberID,omitempty"`
	// Successor is the host that replaces the retired host's voter; absent if any host may.
	Successor Successor `json:"successor,omitzero"`
	By        string    `json:"by"`
	Reason    string    `json:"reason" bound:"text"`
	Since     time.Time `json:"since"`
	Extra     Extra     `json:"-"`
}

// Successor is a host that an operator has named to replace a retired one.
type Successor struct {
	Host    string `json:"host"` // ID of the host
	Name    string `json:"name"`
	PeerURL string `json:"peerURL"`
}

// MaxRetired bounds the number of retired hosts.
const MaxRetired = 64

// Retired returns the key of a host's retirement.
func (k Keys) Retired(host string) string { return k.Retirements() + host }

// Retirements returns the prefix of all retirements.
func (k Keys) Retirements() string { return k.prefix + "retired/" }

// RetirementsEnd returns the first key after all retirements.
func (k Keys) RetirementsEnd() string { return k.prefix + "retired0" }

// RetiredHost returns the ID of the host whose retirement has that key. It shortens an ID that is longer than allowed.
func (k Keys) RetiredHost(key string) string {
	return Shorten(strings.TrimPrefix(key, k.Retirements()), maxName)
}
