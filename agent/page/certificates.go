// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

// certRow is a row of the certificate table.
type certRow struct {
	Of, Name, Until string
	Left            display.Styled
}

// certsOf returns the certificates that an operator has to renew, the earliest expiry first, and a phrase that counts
// the others. If none is due for renewal, it returns neither.
func certsOf(s control.Status) (rows []certRow, others string) {
	due := slices.Clone(s.Health.Certificates)
	due = slices.DeleteFunc(due, func(c control.Certificate) bool { return c.State == "OK" })
	slices.SortStableFunc(due, func(a, b control.Certificate) int {
		return cmp.Or(a.Until.Compare(b.Until), strings.Compare(a.Name, b.Name))
	})
	for _, c := range due[:min(len(due), mostCerts)] {
		left := display.Styled{Text: "expired", Tone: display.HealthState(c.State).Tone}
		if more := c.Until.Sub(s.Time); more >= 2*day {
			left.Text = display.Count(int(more/day), "day", "days")
		} else if more > 0 {
			left.Text = display.Span(more)
		}
		rows = append(rows, certRow{
			Of: holder(c.Of), Name: short(c.Name, mostPath), Until: c.Until.UTC().Format(time.DateOnly), Left: left,
		})
	}
	var texts []string
	if n := len(due) - len(rows); n > 0 {
		texts = append(texts, display.Count(n, "more certificate is", "more certificates are")+" due.")
	}
	if n := len(s.Health.Certificates) - len(due); n > 0 && len(due) > 0 {
		texts = append(texts, display.Count(n, "other certificate is", "other certificates are")+" not due.")
	}
	return rows, strings.Join(texts, " ")
}

const day = 24 * time.Hour

// mostPath limits the length of a file name, in runes.
const mostPath = 120

func holder(of string) string {
	switch of {
	case "ca":
		return "CA"
	case "member":
		return "presented by a member"
	case "own":
		return "this host's"
	}
	return cell(of)
}
