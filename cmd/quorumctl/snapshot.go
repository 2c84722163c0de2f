// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
	"github.com/quorumd/quorumd/agent/record"
)

func (a *app) snapshotCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:     "snapshot",
		GroupID: groupOperate,
		Short:   "Save, list, verify, test and prune snapshots of etcd",
		Long: "Save snapshots of etcd's database to the store in backup.store, verify them, test that they can be\n" +
			"restored, and remove old ones. quorumd on this host runs one of these jobs at a time; the job\n" +
			"continues if this command is interrupted.",
		Example: examples("quorumctl snapshot save", "quorumctl snapshot list", "quorumctl snapshot test-restore"),
	}, a.snapshotSaveCommand(), a.snapshotListCommand(), a.snapshotVerifyCommand(),
		a.snapshotPruneCommand(), a.snapshotTestRestoreCommand(), a.snapshotRestoreCommand(),
		a.snapshotUsageCommand())
}

func (a *app) snapshotSaveCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:   "save",
		Short: "Save a snapshot of the standby or a healthy follower",
		Long: "Save a snapshot to the store and verify it. It is taken from the standby, if there is one, otherwise\n" +
			"from the healthiest follower; from the leader only if it is the only voter.",
		Example: examples("quorumctl snapshot save", "quorumctl snapshot save -o json"),
		Args:    cobra.NoArgs,
		RunE:    a.snapshotRun(control.SnapshotSave, writeSaved),
	}, printed{name: "snapshot", of: control.SnapshotJob{}})
}

func (a *app) snapshotListCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:     "list",
		Short:   "List the snapshots in the store, newest first",
		Example: examples("quorumctl snapshot list", "quorumctl snapshot list -o wide"),
		Args:    cobra.NoArgs,
		RunE:    a.snapshotRun(control.SnapshotList, writeSnapshots),
	}, printed{name: "snapshot", of: control.SnapshotJob{}})
}

func (a *app) snapshotVerifyCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:   "verify [NAME]",
		Short: "Verify a snapshot, by default the newest",
		Long: "Read a snapshot (default: the newest) to its end, open it as etcd does, and compare its revision,\n" +
			"keys and hash with those recorded when it was saved.",
		Example: examples("quorumctl snapshot verify",
			"quorumctl snapshot verify 0000000000000004711-20261123T115959Z-n4-0123456789abcdef"),
		Args: cobra.MaximumNArgs(1),
		RunE: a.snapshotRun(control.SnapshotVerify, writeVerified),
	}, printed{name: "snapshot", of: control.SnapshotJob{}})
}

func (a *app) snapshotTestRestoreCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:   "test-restore [NAME]",
		Short: "Restore a snapshot in a temporary etcd, to test it",
		Long: "Run a restore test: restore a snapshot (default: the newest) to a temporary directory, start an\n" +
			"isolated etcd on it, and compare its keys and hash with those recorded when it was saved. This\n" +
			"host's etcd and its data are not touched. paths.state needs free space of at least twice\n" +
			"the database's size.",
		Example: examples("quorumctl snapshot test-restore",
			"quorumctl snapshot test-restore 0000000000000004711-20261123T115959Z-n4-0123456789abcdef"),
		Args: cobra.MaximumNArgs(1),
		RunE: a.snapshotRun(control.SnapshotRestoreTest, writeTested),
	}, printed{name: "snapshot", of: control.SnapshotJob{}})
}

// snapshotRestoreCommand points to recover plan. Operators who know etcdctl look for snapshot restore.
func (a *app) snapshotRestoreCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:   "restore [NAME]",
		Short: "Not supported: use recover plan --from-snapshot",
		Long: "Not supported on a single host. A restored snapshot is a new cluster, so every host must take part:\n" +
			"collect the facts of each host, plan with --from-snapshot, and apply the plan on each host. To only\n" +
			"test a snapshot: quorumctl snapshot test-restore.",
		Example: examples("quorumctl recover collect > n1.json",
			"quorumctl recover plan --from-snapshot newest n1.json n2.json",
			"quorumctl recover apply plan.json"),
		Args: cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage("quorumctl recover plan --help", "cannot restore a snapshot on one host: a restore makes a "+
				"new cluster, which needs a plan for all hosts")
		},
	}, printed{instead: "an explanation"})
}

