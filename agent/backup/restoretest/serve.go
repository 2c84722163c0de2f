// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package restoretest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/quorumd/quorumd/agent/backup"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/scratchetcd"
)

const (
	askEvery = 200 * time.Millisecond
	// pendingBytes is the progress, in bytes, that ask reports in each interval while it waits for etcd's answer, so
	// that the job does not count as hung. serveBound limits the wait.
	pendingBytes = 64 << 10
	// serveBound is how long etcd may take to answer. It reads the whole database, and the disk may be slow.
	serveBound = 10 * time.Minute
	stopBound  = 20 * time.Second
)

// serve runs an etcd on the directory, compares its answers with the manifest, and stops it. That etcd syncs nothing to
// the disk, because the directory is thrown away.
func serve(ctx context.Context, dir, program string, held *os.File, m backup.Manifest, progress func(int64)) (string,
	error,
) {
	etcd, err := scratchetcd.Start(program, dir, flags(), held, "GOMAXPROCS=2", "GOMEMLIMIT=256MiB")
	if err != nil {
		return "", err
	}
	// If memory runs out, the kernel kills this etcd first. If this write is forbidden, the kernel treats this etcd
	// like any other process.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", etcd.PID()), []byte("1000"), 0)
	ctx, cancel := context.WithTimeout(ctx, serveBound)
	defer cancel()
	version, err := ask(ctx, etcd, m, progress)
	if died, is := errors.AsType[*deadError](err); is {
		if scratchetcd.Killed(died.err) {
			return "", fmt.Errorf("%w (%s); if quorumd's unit has too little memory for a database of %d MB, run "+
				"systemctl edit quorumd on this host, and raise MemoryMax=", ErrKilled, program, m.Size/1e6)
		}
		return "", fmt.Errorf("etcd (%s) exited during the restore test: %w: %s", program, died.err, etcd.LogTail())
	}
	_ = etcd.Stop(stopBound) // an error does not matter, because the comparison has ended
	if err != nil && !errors.Is(err, backup.ErrDamaged) {
		err = fmt.Errorf("etcd (%s) does not serve the snapshot: %w: %s", program, err, etcd.LogTail())
	}
	return version, err
}

func flags() []string {
	return append(scratchetcd.Listen(),
		"--name", memberName, "--data-dir", ".", "--unsafe-no-fsync",
		"--advertise-client-urls", nowhere, "--initial-advertise-peer-urls", nowhere,
		"--initial-cluster", memberName+"="+nowhere,
		// No quota, because a database above etcd's default quota would raise an alarm, even if the original cluster
		// allows that size.
		"--quota-backend-bytes=-1",
	)
}

// deadError means that etcd ended before it was stopped.
type deadError struct{ err error }

func (e *deadError) Error() string { return e.err.Error() }

// ErrKilled means that the etcd of the restore test was killed, which proves nothing about the snapshot.
var ErrKilled = errors.New("the etcd of the restore test was killed")

// ask waits until etcd serves, and compares its answers with the manifest.
func ask(ctx context.Context, etcd *scratchetcd.Etcd, m backup.Manifest, progress func(int64)) (string, error) {
	conn, err := grpc.NewClient("passthrough:///etcd", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return etcd.Dial(ctx) }))
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // the caller stops the etcd at the other end
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	type answer struct {
		version string
		err     error
	}
	var answers chan answer // nil while no request is running
	err = errors.New("etcd has not answered yet")
	for {
		if answers == nil {
			answers = make(chan answer, 1)
			go func() {
				version, err := compare(ctx, conn, m)
				answers <- answer{version, err}
			}()
		}
		select {
		case a := <-answers:
			if err = a.err; err == nil || errors.Is(err, backup.ErrDamaged) {
				return a.version, err
			}
			<-tick.C // ask again after a moment
			answers = nil
		case status := <-etcd.Ended():
			return "", &deadError{cmp.Or(status, errors.New("exit status 0"))}
		case <-ctx.Done():
			return "", fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-tick.C:
			progress(pendingBytes) // hashing a large database takes minutes, during which etcd reports nothing
		}
	}
}

// compare queries etcd at the snapshot's own revision, because keys with a lease may have expired since etcd was
// started.
func compare(ctx context.Context, conn *grpc.ClientConn, m backup.Manifest) (version string, err error) {
	// A linearizable read: the member must have elected itself, and applied its log.
	keys, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{
		Key: []byte{0}, RangeEnd: []byte{0}, Revision: m.Revision, CountOnly: true,
	})
	if status.Code(err) == codes.OutOfRange {
		return "", fmt.Errorf("%w: etcd cannot read the snapshot's revision %d: %w", backup.ErrDamaged, m.Revision, err)
	}
	if err != nil {
		return "", err
	}
	maintenance := pb.NewMaintenanceClient(conn)
	hash, err := maintenance.HashKV(ctx, &pb.HashKVRequest{Revision: m.Revision})
	if err != nil {
		return "", err
	}
	self, err := maintenance.Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return "", err
	}
	got := record.Contents{
		Revision: m.Revision, CompactRevision: hash.GetCompactRevision(), Hash: hash.GetHash(), Keys: keys.GetCount(),
	}
	if got != m.Contents {
		return "", fmt.Errorf("%w: etcd serves %+v, but the manifest has %+v", backup.ErrDamaged, got, m.Contents)
	}
	return self.GetVersion(), nil
}
