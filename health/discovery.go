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

// wrong says what is wrong with the answer; nothing when all is well. Names and addresses of an endpoint cannot be
// compared, but a list that is shorter than etcd's lacks some.
func (d DiscoveryReading) wrong() string {
	switch {
	case !d.Set:
		return ""
	case d.Failed != "":
		return d.Failed
	case d.Endpoints < d.Members:
		return fmt.Sprintf("it names %d endpoints, and the cluster has %d members", d.Endpoints, d.Members)
	}
	return ""
}

// declareDiscovery declares the check of cluster.discovery. It advises only: whoever was named once is asked on, and
// nothing is begun on what an answer lacks.
func declareDiscovery() declaration {
	p := Problem{
		DiscoveryFaulty, Network, Warm, "What tells where etcd's members are does not do so.",
		"There is no answer, none in time, one that is refused, or one that names fewer endpoints than the cluster " +
			"has members. This host goes on with those that it knows; one that starts anew may not find the cluster.",
		"see what the name server, the file or the program of cluster.discovery in quorumd.yaml returns; let it " +
			"name all members, and in time",
	}
	limit := Limit{Of: "members that are not named", Unit: "of all"}
	return advises("discovery", "the answers to cluster.discovery, and etcd's list of members", limit, p,
		func(at *track) evidence {
			return &listed{
				spell: spell{code: DiscoveryFaulty, track: at, badFor: discoveryBadFor, wellFor: discoveryWellFor},
				sick:  "there is no answer that names all members", well: "every member is named, or nobody is asked",
				missing: func(in Input) string {
					if in.Discovery.Set && !in.Discovery.Asked {
						return "cluster.discovery has not been asked yet"
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
