// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/agent/scratchetcd"
)

const (
	pollInterval   = 200 * time.Millisecond
	requestTimeout = 5 * time.Second
	stopTimeout    = time.Minute
	// forceTimeout is how long etcd may take to answer: it opens the database, applies the log on a disk that may be
	// slow, and elects itself.
	forceTimeout = 10 * time.Minute
	// processors limits etcd's threads on a large machine, because the unit limits their number.
	processors = "GOMAXPROCS=4"
)

// force runs etcd once on the copy with --force-new-cluster, so that it removes all other members. Only this process
// can reach it. force stops etcd once it has answered a linearizable read. The flag is not stored.
func force(ctx context.Context, c Place, w recovery.Work, program string, lockFile *os.File) error {
	args := append(scratchetcd.Listen(),
		"--name", w.Name, "--data-dir", c.DataDir, "--force-new-cluster",
		"--advertise-client-urls", w.ClientURL, "--initial-advertise-peer-urls", w.PeerURL,
		"--initial-cluster", w.Name+"="+w.PeerURL,
		// Unlimited: a database above etcd's default quota would raise an alarm, even if the cluster's quota allows
		// that size.
		"--quota-backend-bytes=-1",
	)
	if c.WALDir != "" {
		args = append(args, "--wal-dir", c.WALDir)
	}
	if w.Snapshot != nil {
		// The keys are in the database, and not in the log. A joining member must therefore receive the database. The
		// leader sends the database only if its log starts with a raft snapshot. If the log still had its first entry,
		// the member would replay the log instead, without the keys.
		args = append(args, "--snapshot-count=1")
	}
	etcd, err := scratchetcd.Start(program, c.DataDir, args, lockFile, processors)
	if err != nil {
		return fmt.Errorf("cannot turn the copy into a new cluster: %w", err)
	}
	waitCtx, cancel := context.WithTimeout(ctx, forceTimeout)
	defer cancel()
	waitErr := waitHealthy(waitCtx, etcd)
	if waitErr != nil && waitCtx.Err() == nil { // etcd has exited
		return fmt.Errorf("cannot turn the copy into a new cluster: etcd exited: %w: %s", waitErr, etcd.LogTail())
	}
	if err := etcd.Stop(stopTimeout); err != nil { // an etcd that does not stop may still write to the copy
		return fmt.Errorf("cannot turn the copy into a new cluster: %w: %s", err, etcd.LogTail())
	}
	if waitErr != nil {
		return fmt.Errorf("cannot turn the copy into a new cluster: etcd did not answer in time: %w: %s", waitErr,
			etcd.LogTail())
	}
	return nil
}

// waitHealthy waits until etcd answers a linearizable read. If etcd exits, it returns etcd's error; if the context
// ends, the context's.
func waitHealthy(ctx context.Context, etcd *scratchetcd.Etcd) error {
	client := http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return etcd.Dial(ctx) },
	}}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if isHealthy(ctx, &client) {
			return nil
		}
		select {
		case err := <-etcd.Ended():
			if err == nil {
				err = errors.New("exit status 0")
			}
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// isHealthy reports whether etcd is healthy. It ignores alarms, because they are part of the database and an operator
// clears them later.
func isHealthy(ctx context.Context, client *http.Client) bool {
	const url = "http://etcd/health?exclude=NOSPACE&exclude=CORRUPT"
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	answer, err := client.Do(ask)
	if err != nil {
		return false
	}
	_ = answer.Body.Close() // only the status code matters
	return answer.StatusCode == http.StatusOK
}
