// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"
)

// ErrForeignCluster means that those who answer are of another cluster than this host.
var ErrForeignCluster = errors.New("the endpoints answer for another cluster than this host's")

// home is what is known of the cluster that this host belongs to.
type home struct {
	id     uint64          // 0: not known, and whoever answers is believed
	voters []string        // client URLs of its voters, as it has listed them last
	away   bool            // the last list was another cluster's: nothing is changed there
	told   map[uint64]bool // clusters that were told of
}

// mostTold bounds how many strangers are told of.
const mostTold = 16

// SetClusterID says to which cluster this host belongs; 0 when that is not known. A list of another one, to which
// endpoints may lead that were discovered or reused, then takes nothing of what is known of this one.
func (c *Client) SetClusterID(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != c.home.id {
		c.home, c.voters = home{id: id, told: map[uint64]bool{}}, nil
	}
}

// lists gives whom to ask for the member list, which tells whose they are: the voters of this host's cluster, and when
// they are not known or silent, whoever was ever named.
func (c *Client) lists() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.voters) > 0 && !c.home.away {
		return c.orderedLocked(c.voters)
	}
	return c.orderedLocked(c.everLocked())
}

// everLocked gives all endpoints that may lead to this host's cluster.
func (c *Client) everLocked() []string {
	all := slices.Clone(c.home.voters)
	for _, endpoint := range c.knownLocked() {
		if !slices.Contains(all, endpoint) {
			all = append(all, endpoint)
		}
	}
	return all
}

// stranger tells whether an answer is of another cluster than this host's.
func (c *Client) stranger(id uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.home.id != 0 && id != c.home.id
}

func (c *Client) isAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.home.away
}

// listed remembers whom to ask from now on: the voters of that list. Those of a stranger serve for no more than to
// read what it says of itself, until somebody of this host's cluster answers.
func (c *Client) listed(list Membership, voters []string) {
	away := c.stranger(list.ClusterID)
	c.setVoters(voters, away)
	if !away {
		return
	}
	c.mu.Lock()
	id, told := c.home.id, c.home.told[list.ClusterID]
	if len(c.home.told) < mostTold {
		c.home.told[list.ClusterID] = true
	} else {
		told = true
	}
	c.mu.Unlock()
	if !told {
		c.opt.Logger.Warn("endpoints answer for another cluster; this host's cluster stays as known",
			"endpoints", voters, "answers", fmt.Sprintf("%x", list.ClusterID), "belongs", fmt.Sprintf("%x", id),
			"remedy", "check why this host's cluster does not answer, and correct cluster.endpoints or "+
				"cluster.discovery")
	}
}
