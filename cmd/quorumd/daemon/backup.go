// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/child"
	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/operate"
	"github.com/quorumd/quorumd/agent/record"
)

// backupMemory is the soft memory limit of a snapshot job, in bytes. The host also runs etcd.
const backupMemory = 48 << 20

// parseMemory is the memory that a child may allocate while it reads a database or a log, in bytes. It is less than the
// unit's MemoryMax=512M, so that a malicious file ends only the child. It is enough for 4 to 8 million keys; each
// needs 50 to 100 bytes.
const parseMemory = 384 << 20

// parseTime limits the CPU time of a child that reads a database or a log. A database of 8 GiB takes minutes.
const parseTime = 2 * time.Hour

// deleteBytes is how many bytes of progress the deletion of one snapshot or orphan counts as. Without it, a prune job
// with many deletions would be ended as stuck.
const deleteBytes = 1 << 20

// runBackup runs one snapshot job. Its arguments are the path of the configuration, the job, and the arguments of the
// job. It reads keys from files itself, so that they appear neither in arguments nor in messages.
func runBackup(args []string, stdout io.Writer) error {
	if len(args) < 2 {
		return errors.New("a configuration and a job are expected")
	}
	debug.SetMemoryLimit(backupMemory)
	// the members of a group may share the store; each file is created with an explicit mode
	syscall.Umask(0o007)
	signal.Ignore(syscall.SIGPIPE) // the job must clean up even if its parent has exited
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if args[1] == fetchJob {
		return runFetch(ctx, args[0], args[2:], stdout) // keep normal priority: etcd is down until the fetch is done
	}
	limits := etcddb.Limits{Memory: parseMemory, CPU: parseTime}
	confine := limits.Confine
	if args[1] == "restoreTest" { // the limits must not apply to the etcd that the test starts
		confine = limits.ConfineSelf
	}
	if err := confine(); err != nil {
		return err
	}
	lowerPriority()
	return child.Main(ctx, stdout, func(ctx context.Context, progress *child.Progress) (backup.Outcome, error) {
		conf, err := config.Load(args[0])
		if err != nil {
			return backup.Outcome{}, err
		}
		j, err := openJob(conf, progress)
		if err != nil {
			return backup.Outcome{}, err
		}
		if args[1] == "save" || args[1] == "verify" || args[1] == "restoreTest" && slowsEtcd(conf) {
			j.options.Progress = throttle(ctx, conf.Backup.Rate, progress.Add)
		}
		return j.do(ctx, args[1], args[2:])
	})
}

// fetchJob is the job that writes the database of a snapshot to its standard output, for a recovery.
const fetchJob = "fetch"

// fetchCommand returns the command that fetches a snapshot; nil if the configuration names no store.
func fetchCommand(conf config.Config, path string) []string {
	if conf.Backup.Store.Directory == "" && conf.Backup.Store.S3 == nil {
		return nil
	}
	return []string{self, backup.Command, path, fetchJob}
}

// runFetch writes the database of the named snapshot, if the stored file has the given SHA-256. The database ends with
// etcd's checksum and is invalid without it. runFetch writes this end only after it has read the whole file and the
// SHA-256 matched.
func runFetch(ctx context.Context, path string, args []string, stdout io.Writer) error {
	if len(args) != 2 {
		return errors.New("the name and the checksum of a snapshot are expected")
	}
	conf, err := config.Load(path)
	if err != nil {
		return err
	}
	j, err := openJob(conf, nil)
	if err != nil {
		return err
	}
	m, err := j.manifest(ctx, args[0])
	if err != nil {
		return err
	}
	if m.StoredSHA256 != args[1] {
		return fmt.Errorf("cannot fetch the snapshot %s: it is not the snapshot in the plan (its SHA-256 is %s)",
			m.Name, m.StoredSHA256)
	}
	snapshot, err := backup.Open(ctx, j.store, m, j.options.Identities)
	if err != nil {
		return err
	}
	err = copyChecksumLast(stdout, snapshot)
	if errors.Is(err, syscall.EPIPE) {
		err = nil // the reader has exited and reports the reason itself
	}
	return errors.Join(err, snapshot.Close())
}

// copyChecksumLast copies a database. It writes the checksum at its end only after everything was read without an
// error.
func copyChecksumLast(to io.Writer, from io.Reader) error {
	held := &allButEnd{to: to}
	if _, err := io.Copy(held, from); err != nil {
		return err
	}
	_, err := to.Write(held.end)
	return err
}

// allButEnd writes everything to another writer, except for etcd's checksum at the end, which it keeps.
type allButEnd struct {
	to  io.Writer
	end []byte
}

func (a *allButEnd) Write(p []byte) (int, error) {
	a.end = append(a.end, p...)
	if more := len(a.end) - etcddb.SumBytes; more > 0 {
		if _, err := a.to.Write(a.end[:more]); err != nil {
			return 0, err
		}
		a.end = append(a.end[:0], a.end[more:]...)
	}
	return len(p), nil
}

