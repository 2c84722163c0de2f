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
)

func (a *app) snapshotCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "snapshot",
		GroupID: groupOperate,
		Short:   "Take snapshots of etcd, list, verify and prune them, and prove that they restore",
		Long: "Take snapshots of etcd's database into the store that the configuration names, prove that they can\n" +
			"be restored, and remove those that need not be kept. quorumd on this host does it, one thing at a\n" +
			"time, and goes on when this command is interrupted.",
		Args: onlySubcommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(a.snapshotSaveCommand(), a.snapshotListCommand(), a.snapshotVerifyCommand(),
		a.snapshotPruneCommand(), a.snapshotDrillCommand())
	return cmd
}

func (a *app) snapshotSaveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "save",
		Short: "Take a snapshot of the standby, or else of the healthiest follower",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.snapshotJob(cmd.Context(), control.SnapshotRequest{Do: control.SnapshotSave}, writeSaved)
		},
	}
}

func (a *app) snapshotListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Show the snapshots that lie in the store, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.snapshotJob(cmd.Context(), control.SnapshotRequest{Do: control.SnapshotList}, writeSnapshots)
		},
	}
}

func (a *app) snapshotVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [NAME]",
		Short: "Read a snapshot, or the newest, open it as etcd does, and compare its hash",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := control.SnapshotRequest{Do: control.SnapshotVerify}
			if len(args) == 1 {
				req.Name = args[0]
			}
			return a.snapshotJob(cmd.Context(), req, writeVerified)
		},
	}
}

func (a *app) snapshotDrillCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "drill [NAME]",
		Short: "Prove that a snapshot, or the newest, restores: a throw-away etcd serves it",
		Long: "Restore a snapshot, or the newest, into a directory that is thrown away, have an etcd serve it that\n" +
			"nobody else can reach, and compare its keys and its hash with what was saved. Neither this host's\n" +
			"etcd nor its data are touched. It takes the space of the database twice below paths.state.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := control.SnapshotRequest{Do: control.SnapshotDrill}
			if len(args) == 1 {
				req.Name = args[0]
			}
			return a.snapshotJob(cmd.Context(), req, writeProven)
		},
	}
}

func (a *app) snapshotPruneCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove the snapshots that backup.keep does not keep, and what was left over",
		Long: "Remove the snapshots that are neither among the newest nor young enough for backup.keep. The last\n" +
			"one that was verified always stays, and the last one that was proven to restore. What belongs to no\n" +
			"snapshot is removed when it is a day old.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req := control.SnapshotRequest{Do: control.SnapshotPrune, DryRun: dryRun}
			return a.snapshotJob(cmd.Context(), req, func(p *page, j control.SnapshotJob) { writePruned(p, j, dryRun) })
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be removed")
	return cmd
}

// snapshotPoll is how often a job is looked at.
const snapshotPoll = 200 * time.Millisecond

// snapshotJob starts a job and shows what came of it.
func (a *app) snapshotJob(ctx context.Context, req control.SnapshotRequest,
	text func(*page, control.SnapshotJob),
) error {
	what := req.Do + " snapshots"
	started, err := a.client().StartSnapshot(ctx, req)
	if err != nil {
		return cannot(what, err)
	}
	job, err := a.followSnapshot(ctx, started)
	switch {
	case err != nil:
		return err
	case job.Error != "":
		return &failure{code: exitFault, message: cannotSo(what, job.Error), hint: "journalctl -u quorumd shows more"}
	}
	return a.emit(job, func(p *page) { text(p, job) })
}

func cannotSo(what, cause string) string {
	if f, is := cannot(what, fmt.Errorf("%s", cause)).(*failure); is { //nolint:errorlint // it was just made
		return f.message
	}
	return cause
}

// followSnapshot waits for the end of a job, however long it takes: quorumd ends one that does not go on. On a terminal
// it shows how far the job is.
func (a *app) followSnapshot(ctx context.Context, started control.SnapshotJob) (control.SnapshotJob, error) {
	p := a.watchedOn(a.err)
	job, err := a.pollSnapshot(ctx, started, func(j control.SnapshotJob) error {
		return p.show(time.Now(), j.Do, jobText(j), j.Progress)
	})
	return job, errors.Join(err, p.end())
}

// jobText says what a job is doing; how much there is of it is said beside.
func jobText(j control.SnapshotJob) string {
	if j.Progress != nil {
		return "reading and writing"
	}
	if j.Serving {
		return "an etcd serves it: how long nobody knows, 10m at most"
	}
	return display.Size(float64(j.Bytes)) + " read and written so far"
}

