// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// DiscoveryFaulty is the code of the check of what tells where the members are.
const DiscoveryFaulty Code = "DISCOVERY_FAULTY"

// What is asked is a name server, a file that somebody is just writing, or a program: one bad answer is none.
const (
	discoveryBadFor  = 5 * time.Minute
	discoveryWellFor = time.Minute
)

// DiscoveryReading is the last answer to where the members are. The zero value says that nobody is asked, of which the
// check says nothing.
type DiscoveryReading struct {
	// Set says that cluster.discovery is, Asked that there was an answer, or none in time.
	Set, Asked bool
	// Failed says why there is no answer that could be used, without numbers that change.
	Failed string
	// Endpoints are so many as the last answer had that could be used, Members so many as etcd lists; 0 when not known.
	Endpoints, Members int
}

// wrong returns what is wrong with the answer; nothing when all is well. Names and addresses of an endpoint cannot be
// compared, but a list that is shorter than etcd's lacks some.
func (d DiscoveryReading) wrong() string {
	switch {
	case !d.Set:
		return ""
	case d.Failed != "":
		return d.Failed
	case d.Endpoints < d.Members:
		return fmt.Sprintf("discovery returned %d endpoints for %d members", d.Endpoints, d.Members)
	}
	return ""
}

// declareDiscovery declares the check of cluster.discovery. It advises only: whoever was named once is asked on, and
// nothing is begun on what an answer lacks.
func declareDiscovery() declaration {
	p := Problem{
		DiscoveryFaulty, Network, Warm, "Endpoint discovery fails or returns too few endpoints.",
		"cluster.discovery returned nothing, timed out, was rejected, or named fewer endpoints than the cluster " +
			"has members. This host keeps using the endpoints that it knows; a host that starts now may not find " +
			"the cluster.",
		"check what the name server, file or program of cluster.discovery in quorumd.yaml returns; it must name " +
			"all members, and in time",
	}
	limit := Limit{Of: "members not returned", Unit: "of all"}
	return advises("discovery", "the results of cluster.discovery, and etcd's member list", limit, p,
		func(at *track) evidence {
			return &listed{
				spell: spell{code: DiscoveryFaulty, track: at, badFor: discoveryBadFor, wellFor: discoveryWellFor},
				sick:  "discovery fails or does not return all members",
				well:  "discovery returns all members, or is not configured",
				missing: func(in Input) string {
					if in.Discovery.Set && !in.Discovery.Asked {
						return "cluster.discovery has not run yet"
					}
					return ""
				},
				look: func(in Input, _ bool) []string {
					if wrong := in.Discovery.wrong(); wrong != "" {
						return []string{wrong}
					}
					return nil
				},
			}
		})
}
