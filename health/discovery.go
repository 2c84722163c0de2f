// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

// DiscoveryFaulty is the code of the check of endpoint discovery.
const DiscoveryFaulty Code = "DISCOVERY_FAULTY"

// Endpoints come from a name server, a program, or a file that may be half-written, so one bad answer is not enough for
// a finding.
const (
	discoveryBadFor  = 5 * time.Minute
	discoveryWellFor = time.Minute
)

// DiscoveryReading is the last answer of endpoint discovery. The zero value means that discovery is not configured, so
// there is nothing to check.
type DiscoveryReading struct {
	// Set means that cluster.discovery is configured, and Asked that discovery has answered or timed out.
	Set, Asked bool
	// Failed is why there is no usable answer, as a stable text.
	Failed string
	// Endpoints is the number of usable endpoints in the last answer, Members the number of members in etcd's list.
	// Each is 0 if unknown.
	Endpoints, Members int
}

// wrong describes what is wrong with the answer; empty if nothing is. The endpoints cannot be compared one by one,
// because one list may contain names and the other addresses. But a list that is shorter than etcd's is incomplete.
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

// checkDiscovery is the check of cluster.discovery. It only advises: the agent keeps using endpoints that it
// found earlier, and no step depends on a complete answer.
var checkDiscovery = advice{
	name: "discovery", component: Network,
	source: "the results of cluster.discovery, and etcd's member list",
	limit:  Limit{Of: "members that discovery does not return", Unit: "members"},
	code:   DiscoveryFaulty,
	title:  "Endpoint discovery fails or returns too few endpoints.",
	meaning: "cluster.discovery returned nothing, timed out, was rejected, or named fewer endpoints than the cluster " +
		"has members. This host keeps using the endpoints that it found earlier; a host that starts now might not " +
		"find the cluster.",
	remedy: "check what the name server, file or program of cluster.discovery in quorumd.yaml returns; it must " +
		"return all members within the timeout",
	measure: lists(discoveryBadFor, discoveryWellFor, listed{
		bad:  "discovery fails or does not return all members",
		well: "discovery returns all members, or is not configured",
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
	}),
}
