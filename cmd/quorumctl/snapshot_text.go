// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/words"
)

// writeBackup writes how the last snapshots of the cluster went, if there are any.
func writeBackup(p *page, s control.Status) {
	b := s.Backup
	if b == nil {
		return
	}
	last := "no snapshot yet"
	if b.Saved != nil {
		last = fmt.Sprintf("last snapshot %s ago at revision %d by %s", words.Span(s.Time.Sub(*b.Saved)),
			b.Revision, b.Host)
	}
	p.line("%s%s", last, words.After("; ", b.Next))
	if b.Failed != nil {
		p.line("%s %s", word{fmt.Sprintf("no snapshot was saved %s ago on %s:", words.Span(s.Time.Sub(*b.Failed)),
			b.FailedHost), bad}, b.Cause)
	}
}
