// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/quorumd/quorumd/agent/recovery"
)

const (
	clientSocket = "client.sock"
	peerSocket   = "peer.sock"
	askEvery     = 200 * time.Millisecond
	askBound     = 5 * time.Second
	stopBound    = time.Minute
	// forceBound is how long etcd may take until it answers: it opens the database and applies the log, on a disk that
	// may be slow, and elects itself.
	forceBound = 10 * time.Minute
	// mostTold bounds what is told of etcd's log when it has failed, in bytes.
	mostTold = 600
	// processors keeps the threads of etcd few on a large machine: the unit bounds their number.
	processors = "GOMAXPROCS=4"
)

// force runs etcd once on the copy, reachable by nobody but this process, so that it throws all other members out; it
// stops it once it has a leader and has answered a linearizable read. The flag that forces is an argument of this one
// process and stands nowhere else.
func force(ctx context.Context, c Place, w recovery.Work, etcd string, held *os.File) error {
	args := []string{
		"--name", w.Name, "--data-dir", c.DataDir, "--force-new-cluster",
		"--listen-client-urls", "unix://" + clientSocket, "--advertise-client-urls", w.ClientURL,
		"--listen-peer-urls", "unix://" + peerSocket, "--initial-advertise-peer-urls", w.PeerURL,
		"--initial-cluster", w.Name + "=" + w.PeerURL,
		// None: a database that is larger than etcd's default, as its own etcd is told to allow, would raise an alarm.
		"--quota-backend-bytes=-1",
	}
	if c.WALDir != "" {
		args = append(args, "--wal-dir", c.WALDir)
	}
	if err := errors.Join(gone(filepath.Join(c.DataDir, clientSocket)), gone(filepath.Join(c.DataDir, peerSocket)),
		os.Chmod(c.DataDir, ownerAll)); err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(c.DataDir, logName), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, ownerRW)
	if err != nil {
		return err
	}
	defer out.Close()                      // it is for people
	command := exec.Command(etcd, args...) //nolint:noctx // it is stopped in order, or with this process
	command.Dir, command.Env, command.Stdout, command.Stderr = c.DataDir, environment(), out, out
	command.Env = append(command.Env, processors)
	command.ExtraFiles = []*os.File{held} // whoever comes after waits for it, too
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the signal comes when the thread ends that has started it
	defer runtime.UnlockOSThread()
	if err := command.Start(); err != nil {
		return fmt.Errorf("cannot start %s on the copy: %w", etcd, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	waited, done := context.WithTimeout(ctx, forceBound)
	defer done()
	answered := answers(waited, filepath.Join(c.DataDir, clientSocket), ended)
	if answered != nil && waited.Err() == nil { // it has ended
		return fmt.Errorf("cannot force the copy: etcd has ended: %w: %s", answered, tail(out.Name()))
	}
	if err := stop(command.Process, ended); err != nil {
		return fmt.Errorf("cannot force the copy: %w: %s", err, tail(out.Name()))
	}
	if answered != nil {
		return fmt.Errorf("cannot force the copy: etcd has not answered in time: %w: %s", answered, tail(out.Name()))
	}
	return nil
}

// answers waits until etcd answers a linearizable read. It gives the error with which it has ended, or that of the
// context.
func answers(ctx context.Context, socket string, ended <-chan error) error {
	client := http.Client{Timeout: askBound, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial(ctx, socket)
		},
	}}
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		if healthy(ctx, &client) {
			return nil
		}
		select {
		case err := <-ended:
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

// dial connects to a socket whose path may be longer than the kernel takes: by way of its directory.
func dial(ctx context.Context, socket string) (net.Conn, error) {
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return nil, err
	}
	defer dir.Close() // it only names the directory
	var d net.Dialer
	return d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket)))
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

// stop ends etcd in order. One that does not end is killed, and what it leaves is not used.
func stop(process *os.Process, ended <-chan error) error {
	if err := process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(stopBound)
	defer timer.Stop()
	select {
	case err := <-ended:
		if inOrder(err) {
			return nil
		}
		return err
	case <-timer.C:
		err := process.Kill()
		return errors.Join(fmt.Errorf("etcd has not stopped within %s", stopBound), err, <-ended)
	}
}

// inOrder tells whether etcd has ended itself by the signal that it was sent, and not by another.
func inOrder(err error) bool {
	exit, is := errors.AsType[*exec.ExitError](err)
	if !is {
		return false
	}
	status, is := exit.Sys().(syscall.WaitStatus)
	return is && status.Signaled() && status.Signal() == syscall.SIGTERM
}

// tail gives the last words of a log, for people.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	if len(text) > mostTold {
		text = text[len(text)-mostTold:]
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(text)), "?")
}

func gone(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
