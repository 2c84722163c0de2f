// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"

	"github.com/quorumd/quorumd/agent/control"
)

// writeBackup writes how the last snapshots of the cluster went, if there are any.
func writeBackup(p *page, s control.Status) {
	b := s.Backup
	if b == nil {
		return
	}
	last := "no snapshot yet"
	if b.Saved != nil {
		last = "last snapshot " + span(s.Time.Sub(*b.Saved)) + " ago at revision " + strconv.FormatInt(b.Revision, 10) + " by " + b.Host
	}
	p.line("%s%s", last, after("; ", b.Next))
	if b.Failed != nil {
		p.line("%s %s", word{"no snapshot was saved " + span(s.Time.Sub(*b.Failed)) + " ago on " + b.FailedHost + ":", bad},
			b.Cause)
	}
}
