// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"
)

// RecordKind is the kind of a record in etcd.
type RecordKind string

// The kinds of records.
const (
	RecordOp      RecordKind = "op"
	RecordPause   RecordKind = "pause"
	RecordRollout RecordKind = "rollout"
	RecordLock    RecordKind = "lock"
	RecordHost    RecordKind = "host"
	RecordRepairs RecordKind = "repairs"
)

// Unreadable is a record in etcd that this agent cannot read.
type Unreadable struct {
	Kind RecordKind
	Key  string
	Why  string
}

// recordInfo declares the effect of an unreadable record of a kind, and the remedy.
type recordInfo struct {
	kind      RecordKind
	blocksAll bool // whether an operation is in flight or may begin is unknown, so no step is taken
	meaning   string
	remedy    string // %s is the key
}

func records() []recordInfo {
	return []recordInfo{
		{RecordOp, true, "so nothing is begun", "quorumctl operation release --force --reason '<why>' deletes it"},
		{RecordPause, true, "so the cluster counts as paused", "quorumctl resume deletes it"},
		{RecordRollout, false, "so no rollout continues", "quorumctl rollout abort deletes it"},
		{RecordRepairs, false, "so no voter is replaced", "etcdctl del %s"},
		{RecordLock, false, "so the lock counts as held by another host", "if it stays: etcdctl del %s"},
		{
			RecordHost, false, "so nothing is known of that host",
			"restart quorumd there, as new as here; if there is no such host: etcdctl del %s",
		},
	}
}

// cannotRead reports whether a record of that kind cannot be read.
func (v View) cannotRead(kind RecordKind) bool {
	return slices.ContainsFunc(v.Unreadable, func(u Unreadable) bool { return u.Kind == kind })
}

// Hint returns the remedy for a record of that kind that cannot be read.
func (u Unreadable) Hint() string {
	for _, info := range records() {
		if info.kind == u.Kind && strings.Contains(info.remedy, "%s") {
			return fmt.Sprintf(info.remedy, u.Key)
		}
		if info.kind == u.Kind {
			return info.remedy
		}
	}
	return ""
}

func (u Unreadable) info() recordInfo {
	for _, info := range records() {
		if info.kind == u.Kind {
			return info
		}
	}
	return recordInfo{kind: u.Kind, blocksAll: true}
}

// blocksAll reports whether an unreadable record withholds every step, as a pause does.
func (v View) blocksAll() bool {
	return slices.ContainsFunc(v.Unreadable, func(u Unreadable) bool { return u.info().blocksAll })
}

// unreadable returns the reason for unreadable records. It names the most important one.
func (v View) unreadable() (Reason, bool) {
	if len(v.Unreadable) == 0 {
		return Reason{}, false
	}
	first := v.Unreadable[0]
	if i := slices.IndexFunc(v.Unreadable, func(u Unreadable) bool { return u.info().blocksAll }); i >= 0 {
		first = v.Unreadable[i]
	}
	text := fmt.Sprintf("%s: %s; %s: %s", first.Key, first.Why, first.info().meaning, first.Hint())
	if more := len(v.Unreadable) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return Reason{RecordUnreadable, text}, true
}

// withUnreadable adds a reason for unreadable records to a decision.
func (v View) withUnreadable(d Decision) Decision {
	reported := slices.ContainsFunc(d.Reasons, func(r Reason) bool { return r.Code == RecordUnreadable })
	switch r, holds := v.unreadable(); {
	case !holds || reported:
	case v.blocksAll() && d.Step.Kind == StepNone:
		d.Reasons = append([]Reason{r}, d.Reasons...)
	default:
		d.Reasons = append(slices.Clone(d.Reasons), r)
	}
	return d
}
