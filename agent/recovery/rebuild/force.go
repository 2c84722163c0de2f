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
	askEvery  = 200 * time.Millisecond
	askBound  = 5 * time.Second
	stopBound = time.Minute
	// forceBound is how long etcd may take to answer: it opens the database, applies the log on a disk that may be
	// slow, and elects itself.
	forceBound = 10 * time.Minute
	// processors limits etcd's threads on a large machine, as the unit bounds their number.
	processors = "GOMAXPROCS=4"
)

// force runs etcd once on the copy with --force-new-cluster, so that it removes all other members. Only this process
// can reach it. force stops etcd once it has a leader and has answered a linearizable read. The flag is an argument of
// this process only, and is not stored.
func force(ctx context.Context, c Place, w recovery.Work, program string, held *os.File) error {
	args := append(scratchetcd.Listen(),
		"--name", w.Name, "--data-dir", c.DataDir, "--force-new-cluster",
		"--advertise-client-urls", w.ClientURL, "--initial-advertise-peer-urls", w.PeerURL,
		"--initial-cluster", w.Name+"="+w.PeerURL,
		// Unlimited: a database above etcd's default quota would raise an alarm, even if its own cluster allows that
		// size.
		"--quota-backend-bytes=-1",
	)
	if c.WALDir != "" {
		args = append(args, "--wal-dir", c.WALDir)
	}
	if w.Snapshot != nil {
		// The log does not have what is only in the database. A joining member must therefore get the database, which
		// it does from a log that starts with a raft snapshot. From a log with its first entry it would replay that,
		// and get no keys.
		args = append(args, "--snapshot-count=1")
	}
	etcd, err := scratchetcd.Start(program, c.DataDir, args, held, processors)
	if err != nil {
		return fmt.Errorf("cannot force the copy: %w", err)
	}
	waited, done := context.WithTimeout(ctx, forceBound)
	defer done()
	answered := answers(waited, etcd)
	if answered != nil && waited.Err() == nil { // it has exited
		return fmt.Errorf("cannot force the copy: etcd has ended: %w: %s", answered, etcd.LastWords())
	}
	if err := etcd.Stop(stopBound); err != nil { // the copy is not used then
		return fmt.Errorf("cannot force the copy: %w: %s", err, etcd.LastWords())
	}
	if answered != nil {
		return fmt.Errorf("cannot force the copy: etcd has not answered in time: %w: %s", answered, etcd.LastWords())
	}
	return nil
}

// answers waits until etcd answers a linearizable read. It returns etcd's error if it exits, or the context's.
func answers(ctx context.Context, etcd *scratchetcd.Etcd) error {
	client := http.Client{Timeout: askBound, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return etcd.Dial(ctx) },
	}}
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		if healthy(ctx, &client) {
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

// healthy checks all but the alarms: they are part of the database, and users of the cluster clear them.
func healthy(ctx context.Context, client *http.Client) bool {
	const url = "http://etcd/health?exclude=NOSPACE&exclude=CORRUPT"
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	answer, err := client.Do(ask)
	if err != nil {
		return false
	}
	_ = answer.Body.Close() // the status is enough
	return answer.StatusCode == http.StatusOK
}
