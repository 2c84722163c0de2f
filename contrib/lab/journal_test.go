//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/quorumd/quorumd/contrib/lab"
)

// entry is a line of a host's journal.
type entry struct {
	at       time.Time
	from     string // the program
	priority string // "0" is sent to all logged-in users
	text     string
}

// bootLog is the journal of one boot of a host, oldest line first.
type bootLog struct {
	f       *fleet
	host    string
	entries []entry
}

// lastBoot returns the journal of the previous boot.
func (f *fleet) lastBoot(h *lab.Host) bootLog {
	f.t.Helper()
	log := bootLog{f: f, host: h.Name}
	for line := range strings.Lines(f.shell(h, "journalctl --no-pager --boot=-1 --output=json")) {
		var fields map[string]any // fields that are not text are ignored below
		f.check(json.Unmarshal([]byte(line), &fields))
		field := func(name string) string {
			text, _ := fields[name].(string)
			return text
		}
		micros, err := strconv.ParseInt(field("__REALTIME_TIMESTAMP"), 10, 64)
		f.check(err)
		log.entries = append(log.entries, entry{
			at: writtenAt(field("MESSAGE"), time.UnixMicro(micros)), from: field("SYSLOG_IDENTIFIER"),
			priority: field("PRIORITY"), text: field("MESSAGE"),
		})
	}
	return log
}

// writtenAt returns when a line was written: etcd's own timestamp, or else when the journal received it. The journal
// receives the last lines of a process a few milliseconds late, after systemd has logged its end.
func writtenAt(message string, received time.Time) time.Time {
	var line struct {
		At time.Time `json:"ts"`
	}
	if json.Unmarshal([]byte(message), &line) != nil || line.At.IsZero() {
		return received
	}
	return line.At
}

// find returns the program's first line that contains the text, if there is one.
func (l bootLog) find(from, text string) (entry, bool) {
	for _, e := range l.entries {
		if e.from == from && strings.Contains(e.text, text) {
			return e, true
		}
	}
	return entry{}, false
}

// mustFind returns the program's first line that contains the text; it fails the test if there is none.
func (l bootLog) mustFind(from, text string) entry {
	l.f.t.Helper()
	e, found := l.find(from, text)
	if !found {
		l.f.t.Errorf("the journal of %s has no line of %s with %q", l.host, from, text)
	}
	return e
}

// checkOrder checks that these lines exist in this order. Each is given by a program and a text.
func (l bootLog) checkOrder(lines ...[2]string) {
	l.f.t.Helper()
	var before entry
	for _, line := range lines {
		e := l.mustFind(line[0], line[1])
		if e.at.Before(before.at) {
			l.f.t.Errorf("in the journal of %s %q of %v comes before %q of %v", l.host, e.text, e.at, before.text,
				before.at)
		}
		before = e
	}
}

// tail returns what quorumd logged, and how etcd and the machine ended.
func (l bootLog) tail(since time.Time) string {
	var b strings.Builder
	for _, e := range l.entries {
		if e.at.Before(since) || e.from != "quorumd" && e.from != "systemd-logind" &&
			!strings.Contains(e.text, "etcd.service") {
			continue
		}
		b.WriteString(e.at.Format("15:04:05.000") + " " + e.from + ": " + e.text + "\n")
	}
	return b.String()
}
