// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package round

import (
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
)

// PeerRequests are the results of requests to members' https peer URLs, with this host's peer certificate.
type PeerRequests struct {
	At time.Duration     // when the first of the requests began; 0 if there is none
	Of map[string]string // why a peer URL has not answered, by URL; empty if it has
	// Unneeded means that connections suffice, as for http; see [policy.RequestsPeers].
	Unneeded bool
}

// Answered reports whether all given URLs have answered requests that began after the given time.
func (p PeerRequests) Answered(urls []string, since time.Duration) bool {
	if p.Unneeded {
		return true
	}
	for _, url := range urls {
		if why, requested := p.Of[url]; !requested || why != "" || p.At <= since {
			return false
		}
	}
	return true
}

// PeersAsked returns the members to which this host's etcd must be connected before the operation in flight continues.
// own is the ID of this host's member.
func (r *Round) PeersAsked(own uint64) (members []cluster.Member) {
	if !r.AsksConnections() {
		return nil
	}
	for _, m := range r.Membership.Members {
		of := m.ID == uint64(r.Op.MemberID)
		if m.ID != own && of == (r.Op.Phase == string(policy.PhaseVerify)) && (of || !m.Learner) {
			members = append(members, m)
		}
	}
	return members
}

// Unreached returns why this host does not reach one of the members of PeersAsked, according to the requests sent since
// this host first saw the operation's record. It returns an empty string if all requests were answered, or if none was
// sent.
func (r *Round) Unreached(own uint64) string {
	if r.AskedSince == 0 || r.PeerRequests.At <= r.AskedSince {
		return ""
	}
	for _, m := range r.PeersAsked(own) {
		for _, url := range SecuredURLs(m) {
			if why := r.PeerRequests.Of[url]; why != "" {
				return "GET " + url + "/version: " + why
			}
		}
	}
	return ""
}

// SecuredURLs returns the peer URLs of a member that are https.
func SecuredURLs(m cluster.Member) (urls []string) {
	for _, url := range m.PeerURLs {
		if strings.HasPrefix(url, "https:") {
			urls = append(urls, url)
		}
	}
	return urls
}
