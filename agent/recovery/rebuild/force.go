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
	// forceBound is how long etcd may take until it answers: it opens the database and applies the log, on a disk that
	// may be slow, and elects itself.
	forceBound = 10 * time.Minute
	// processors keeps the threads of etcd few on a large machine: the unit bounds their number.
	processors = "GOMAXPROCS=4"
)

// force runs etcd once on the copy, reachable by nobody but this process, so that it throws all other members out; it
// stops it once it has a leader and has answered a linearizable read. The flag that forces is an argument of this one
// process and stands nowhere else.
func force(ctx context.Context, c Place, w recovery.Work, program string, held *os.File) error {
	args := append(scratchetcd.Listen(),
		"--name", w.Name, "--data-dir", c.DataDir, "--force-new-cluster",
		"--advertise-client-urls", w.ClientURL, "--initial-advertise-peer-urls", w.PeerURL,
		"--initial-cluster", w.Name+"="+w.PeerURL,
		// None: a database that is larger than etcd's default, as its own etcd is told to allow, would raise an alarm.
		"--quota-backend-bytes=-1",
	)
	if c.WALDir != "" {
		args = append(args, "--wal-dir", c.WALDir)
	}
	if w.Snapshot != nil {
		// The log tells nothing of what lies in the database. One that begins with a snapshot of raft's makes whoever
		// joins get the database; from a log that begins with its first entry he would get that, and no keys.
		args = append(args, "--snapshot-count=1")
	}
	etcd, err := scratchetcd.Start(program, c.DataDir, args, held, processors)
	if err != nil {
		return fmt.Errorf("cannot force the copy: %w", err)
	}
	waited, done := context.WithTimeout(ctx, forceBound)
	defer done()
	answered := answers(waited, etcd)
	if answered != nil && waited.Err() == nil { // it has ended
		return fmt.Errorf("cannot force the copy: etcd has ended: %w: %s", answered, etcd.LastWords())
	}
	if err := etcd.Stop(stopBound); err != nil { // what it leaves then is not used
		return fmt.Errorf("cannot force the copy: %w: %s", err, etcd.LastWords())
	}
	if answered != nil {
		return fmt.Errorf("cannot force the copy: etcd has not answered in time: %w: %s", answered, etcd.LastWords())
	}
	return nil
}

// answers waits until etcd answers a linearizable read. It gives the error with which it has ended, or that of the
// context.
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

// healthy asks for all but the alarms: they lie in the database, and stand for those who use the cluster to end.
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
	_ = answer.Body.Close() // the status says it
	return answer.StatusCode == http.StatusOK
}
