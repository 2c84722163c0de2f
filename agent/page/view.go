// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

const (
	refresh      = 5   // seconds after which the browser reloads the page
	mostRows     = 60  // maximum number of hosts with a row
	mostWays     = 15  // maximum number of columns and rows of the connectivity table
	mostMessages = 30  // maximum number of reasons and findings
	mostCerts    = 40  // maximum number of certificates
	mostRunes    = 400 // maximum number of runes of any text
	mostCell     = 60  // maximum number of runes of a table cell
	mostEvents   = 10  // maximum number of lines of the history

	mostEventRunes = 200 // maximum number of runes of the text of a history line
)

// view is the content of the page, from top to bottom.
type view struct {
	Refresh int
	Title   string
	Style   template.CSS

	Cluster string
	First   display.Styled // fault tolerance
	Lines   []display.Line // lines about the cluster
	Doing   []display.Line
	Time    string

	Host, Role, HealthText, Mode, Next string
	Health                             display.Styled
	Messages                           []message
	Mutes                              []string

	Fsync string
	Chart *chart

	Hosts   []hostRow
	Others  string // counts the hosts that are not shown
	Network *network

	Events    []eventRow
	EventNote string // why events are missing, or how old they are; empty if they are complete and recent

	Certs      []certRow // the certificates that are due for renewal
	OtherCerts string    // counts the certificates that are not listed

	FleetLock, Version string
}

// message is a reason or a finding.
type message struct {
	Code        display.Styled
	Text, Since string
	Cause       string
	Remedy      string
	Runbook     string // path of the code's runbook; empty if there is none
}

// hostRow is a row of the hosts.
type hostRow struct {
	Name, P99, Waiting, Etcd, Domain, Seen string
	Role, Health                           display.Styled
}

// network is the connectivity table.
type network struct {
	To   []string
	Rows []wayRow
}

type wayRow struct {
	Name string
	Ways []display.Styled
}

func viewOf(s control.Status, minutes []control.FsyncMinute, about About) view {
	first := display.Tolerance(s.Cluster)
	if s.Cluster.ID == "" {
		first = display.Styled{Text: "no cluster in view", Tone: display.Warn}
	}
	v := view{
		Refresh: refresh, Style: template.CSS(style), //nolint:gosec // our own file
		Title:   cut(s.Cluster.Name) + ": " + first.Text,
		Cluster: cut(s.Cluster.Name), First: first,
		Lines: append(linesOf(s.Cluster), cutAll(display.Backup(s))...),
		Doing: cutAll(append(display.CurrentWork(s), display.Loop(s.Loop)...)), Time: display.Timestamp(s.Time),
		Host: cut(s.Host.Name), Role: cut(display.LastRole(s)), HealthText: cut(s.Health.Text), Mode: cut(s.Host.Mode),
		Next: cut(display.Next(s)), Health: cellWord(display.HealthState(s.Health.State)),
		Messages: messagesOf(s, about),
		Fsync:    fsyncOf(s), Chart: chartOf(minutes, s.Health.Disk.LimitSeconds),
		Network: networkOf(s), FleetLock: about.FleetLock, Version: cut(s.Host.Version),
	}
	v.Hosts, v.Others = hostsOf(s)
	v.Certs, v.OtherCerts = certsOf(s)
	for _, m := range s.Health.Mutes {
		v.Mutes = append(v.Mutes, cut(display.Mute(m, s.Time)))
	}
	return v
}

// linesOf returns the lines about the cluster below the headline.
func linesOf(c control.Cluster) []display.Line {
	lines := display.Cluster(c)[1:]
	if c.ID != "" {
		more := display.Styled{Text: display.Standbys(c) + display.After(" · etcd ", c.Version)}
		lines = slices.Insert(lines, 0, display.Line{display.Voters(c), more})
	}
	return cutAll(lines)
}