// openSnapshots returns the runner of snapshot jobs; nil if the configuration names no store.
func openSnapshots(conf config.Config, path string, log *slog.Logger) operate.Snapshots {
	if conf.Backup.Store.Directory == "" && conf.Backup.Store.S3 == nil {
		return nil
	}
	return &backup.Runner{
		Command: []string{self, backup.Command, path}, Patience: backup.DefaultPatience, Wall: time.Now,
		Tidy: func() { tidyRestoreTest(conf, log) },
	}
}

// job is the configuration and the resources of a snapshot job.
type job struct {
	conf     config.Config
	store    backup.Store
	options  backup.Options
	evidence backup.Evidence // evidence recorded on this host
	unread   error           // why evidence cannot be read; a snapshot can still be saved
}

func openJob(conf config.Config, progress *child.Progress) (j job, err error) {
	j = job{conf: conf, options: backup.Options{
		Spool: spoolOf(conf), Now: time.Now(), Progress: progress.Add, Remains: progress.Expect,
	}}
	if err := os.MkdirAll(j.options.Spool, 0o700); err != nil {
		return j, fmt.Errorf("cannot create the directory for temporary snapshots: %w", err)
	}
	if j.options.Recipients, err = backup.ParseRecipients(conf.Backup.EncryptTo); err != nil {
		return j, err
	}
	if path := conf.Backup.IdentityFile; path != "" {
		if j.options.Identities, err = backup.ReadIdentities(path); err != nil {
			return j, fmt.Errorf("cannot use backup.identityFile (%s): %w", path, err)
		}
	}
	j.evidence, j.unread = hoststate.ReadManifests(hoststate.HostFiles{}, conf.Paths.State)
	j.store, err = openStore(conf)
	return j, err
}

func openStore(conf config.Config) (backup.Store, error) {
	switch s := conf.Backup.Store; {
	case s.Directory != "":
		return backup.OpenDirectory(s.Directory, conf.Cluster.Name)
	case s.S3 != nil:
		endpoint, err := url.Parse(s.S3.Endpoint)
		if err != nil {
			return nil, err
		}
		return backup.OpenS3(backup.S3Options{
			Endpoint: endpoint, Bucket: s.S3.Bucket, Prefix: s.S3.Prefix, Cluster: conf.Cluster.Name,
			Region: s.S3.Region, Credentials: s.S3.CredentialsFile, CA: s.S3.CA,
		})
	}
	return nil, errors.New("no snapshot store is configured: set backup.store.directory or backup.store.s3")
}

func (j job) do(ctx context.Context, kind string, args []string) (backup.Outcome, error) {
	switch {
	case kind == "save" && len(args) == 1:
		return j.save(ctx, args[0])
	case kind == "list" && len(args) == 0:
		return j.list(ctx)
	case kind == "verify" && len(args) <= 1:
		return j.verify(ctx, append(args, "")[0])
	case kind == "restoreTest" && len(args) <= 1:
		return j.testRestore(ctx, append(args, "")[0])
	case kind == "prune" && len(args) == 1:
		return j.prune(ctx, args[0] == "yes")
	}
	return backup.Outcome{}, fmt.Errorf("%q is not a snapshot job", kind)
}

// save takes a snapshot of the member with the given hexadecimal ID.
func (j job) save(ctx context.Context, id string) (backup.Outcome, error) {
	member, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		return backup.Outcome{}, fmt.Errorf("%.30q is not a member ID", id)
	}
	etcd, err := cluster.New(clusterOptions(j.conf, slog.New(slog.DiscardHandler)))
	if err != nil {
		return backup.Outcome{}, err
	}
	defer etcd.Close() //nolint:errcheck // the process exits afterwards
	list, err := etcd.Members(ctx)
	if err != nil {
		return backup.Outcome{}, fmt.Errorf("cannot save a snapshot: %w", err)
	}
	from, found := list.ByID(member)
	if !found || len(from.ClientURLs) == 0 {
		return backup.Outcome{}, fmt.Errorf("cannot save a snapshot: member %s does not exist or has not started", id)
	}
	status := etcd.Statuses(ctx, []cluster.Member{from})[member]
	if status.Err != nil {
		return backup.Outcome{}, fmt.Errorf("cannot save a snapshot: %s does not answer: %w", from.Name, status.Err)
	}
	stream, err := etcd.Snapshot(ctx, from.ClientURLs[0])
	if err != nil {
		return backup.Outcome{}, fmt.Errorf("cannot save a snapshot: %s does not send it: %w", from.Name, err)
	}
	defer stream.Close()
	m, err := backup.Save(ctx, j.store, backup.Stream{
		Reader: stream, Cluster: j.conf.Cluster.Name, ClusterID: strconv.FormatUint(status.ClusterID, 16),
		Member: strconv.FormatUint(member, 16), Host: j.conf.Host.Name, EtcdVersion: status.Version,
		Size: status.DBSize,
	}, j.options)
	if err != nil {
		return backup.Outcome{}, err
	}
	saved := backup.Snapshot{Manifest: m, SnapshotEvidence: record.SnapshotEvidence{ManifestSHA256: m.SHA256}}
	return backup.Outcome{Snapshots: []backup.Snapshot{saved}}, nil
}

