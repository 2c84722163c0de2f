// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"
)

// ErrForeignCluster means that the endpoints belong to a cluster other than this host's.
var ErrForeignCluster = errors.New("the endpoints belong to another cluster")

// home describes this host's cluster.
type home struct {
	id      uint64          // 0: unknown, so any cluster that answers counts as this host's
	voters  []string        // client URLs of the voters in the cluster's last member list
	foreign bool            // the last member list is another cluster's: writes are refused
	logged  map[uint64]bool // other clusters that have been logged
}

// maxLogged bounds the other clusters that are logged.
const maxLogged = 16

// SetClusterID sets this host's cluster; 0 if unknown. Discovered or reused endpoints may lead to another cluster. The
// member list of that cluster does not replace the voters of this host's cluster.
func (c *Client) SetClusterID(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != c.home.id {
		c.home, c.voters = home{id: id, logged: map[uint64]bool{}}, nil
	}
}

// listEndpoints returns the endpoints to ask for the member list, which identifies the cluster: the voters of this
// host's cluster or, if these are unknown or silent, all known endpoints.
func (c *Client) listEndpoints() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.voters) > 0 && !c.home.foreign {
		return c.orderedLocked(c.voters)
	}
	return c.orderedLocked(c.allKnownLocked())
}

// allKnownLocked returns all endpoints that may lead to this host's cluster.
func (c *Client) allKnownLocked() []string {
	all := slices.Clone(c.home.voters)
	for _, endpoint := range c.knownLocked() {
		if !slices.Contains(all, endpoint) {
			all = append(all, endpoint)
		}
	}
	return all
}

// isForeign reports whether an answer is from a cluster other than this host's.
func (c *Client) isForeign(id uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.home.id != 0 && id != c.home.id
}

func (c *Client) listIsForeign() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.home.foreign
}

// useVoters makes the voters of a member list the endpoints from now on. Voters of another cluster are used only for
// reads, until a member of this host's cluster answers.
func (c *Client) useVoters(list Membership, voters []string) {
	foreign := c.isForeign(list.ClusterID)
	c.setVoters(voters, foreign)
	if !foreign {
		return
	}
	c.mu.Lock()
	id, logged := c.home.id, c.home.logged[list.ClusterID]
	if len(c.home.logged) < maxLogged {
		c.home.logged[list.ClusterID] = true
	} else {
		logged = true
	}
	c.mu.Unlock()
	if !logged {
		c.opt.Logger.Warn("endpoints answer for another cluster; keeping the known voters of this host's cluster",
			"endpoints", voters, "cluster_id", fmt.Sprintf("%x", list.ClusterID),
			"own_cluster_id", fmt.Sprintf("%x", id),
			"remedy", "check why this host's cluster does not answer, and correct cluster.endpoints or "+
				"cluster.discovery")
	}
}
