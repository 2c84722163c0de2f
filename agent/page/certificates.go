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

// certRow is a row of the certificates.
type certRow struct {
	Of, Name, Until string
	Left            display.Styled
}

// certsOf returns the certificates that this host sees, the first to expire at the top. Only a certificate that an
// operator has to renew is coloured.
func certsOf(s control.Status) (rows []certRow) {
	all := slices.Clone(s.Health.Certificates)
	slices.SortStableFunc(all, func(a, b control.Certificate) int {
		return cmp.Or(a.Until.Compare(b.Until), strings.Compare(a.Name, b.Name))
	})
	for _, c := range all[:min(len(all), mostCerts)] {
		left := display.Styled{Text: "expired", Tone: display.HealthState(c.State).Tone}
		if more := c.Until.Sub(s.Time); more >= 2*day {
			left.Text = display.Count(int(more/day), "day", "days")
		} else if more > 0 {
			left.Text = display.Span(more)
		}
		if c.State == "OK" {
			left.Tone = display.Plain
		}
		rows = append(rows, certRow{
			Of: holder(c.Of), Name: short(c.Name, mostPath), Until: c.Until.UTC().Format(time.DateOnly), Left: left,
		})
	}
	return rows
}

const day = 24 * time.Hour

// mostPath bounds the name of a file, in runes.
const mostPath = 120

func holder(of string) string {
	switch of {
	case "authority":
		return "CA"
	case "member":
		return "presented by a member"
	case "own":
		return "this host's"
	}
	return cell(of)
}
