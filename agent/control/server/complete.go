// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import "github.com/quorumd/quorumd/agent/control"

// The functions below set the version of a document, if it has one. They also replace each list that is nil with an
// empty list, so that a script can iterate over it, but not the lists that JSON omits when they are empty.

func completeStatus(s control.Status) control.Status {
	s.APIVersion = control.APIVersion
	s.Reasons = orEmpty(s.Reasons)
	s.Health.Findings = orEmpty(s.Health.Findings)
	s.Cluster.Members = orEmpty(s.Cluster.Members)
	s.Retired = orEmpty(s.Retired)
	s.Hosts = orEmpty(s.Hosts)
	if s.Rollout != nil {
		r := completeRollout(*s.Rollout)
		s.Rollout = &r
	}
	return s
}

func completeChecks(c control.Checks) control.Checks {
	c.APIVersion, c.Checks = control.APIVersion, orEmpty(c.Checks)
	for i := range c.Checks {
		k := &c.Checks[i]
		k.Gates, k.Limits, k.Rules, k.Codes = orEmpty(k.Gates), orEmpty(k.Limits), orEmpty(k.Rules), orEmpty(k.Codes)
	}
	return c
}

func completeRollout(r control.Rollout) control.Rollout {
	r.Hosts = orEmpty(r.Hosts)
	return r
}

func completeResize(r control.Resize) control.Resize {
	r.APIVersion, r.Steps, r.Warnings = control.APIVersion, orEmpty(r.Steps), orEmpty(r.Warnings)
	return r
}

func completeRetirement(r control.Retirement) control.Retirement {
	r.APIVersion, r.Steps = control.APIVersion, orEmpty(r.Steps)
	return r
}

func completeRetiredHosts(r control.RetiredHosts) control.RetiredHosts {
	r.APIVersion, r.Hosts = control.APIVersion, orEmpty(r.Hosts)
	return r
}

func completeSnapshotJob(j control.SnapshotJob) control.SnapshotJob {
	j.APIVersion = control.APIVersion
	j.Snapshots, j.Orphans, j.Unread = orEmpty(j.Snapshots), orEmpty(j.Orphans), orEmpty(j.Unread)
	return j
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