func (a *app) snapshotPruneCommand() *cobra.Command {
	var c confirmation
	cmd := a.prints(&cobra.Command{
		Use:   "prune",
		Short: "Remove snapshots that backup.keep does not keep",
		Long: "Remove the snapshots that exceed both backup.keep.count and backup.keep.age. The newest verified\n" +
			"snapshot and the newest one that passed a restore test are always kept. Orphaned objects are removed\n" +
			"after a day.",
		Example: examples("quorumctl snapshot prune --dry-run", "quorumctl snapshot prune"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			request := control.SnapshotRequest{Do: control.SnapshotPrune}
			send, err := a.confirm(cmd, c, jobName(request.Do), func() (preview, error) {
				look := request
				look.DryRun = true
				job, err := a.runSnapshotJob(cmd.Context(), look)
				return preview{
					doc: job, text: func(p *page) { writePruned(p, job, true) },
					empty: len(job.Snapshots)+len(job.Orphans) == 0,
				}, err
			})
			if err != nil || !send {
				return err
			}
			return a.snapshotJob(cmd.Context(), request,
				func(p *page, j control.SnapshotJob) { writePruned(p, j, false) })
		},
	}, printed{name: "snapshot", of: control.SnapshotJob{}})
	c.flags(cmd)
	return cmd
}

// snapshotPoll is the interval at which the state of a job is read.
const snapshotPoll = 200 * time.Millisecond

// snapshotRun returns the RunE of a command for one job. The argument of the command, if any, names the snapshot.
func (a *app) snapshotRun(do string, text func(*page, control.SnapshotJob)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.snapshotJob(cmd.Context(), control.SnapshotRequest{Do: do, Name: argument(args, "")}, text)
	}
}

// snapshotJob runs a job and shows its result.
func (a *app) snapshotJob(ctx context.Context, req control.SnapshotRequest,
	text func(*page, control.SnapshotJob),
) error {
	job, err := a.runSnapshotJob(ctx, req)
	if err != nil {
		return err
	}
	return a.emit(job, func(p *page) { text(p, job) })
}

// runSnapshotJob runs a job and returns its result.
func (a *app) runSnapshotJob(ctx context.Context, req control.SnapshotRequest) (control.SnapshotJob, error) {
	what := jobName(req.Do)
	started, err := a.client().StartSnapshot(ctx, req)
	if err != nil {
		return control.SnapshotJob{}, cannot(what, err)
	}
	job, err := a.followSnapshot(ctx, started)
	if err == nil && job.Error != "" {
		err = jobFailure(what, job.Error)
	}
	return job, err
}

// jobFailure returns the error of a job that failed in quorumd.
func jobFailure(what, cause string) error {
	f := cannot(what, errors.New(cause))
	f.hint = "journalctl -u quorumd"
	return f
}

// jobName names a job in errors, such as "save a snapshot".
func jobName(do string) string {
	switch do {
	case control.SnapshotSave:
		return "save a snapshot"
	case control.SnapshotVerify:
		return "verify the snapshot"
	case control.SnapshotRestoreTest:
		return "test the restore"
	}
	return do + " snapshots"
}

// followSnapshot waits for the end of a job without a time limit, because quorumd ends a job that makes no progress. On
// a terminal it shows the progress.
func (a *app) followSnapshot(ctx context.Context, started control.SnapshotJob) (control.SnapshotJob, error) {
	p := a.terminalProgress(a.err)
	job, err := a.pollSnapshot(ctx, started, func(j control.SnapshotJob) error {
		return p.show(time.Now(), j.Do, jobText(j), j.Progress)
	})
	return job, errors.Join(err, p.end())
}

// jobText describes the activity of a job. Progress towards a known total is shown separately.
func jobText(j control.SnapshotJob) string {
	if j.Progress != nil {
		return "reading and writing"
	}
	if j.Serving {
		return "a temporary etcd reads the snapshot: up to 10m"
	}
	return display.Size(float64(j.Bytes)) + " read and written"
}

// pollSnapshot reads the state of a job until it has ended, and passes each earlier state to show.
func (a *app) pollSnapshot(ctx context.Context, started control.SnapshotJob, show func(control.SnapshotJob) error,
) (control.SnapshotJob, error) {
	what := jobName(started.Do)
	timer := time.NewTicker(snapshotPoll)
	defer timer.Stop()
	for job := started; ; {
		if job.Ended != nil {
			return job, nil
		}
		select {
		case <-ctx.Done():
			return job, &failure{
				code: exitTimeout, message: "interrupted: quorumd continues to " + what,
				hint: "quorumctl history",
			}
		case <-timer.C:
		}
		next, err := a.client().SnapshotJob(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			return job, cannot(what, err)
		case err == nil && (next.Number != started.Number || !next.Started.Equal(started.Started)):
			return job, &failure{
				code: exitFault, message: "cannot " + what + ": quorumd was restarted or has begun a different job",
				hint: "quorumctl history, then try again",
			}
		case err == nil && next.Ended == nil:
			if err := show(next); err != nil {
				return next, err
			}
		}
		if err == nil {
			job = next
		}
	}
}

func writeSaved(p *page, j control.SnapshotJob) {
	for _, s := range j.Snapshots {
		p.line("%s %s", word{"saved", good}, s.Name)
		p.line("    %d keys at revision %d, %s compressed to %s%s, taken from member %s in %s", s.Keys, s.Revision,
			display.Size(float64(s.Size)), display.Size(float64(s.StoredSize)), encryptedText(s), s.Member, jobTime(j))
	}
}

