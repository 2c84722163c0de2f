// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// freshFor is how old a snapshot may be when a rollout to another etcd version begins or a healthy voter is removed.
const freshFor = time.Hour

// snapshotFirst reports whether a rollout to another etcd version waits for a snapshot. Once a newer etcd has changed
// the database, only a snapshot allows a downgrade. An operator may start the rollout without one. Repairs never wait.
func snapshotFirst(v View) (string, bool) {
	r := v.Rollout
	switch {
	case r == nil || !r.Runs || r.Upgrade == "" || r.WithoutSnapshot || len(r.Waiting) == 0 || !v.Backup.HasStore:
		return "", false
	case v.Backup.HasSnapshot && v.Backup.Age.Abs() <= freshFor+r.Began:
		return "", false
	}
	next := "the next host"
	for _, h := range v.Hosts {
		if h.ID == RolloutNext(v, r.Waiting) {
			next = cmp.Or(h.Name, h.ID)
		}
	}
	before := fmt.Sprintf("before etcd on %s becomes %s", next, r.Upgrade)
	from, why := v.backupSource()
	if why != "" {
		return fmt.Sprintf("no host can take a snapshot %s: %s", before, why), true
	}
	taker, _ := v.hostOf(from)
	if f := v.Backup.Failed; f != nil {
		return fmt.Sprintf("no snapshot was saved %s, on %s: %s; %s tries again in %s", before, f.Host, f.Text,
			taker.Name, durationfmt.Text(max(0, v.Backup.retry()).Round(time.Minute))), true
	}
	return fmt.Sprintf("%s takes a snapshot %s", taker.Name, before), true
}

func waitsForSnapshot(v View) bool {
	_, waits := snapshotFirst(v)
	return waits
}

// removalWants reports whether a requested removal requires a recent snapshot and there is none: the removal of a
// healthy voter does. Removing an unhealthy or dead voter repairs the cluster and, like the removal of a learner,
// requires none.
func removalWants(v View, r Removal) (string, bool) {
	m, _ := v.memberByID(r.MemberID)
	h, _ := v.hostOf(m)
	fresh := v.Backup.HasSnapshot && v.Backup.Age.Abs() <= freshFor
	if !v.Backup.HasStore || fresh || !r.Live || !m.Live || m.Learner || Unhealthy(h.Health) {
		return "", false
	}
	text := "there is no snapshot yet"
	if v.Backup.HasSnapshot {
		text = fmt.Sprintf("the newest snapshot is %s old, the limit is %s",
			durationfmt.Text(v.Backup.Age.Round(time.Minute)), durationfmt.Text(freshFor))
	}
	return text, true
}
