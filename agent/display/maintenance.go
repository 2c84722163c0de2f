// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package display

import (
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
)

// MaintenanceState describes the state of a host's maintenance.
func MaintenanceState(m control.Maintenance) Styled {
	switch m.State {
	case policy.RequestWaiting:
		return Styled{"is waiting for its turn", Warn}
	case policy.RequestStopping:
		return Styled{"is being taken down", Warn}
	case policy.RequestReturning:
		return Styled{"is being brought back", Warn}
	case policy.RequestSafe:
		switch {
		case m.KeepRunning:
			return Styled{"safe to touch: no other host goes down, and etcd keeps running", Good}
		case m.ByOthers && m.Work == policy.WorkReboot:
			return Styled{"safe to reboot: no other host goes down, and etcd goes down with the machine", Good}
		case m.ByOthers:
			return Styled{"safe to touch: no other host goes down, and etcd may be stopped now", Good}
		case m.Work == policy.WorkReboot && m.External:
			return Styled{"safe to reboot: etcd is stopped", Good}
		case m.Work == policy.WorkReboot:
			return Styled{"is rebooting: etcd is stopped", Good}
		}
		return Styled{"safe to touch: etcd is stopped until the maintenance ends", Good}
	case policy.RequestWorking:
		return Styled{"is running the command: etcd is stopped", Good}
	}
	return Styled{Text: string(m.State)}
}

// Work returns the type of work, followed by the name of the command if there is one.
func Work(work policy.Work, command string) string {
	if command == "" {
		return string(work)
	}
	return string(work) + " " + command
}

// Until returns when maintenance is due to end, and how much time is left or by how much it is overdue. Maintenance
// without a time limit lasts until it is done.
func Until(m control.Maintenance, now time.Time) Styled {
	switch {
	case m.Until.IsZero():
		return Styled{Text: "it is done"}
	case m.Overdue || now.After(m.Until):
		return Styled{fmt.Sprintf("%s: OVERDUE by %s", Timestamp(m.Until), Span(now.Sub(m.Until))), Bad}
	}
	return Styled{Text: fmt.Sprintf("%s (%s left)", Timestamp(m.Until), Span(m.Until.Sub(now)))}
}

// untilPart returns Until's text after a comma, or nothing if the maintenance has no time limit.
func untilPart(m control.Maintenance, now time.Time) Styled {
	if m.Until.IsZero() {
		return Styled{}
	}
	w := Until(m, now)
	return Styled{", until " + w.Text, w.Tone}
}