// pollSnapshot looks at a job until it has ended, and shows each look before.
func (a *app) pollSnapshot(ctx context.Context, started control.SnapshotJob, show func(control.SnapshotJob) error,
) (control.SnapshotJob, error) {
	what := started.Do + " snapshots"
	timer := time.NewTicker(snapshotPoll)
	defer timer.Stop()
	for job := started; ; {
		if job.Ended != nil {
			return job, nil
		}
		select {
		case <-ctx.Done():
			return job, &failure{
				code: exitTimeout, message: "cannot " + what + ": it goes on, and was waited for no longer",
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
				code: exitFault, message: "cannot " + what + ": quorumd was restarted, or does something else now",
				hint: "quorumctl history, and ask again",
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
		p.line("    %d keys at revision %d, %s of %s stored%s, of member %s in %s", s.Keys, s.Revision,
			display.Size(float64(s.StoredSize)), display.Size(float64(s.Size)), encryptedText(s), s.Member, jobTime(j))
	}
}

func writeVerified(p *page, j control.SnapshotJob) {
	for _, s := range j.Snapshots {
		p.line("%s %s", word{"whole", good}, s.Name)
		p.line("    %d keys at revision %d with hash %s, as when it was taken; read in %s", s.Keys, s.Revision,
			fmt.Sprintf("%08x", s.Hash), jobTime(j))
		writeOrigin(p, s)
	}
}

func writeProven(p *page, j control.SnapshotJob) {
	for _, s := range j.Snapshots {
		p.line("%s %s", word{"proven", good}, s.Name)
		p.line("    etcd %s has served %d keys at revision %d with hash %s; in %s", j.Served, s.Keys, s.Revision,
			fmt.Sprintf("%08x", s.Hash), jobTime(j))
		writeOrigin(p, s)
	}
}

// writeOrigin says what proves that a snapshot is the one that was saved.
func writeOrigin(p *page, s control.Snapshot) {
	switch s.Origin {
	case control.OriginRecorded:
		at := "?"
		if s.RecordedAt != nil {
			at = display.Timestamp(*s.RecordedAt)
		}
		p.line("    origin: its manifest matches the hash recorded at %s by %s", at, s.RecordedBy)
	case control.OriginUnproven:
		p.line("    %s", word{"no hash of this snapshot is recorded: origin unproven", warn})
		if s.Encrypted {
			p.line("    encryption does not prove the origin: the recipient's key is public")
		}
	}
}

func writeSnapshots(p *page, j control.SnapshotJob) {
	if len(j.Snapshots) == 0 {
		p.line("the store holds no snapshot of this cluster")
	}
	t := table{head: []string{"AGE", "SIZE", "STORED", "VERIFIED", "PROVEN", "ORIGIN", "NAME"}}
	if p.wide {
		t.head = append(t.head, "TAKEN", "REVISION", "KEYS", "HASH", "HOST", "MEMBER", "ETCD", "ENCRYPTED")
	}
	now := j.Started
	for _, s := range j.Snapshots {
		row := cells(display.Span(now.Sub(s.TakenAt)), display.Size(float64(s.Size)),
			display.Size(float64(s.StoredSize)),
			ago(now, s.VerifiedAt), ago(now, s.ProvenAt))
		origin := word{Text: s.Origin}
		switch s.Origin {
		case control.OriginUnproven:
			origin.Tone = warn
		case control.OriginExchanged:
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
		if s.Origin == control.OriginExchanged {
			p.line("%s %s: its manifest does not match the hash recorded by %s; do not restore it",
				word{"exchanged:", bad}, s.Name, s.RecordedBy)
		}
	}
	writeLeftovers(p, j)
}

// ago tells when something was done, or that it never was.
func ago(now time.Time, at *time.Time) string {
	if at == nil {
		return "no"
	}
	return display.Span(now.Sub(*at)) + " ago"
}

// writeLeftovers shows what belongs to no snapshot.
func writeLeftovers(p *page, j control.SnapshotJob) {
	for _, u := range j.Unread {
		p.line("%s %s", word{"cannot be read:", bad}, u)
	}
	if n := len(j.Strays); n > 0 {
		p.line("%s of no snapshot; quorumctl snapshot prune removes what is a day old",
			display.Count(n, "object is", "objects are"))
	}
}

func writePruned(p *page, j control.SnapshotJob, dryRun bool) {
	did := map[bool]string{true: "would remove", false: "removed"}[dryRun]
	for _, s := range j.Snapshots {
		p.line("%s %s, taken %s", did, s.Name, display.Timestamp(s.TakenAt))
	}
	for _, s := range j.Strays {
		p.line("%s %s, which belongs to no snapshot", did, s)
	}
	if len(j.Snapshots)+len(j.Strays) == 0 {
		p.line("nothing to remove")
	}
	for _, u := range j.Unread {
		p.line("%s %s", word{"cannot be read, and stays:", warn}, u)
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
		return "no time"
	}
	return display.Latency(j.Ended.Sub(j.Started).Seconds())
}
