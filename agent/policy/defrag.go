// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// A defragmentation compacts the database of one member into a new file while its etcd is stopped, because etcd's own
// defragmentation blocks every request to the member until it has ended. The new file replaces the original only after
// a comparison has shown the same contents. Whatever goes wrong, etcd is started again, with a complete database. The
// original is deleted only after the member has become healthy again.

// Database is the size of a member's database.
type Database struct {
	Size  int64 `json:"sizeBytes"`
	InUse int64 `json:"inUseBytes"`
	// Quota is the size at which etcd rejects writes; 0 if it is unknown.
	Quota int64 `json:"quotaBytes,omitempty"`
}

// Free returns the bytes that a defragmentation would free.
func (d Database) Free() int64 { return max(0, d.Size-d.InUse) }

const (
	worthBytes   = 200 << 20 // free bytes that are worth a restart if they are also at least worthPercent of the file
	worthPercent = 40
	fullPercent  = 80 // of the quota: for a file of at least this size, fullBytes of free space are worth a restart
	fullBytes    = 32 << 20
)

// WorthDefrag reports whether a defragmentation frees enough space for the restart that it costs: much of the file, or
// less if the file is close to its quota.
func (d Database) WorthDefrag() bool {
	free := d.Free()
	return free >= worthBytes && free*100 >= d.Size*worthPercent ||
		d.Quota > 0 && d.Size*100 >= d.Quota*fullPercent && free >= fullBytes
}

// FreeText returns how much of the database is free.
func (d Database) FreeText() string {
	return MiB(d.Free()) + " of " + MiB(d.Size) + " is free"
}

// MiB formats a number of bytes as rounded MiB.
func MiB(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<19)>>20) }

// defragment runs the compaction of the database of a member whose etcd is stopped.
func defragment(v View) Decision {
	if d, ends := nothingToDo(v); ends {
		return d
	}
	return launchPrograms(v.Asked.Command, Defragmenting, Step{Kind: StepDefragment, Why: v.Asked.Reason})
}

// deleteOld deletes the database from before a defragmentation. If the deletion fails, the operation ends anyway, and
// the next defragmentation deletes the file.
func deleteOld(v View) (Decision, bool) {
	a := v.Asked
	if a == nil || a.Work != WorkDefrag || !a.Command.Ended() || a.OldDeleted || v.Failed.Kind == StepDeleteOld {
		return Decision{}, false
	}
	return do(Step{Kind: StepDeleteOld, Why: "the member is healthy"}), true
}

// running returns the reason code while the program of the work runs.
func (w Work) running() ReasonCode {
	if w == WorkDefrag {
		return Defragmenting
	}
	return CommandRunning
}

// failed returns the outcome if the program of the work has failed.
func (w Work) failed() ReasonCode {
	if w == WorkDefrag {
		return DefragFailed
	}
	return CommandFailed
}

// Job returns the name of the job that runs while etcd is down: the defragmentation, or the operator's program.
func (s Request) Job() string {
	if s.Work == WorkDefrag {
		return "defragmentation"
	}
	return s.Program
}

// DeletesOld records that the database from before a defragmentation was deleted.
func (s Request) DeletesOld() Request {
	s.OldDeleted = true
	return s
}

// againstDefrag returns why a rollout may not defragment a host, or nil.
func againstDefrag(h RolloutHost) *Refusal {
	switch {
	case !h.Member:
		return conflicts("", h.Name+" has no member", "name only hosts with a member: quorumctl status lists them")
	case h.Database.Size == 0 && !h.Forced:
		return conflicts("", "the size of "+h.Name+"'s database is unknown: its etcd has not answered",
			"try again when its etcd answers, or use --force")
	case !h.Database.WorthDefrag() && !h.Forced:
		return conflicts("", "a defragmentation of "+h.Name+" is not worth the restart: "+h.Database.FreeText(),
			"to do it anyway: quorumctl defrag "+h.Name+" --force --reason '<why>'")
	}
	return nil
}

// DefragPlan returns the steps of a defragmentation of these hosts, in order.
func DefragPlan(v View, hosts []RolloutHost) (steps []PlanStep) {
	return planned(v, hosts, func(h RolloutHost, add func(PlanChange, string)) {
		if h.Skipped {
			return
		}
		leaderMoves(v, h, add)
		add(PlanRestarts, h.Name+": etcd stops; its database is copied without the free space to a new file, which "+
			"replaces the old one once the contents are equal")
		add("", h.Name+": etcd starts; once the member is healthy, the old database is deleted")
	})
}

// DefragText describes, for a dry run, whether the defragmentation of a host is worth its restart.
func DefragText(h RolloutHost) string {
	switch {
	case h.Skipped && h.Database.Size == 0:
		return "skipped: its etcd has not answered"
	case h.Skipped:
		return "skipped: " + h.Database.FreeText()
	case !h.Database.WorthDefrag():
		return "forced: " + h.Database.FreeText()
	}
	return "worth it: " + h.Database.FreeText()
}

func defragReasons() []ReasonInfo {
	return []ReasonInfo{
		{Defragmenting, "etcd is stopped, and its database is being defragmented", ""},
		{
			DefragFailed,
			"the defragmentation of this host's database did not complete; etcd runs with a complete database, " +
				"usually the old one, and its rollout, if any, has stopped",
			"correct what the reason names, such as a full disk; then quorumctl rollout resume, or quorumctl " +
				"defrag again",
		},
	}
}