// messagesOf returns the reasons and findings of this host. It omits a reason if a finding has the same code.
func messagesOf(s control.Status, about About) []message {
	var list []message
	for _, r := range s.Reasons {
		if slices.ContainsFunc(s.Health.Findings, func(f control.Finding) bool { return f.Code == r.Code }) {
			continue
		}
		tone := display.Strong // nothing for an operator to do
		if r.Remedy != "" {
			tone = display.Warn
		}
		t := message{Code: display.Styled{Text: cut(r.Code), Tone: tone}, Text: cut(r.Text), Remedy: cut(r.Remedy)}
		t.Runbook = about.runbook(r.Code)
		if !r.Since.IsZero() {
			t.Since = display.Since(r.Since, s.Time)
		}
		list = append(list, t)
	}
	for _, f := range s.Health.Findings {
		tone := display.HealthState(f.State).Tone
		t := message{Code: display.Styled{Text: cut(f.Code), Tone: cmp.Or(tone, display.Strong)}, Text: cut(f.Text)}
		t.Remedy, t.Runbook = cut(f.Remedy), cmp.Or(about.runbook(f.Code), about.path(anyFinding))
		if !f.Since.IsZero() {
			t.Since = display.Since(f.Since, s.Time)
		}
		if f.Cause != "" {
			cause := strings.ReplaceAll(f.Cause, "-", " ")
			t.Cause = cut("likely cause: " + cause + display.After(": ", f.Why))
		}
		list = append(list, t)
	}
	return list[:min(len(list), mostMessages)]
}

// anyFinding is the runbook of findings that have no alert of their own.
const anyFinding = "QuorumdFinding"

// part is a part of a message. Title is its tooltip.
type part struct{ Text, Title string }

// snapshotName matches the name of a snapshot: revision, time, host and a random suffix.
var snapshotName = regexp.MustCompile(`\b0*([0-9]+-[0-9]{8}T[0-9]{6}Z)-[A-Za-z0-9._-]+-[0-9a-f]{16}\b`)

// partsOf shortens the snapshot names in a message to revision and time. The full name becomes the tooltip.
func partsOf(text string) (list []part) {
	at := 0
	for _, m := range snapshotName.FindAllStringSubmatchIndex(text, -1) {
		list = append(list, part{Text: text[at:m[0]]}, part{Text: text[m[2]:m[3]] + "…", Title: text[m[0]:m[1]]})
		at = m[1]
	}
	return append(list, part{Text: text[at:]})
}

// fsyncOf summarizes the last measurements of the probe.
func fsyncOf(s control.Status) string {
	d := s.Health.Disk
	if d.WAL.Count == 0 {
		return "No measurement yet."
	}
	text := fmt.Sprintf("p50 %s · p99 %s · slowest %s, of %s, measured %s ago", display.Latency(d.WAL.P50),
		display.Latency(d.WAL.P99), display.Latency(d.WAL.Max), display.Count(int(d.WAL.Count), "write", "writes"),
		display.Age(d.AgeSeconds))
	if d.LimitSeconds > 0 {
		text += ". Limit of p99: " + display.Latency(d.LimitSeconds)
	}
	if d.InFlightOp != "" && d.InFlightSeconds >= 1 {
		text += ". A pending " + cut(d.InFlightOp) + " has hung for " + display.Age(&d.InFlightSeconds)
	}
	return text + "."
}