func writeVerified(p *page, j control.SnapshotJob) {
	for _, s := range j.Snapshots {
		p.line("%s %s", word{"verified", good}, s.Name)
		p.line("    %d keys at revision %d with hash %s, as recorded; took %s", s.Keys, s.Revision,
			fmt.Sprintf("%08x", s.Hash), jobTime(j))
		writeOrigin(p, s)
	}
}

func writeTested(p *page, j control.SnapshotJob) {
	for _, s := range j.Snapshots {
		p.line("%s %s", word{"restore test passed", good}, s.Name)
		p.line("    etcd %s served %d keys at revision %d with hash %s; took %s", j.Served, s.Keys, s.Revision,
			fmt.Sprintf("%08x", s.Hash), jobTime(j))
		writeOrigin(p, s)
	}
}

// writeOrigin shows whether the recorded hash proves that a snapshot was not replaced.
func writeOrigin(p *page, s control.Snapshot) {
	switch s.Origin {
	case record.OriginRecorded:
		at := "?"
		if s.RecordedAt != nil {
			at = display.Timestamp(*s.RecordedAt)
		}
		p.line("    origin: its manifest matches the hash recorded at %s by %s", at, s.RecordedBy)
	case record.OriginUnproven:
		p.line("    %s", word{"no hash of this snapshot is recorded, so its origin is unproven", warn})
		if s.Encrypted {
			p.line("    encryption does not prove the origin: the recipient's key is public")
		}
	}
}

func writeSnapshots(p *page, j control.SnapshotJob) {
	if len(j.Snapshots) == 0 {
		p.line("no snapshots of this cluster in the store")
	}
	t := table{head: []string{"AGE", "SIZE", "STORED", "VERIFIED", "RESTORE TESTED", "ORIGIN", "NAME"}}
	if p.wide {
		t.head = append(t.head, "TAKEN", "REVISION", "KEYS", "HASH", "HOST", "MEMBER", "ETCD", "ENCRYPTED")
	}
	now := j.Started
	for _, s := range j.Snapshots {
		row := cells(display.Span(now.Sub(s.TakenAt)), display.Size(float64(s.Size)),
			display.Size(float64(s.StoredSize)),
			ago(now, s.VerifiedAt), ago(now, s.RestoreTestedAt))
		origin := word{Text: string(s.Origin)}
		switch s.Origin {
		case record.OriginUnproven:
			origin.Tone = warn
		case record.OriginExchanged:
			origin.Tone = bad
		}
		row = append(row, origin, word{Text: s.Name})
		if p.wide {
			row = append(row, cells(display.Timestamp(s.TakenAt), strconv.FormatInt(s.Revision, 10),
				strconv.FormatInt(s.Keys, 10),
				fmt.Sprintf("%08x", s.Hash), s.Host, s.Member, s.Etcd, strconv.FormatBool(s.Encrypted))...)
		}
		t.add(row...)
	}
	p.table(t)
	for _, s := range j.Snapshots {
		if s.Origin == record.OriginExchanged {
			p.line("%s %s: its manifest does not match the hash recorded by %s; do not restore it",
				word{"exchanged:", bad}, s.Name, s.RecordedBy)
		}
	}
	writeLeftovers(p, j)
}

// ago returns how long ago something happened, or "no" if it has not happened.
func ago(now time.Time, at *time.Time) string {
	if at == nil {
		return "no"
	}
	return display.Span(now.Sub(*at)) + " ago"
}

// writeLeftovers shows orphaned objects and unreadable manifests.
func writeLeftovers(p *page, j control.SnapshotJob) {
	for _, u := range j.Unread {
		p.line("%s %s", word{"unreadable:", bad}, u)
	}
	if n := len(j.Orphans); n > 0 {
		p.line("%s; quorumctl snapshot prune removes those older than a day",
			display.Count(n, "orphaned object", "orphaned objects"))
	}
}

func writePruned(p *page, j control.SnapshotJob, dryRun bool) {
	did := map[bool]string{true: "would remove", false: "removed"}[dryRun]
	for _, s := range j.Snapshots {
		p.line("%s %s, taken %s", did, s.Name, display.Timestamp(s.TakenAt))
	}
	for _, s := range j.Orphans {
		p.line("%s orphaned object %s", did, s)
	}
	if len(j.Snapshots)+len(j.Orphans) == 0 {
		p.line("no snapshot to remove")
	}
	for _, u := range j.Unread {
		p.line("%s %s", word{"unreadable, kept:", warn}, u)
	}
}

func encryptedText(s control.Snapshot) string {
	if s.Encrypted {
		return ", encrypted"
	}
	return ""
}

func jobTime(j control.SnapshotJob) string {
	if j.Ended == nil {
		return "unknown time"
	}
	return display.Latency(j.Ended.Sub(j.Started).Seconds())
}