func (j job) list(ctx context.Context) (backup.Outcome, error) {
	if j.unread != nil {
		return backup.Outcome{}, j.unread
	}
	l, err := backup.List(ctx, j.store, j.options.Progress)
	if err != nil {
		return backup.Outcome{}, err
	}
	out := outcomeOf(l)
	for i, s := range out.Snapshots {
		out.Snapshots[i] = j.evidence.Seen(s)
	}
	return out, nil
}

func outcomeOf(l backup.Listing) backup.Outcome {
	out := backup.Outcome{Snapshots: l.Snapshots, Orphans: l.Orphans}
	for _, u := range l.Unread {
		out.Unread = append(out.Unread, u.Name+": "+u.Err.Error())
	}
	return out
}

// verify verifies the named snapshot, or the newest one, and records a success in the store.
func (j job) verify(ctx context.Context, name string) (backup.Outcome, error) {
	m, err := j.manifest(ctx, name)
	if err != nil {
		return backup.Outcome{}, err
	}
	if err := backup.Verify(ctx, j.store, m, j.options); err != nil {
		return backup.Outcome{}, err
	}
	if err := backup.MarkVerified(ctx, j.store, m); err != nil {
		return backup.Outcome{}, err
	}
	verified := j.evidence.Seen(backup.Snapshot{
		Manifest: m, SnapshotEvidence: record.SnapshotEvidence{VerifiedAt: &j.options.Now},
	})
	return backup.Outcome{Snapshots: []backup.Snapshot{verified}}, nil
}

// manifest returns the manifest of the named snapshot, or of the newest one. It returns an error if the snapshot was
// replaced or the evidence cannot be read.
func (j job) manifest(ctx context.Context, name string) (backup.Manifest, error) {
	if j.unread != nil {
		return backup.Manifest{}, j.unread
	}
	m, err := j.readManifest(ctx, name)
	if err == nil {
		err = j.evidence.Refuse(m)
	}
	return m, err
}

func (j job) readManifest(ctx context.Context, name string) (backup.Manifest, error) {
	if name != "" {
		return backup.ReadManifest(ctx, j.store, name)
	}
	l, err := backup.List(ctx, j.store, j.options.Progress)
	if err == nil && len(l.Snapshots) == 0 {
		err = fmt.Errorf("cannot read the newest snapshot: %w", backup.ErrNoSnapshot)
	}
	if err != nil {
		return backup.Manifest{}, err
	}
	return l.Snapshots[0].Manifest, nil
}

// prune removes expired snapshots, and orphaned objects older than backup.OrphanAge. Unless really is set, it only
// lists them.
func (j job) prune(ctx context.Context, really bool) (backup.Outcome, error) {
	l, err := backup.List(ctx, j.store, j.options.Progress)
	if err != nil {
		return backup.Outcome{}, err
	}
	now := j.options.Now
	out := backup.Outcome{Unread: outcomeOf(l).Unread}
	keep := backup.Keep{Count: j.conf.Backup.Keep.Count, Age: j.conf.Backup.Keep.Age}
	for _, s := range backup.Prunable(l.Snapshots, keep, now) {
		if really {
			if err := backup.Remove(ctx, j.store, s.Manifest); err != nil {
				return out, err
			}
			j.options.Progress(deleteBytes)
		}
		out.Snapshots = append(out.Snapshots, s)
	}
	for _, stray := range l.Orphans {
		if now.Sub(stray.Modified) < backup.OrphanAge {
			continue
		}
		if really {
			if err := j.store.Delete(ctx, stray.Name); err != nil {
				return out, err
			}
			j.options.Progress(deleteBytes)
		}
		out.Orphans = append(out.Orphans, stray)
	}
	return out, nil
}

// clusterOptions returns the options of this host's etcd client.
func clusterOptions(conf config.Config, log *slog.Logger) cluster.Options {
	tls := cluster.TLSFiles{Use: conf.Cluster.TLS != nil}
	if tls.Use {
		tls.CA, tls.Cert, tls.Key = conf.Cluster.TLS.CA, conf.Cluster.TLS.Cert, conf.Cluster.TLS.Key
	}
	return cluster.Options{
		Endpoints: conf.Cluster.Endpoints, Discovers: conf.Cluster.Discovery.Any(), TLS: tls,
		Login: cluster.Login{
			User: conf.Etcd.User, PasswordFile: conf.Etcd.PasswordFile,
			AllowUnencrypted: conf.Etcd.AllowUnencryptedPassword,
		},
		Probe: record.KeysFor(conf.Cluster.Name).Lock(), CallTimeout: conf.Timing.CallTimeout, Logger: log,
	}
}