// hostsOf returns the rows of the host table, sorted by rank and followed by the members without an agent, and a phrase
// that counts the hosts not shown.
func hostsOf(s control.Status) (rows []hostRow, others string) {
	members := map[string]control.Member{}
	for _, m := range s.Cluster.Members {
		members[m.ID] = m
	}
	hosts := slices.Clone(s.Hosts)
	slices.SortFunc(hosts, func(a, b control.HostRecord) int {
		return cmp.Or(cmp.Compare(rank(a, s.Host.ID), rank(b, s.Host.ID)), cmp.Compare(a.Name, b.Name))
	})
	left := map[string]int{}
	for i, h := range hosts {
		m, isMember := members[h.MemberID]
		if i >= mostRows {
			left[display.HealthState(h.Health).Text]++
			continue
		}
		rows = append(rows, hostRow{
			Name: cell(h.Name), Role: cellWord(display.RoleOf(h, m, isMember)),
			Health: cellWord(display.HealthState(h.Health)),
			P99:    display.P99(h, s), Waiting: cell(h.Waiting), Etcd: cell(h.EtcdVersion), Domain: cell(h.Domain),
			Seen: lastSeen(h),
		})
	}
	silent := display.WithoutAgent(s)
	for _, m := range silent[:min(len(silent), mostRows)] {
		rows = append(rows, hostRow{
			Name: cell(cmp.Or(m.Name, m.ID)), Etcd: cell(m.Version),
			Role:   cellWord(display.RoleOf(control.HostRecord{Role: m.Role}, m, true)),
			Health: display.Styled{Text: "no agent", Tone: display.Warn},
		})
	}
	return rows, othersOf(len(hosts)-mostRows, left, s.Omitted)
}

// lastSeen returns when a host was last known to run.
func lastSeen(h control.HostRecord) string {
	seen := display.LastSeen(h)
	if strings.ContainsAny(seen, "0123456789") { // add "ago" only if the text is an age
		seen += " ago"
	}
	return seen
}

// rank returns a number by which the hosts in the table are sorted: hosts with a member first, then this host, then
// hosts that are not OK.
func rank(h control.HostRecord, this string) int {
	switch {
	case h.MemberID != "":
		return 0
	case h.ID == this:
		return 1
	case h.Health != "OK":
		return 2
	}
	return 3
}

// othersOf returns a phrase that counts, by health state, the hosts not shown in the table or omitted from the status.
func othersOf(n int, by map[string]int, omitted *control.Omitted) string {
	if n <= 0 {
		return display.Omitted(omitted)
	}
	var parts []string
	for state, count := range by {
		parts = append(parts, fmt.Sprintf("%d %s", count, cut(state)))
	}
	slices.Sort(parts)
	return display.Count(n, "more host is", "more hosts are") + " not shown: " +
		cut(strings.Join(parts, ", ")) + ". quorumctl status lists them." +
		display.After(" Beyond these, ", display.Omitted(omitted))
}

// networkOf returns the connectivity table, or nil if it would have no rows. It omits hosts without a member that reach
// all members.
func networkOf(s control.Status) *network {
	members := slices.Clone(s.Cluster.Members)
	slices.SortStableFunc(members, func(a, b control.Member) int { return cmp.Compare(a.Name, b.Name) })
	members = members[:min(len(members), mostWays)]
	var ids []string
	n := &network{}
	for _, m := range members {
		ids, n.To = append(ids, m.ID), append(n.To, cell(cmp.Or(m.Name, m.ID)))
	}
	hosts := slices.Clone(s.Hosts)
	slices.SortStableFunc(hosts, func(a, b control.HostRecord) int { return cmp.Compare(a.Name, b.Name) })
	for _, h := range hosts {
		if len(h.Sees) == 0 || len(n.Rows) >= mostWays || h.MemberID == "" && display.ReachesAll(h.Sees, ids) {
			continue
		}
		row := wayRow{Name: cell(h.Name)}
		for _, id := range ids {
			row.Ways = append(row.Ways, cellWord(display.Reachability(h.MemberID, h.Sees, id)))
		}
		n.Rows = append(n.Rows, row)
	}
	if len(n.Rows) == 0 {
		return nil
	}
	return n
}

// cut sanitizes text and limits its length.
func cut(text string) string { return short(text, mostRunes) }

// cell sanitizes text for a table cell and limits its length further than cut does.
func cell(text string) string { return short(text, mostCell) }

func short(text string, most int) string {
	text = display.Clean(text[:min(len(text), utf8.UTFMax*most)])
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

func cellWord(w display.Styled) display.Styled {
	return display.Styled{Text: cell(w.Text), Tone: w.Tone}
}

func cutAll(lines []display.Line) []display.Line {
	for _, line := range lines {
		for i := range line {
			line[i].Text = cut(line[i].Text)
		}
	}
	return lines
}
