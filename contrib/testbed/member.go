// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// stopBound is how long a process may take to die. SIGKILL takes milliseconds unless the disk hangs.
const stopBound = 10 * time.Second

// MemberOptions describe one etcd.
type MemberOptions struct {
	Binary  string // path of etcd; see Binary
	Name    string
	Dir     string // holds etcd.log and, unless DataDir is set, data; it must exist
	DataDir string

	ClientURL       string // advertised URL, and the URL on which the member listens unless ListenClientURL is set
	PeerURL         string
	ListenClientURL string // set if the member is behind a Proxy
	ListenPeerURL   string

	InitialCluster string // "n1=http://127.0.0.1:2380,…"; this member alone if empty
	State          string // "new" or "existing"; new if empty
	Token          string // initial cluster token; if empty, etcd's default

	Heartbeat time.Duration // heartbeat interval; if 0, etcd's default of 100 ms
	Election  time.Duration // election timeout, at least 5 heartbeats; if 0, etcd's default of 1 s

	TLS   *CertFiles // certificate for clients and peers, which then need certificates, too; no TLS if nil
	Extra []string   // further flags
}

// Member is an etcd process. Its methods may be called concurrently.
type Member struct {
	Options MemberOptions

	mu   sync.Mutex
	proc *process // process of the latest start
}

// StartMember starts an etcd process and returns at once; see WaitReady. The process is killed when ctx ends, or when
// this process dies.
func StartMember(ctx context.Context, o MemberOptions) (*Member, error) {
	m := &Member{Options: o}
	if err := m.start(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

// Restart starts the member again with its current Options. The process must have exited.
func (m *Member) Restart(ctx context.Context) error {
	select {
	case <-m.Done():
		return m.start(ctx)
	default:
		return fmt.Errorf("cannot restart %s: it still runs; call Kill9 or Terminate, then Wait", m.Options.Name)
	}
}

func (m *Member) start(ctx context.Context) error {
	log, err := os.OpenFile(m.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", m.Options.Name, err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, m.Options.Binary, m.Options.flags()...)
	cmd.Stdout, cmd.Stderr = log, log
	for _, entry := range os.Environ() {
		// etcd would read ETCD_* variables as flags, and would notify the supervisor of this process
		if !strings.HasPrefix(entry, "ETCD_") && !strings.HasPrefix(entry, "NOTIFY_SOCKET=") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	p, err := startProcess(cmd, syscall.SIGKILL)
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", m.Options.Name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proc = p
	return nil
}

func (o MemberOptions) flags() []string {
	or := func(value, otherwise string) string {
		if value == "" {
			return otherwise
		}
		return value
	}
	flags := []string{
		"--name=" + o.Name,
		"--data-dir=" + or(o.DataDir, filepath.Join(o.Dir, "data")),
		"--advertise-client-urls=" + o.ClientURL,
		"--listen-client-urls=" + or(o.ListenClientURL, o.ClientURL),
		"--initial-advertise-peer-urls=" + o.PeerURL,
		"--listen-peer-urls=" + or(o.ListenPeerURL, o.PeerURL),
		"--initial-cluster=" + or(o.InitialCluster, o.Name+"="+o.PeerURL),
		"--initial-cluster-state=" + or(o.State, "new"),
	}
	if o.Token != "" {
		flags = append(flags, "--initial-cluster-token="+o.Token)
	}
	if o.Heartbeat > 0 {
		flags = append(flags, "--heartbeat-interval="+strconv.FormatInt(o.Heartbeat.Milliseconds(), 10))
	}
	if o.Election > 0 {
		flags = append(flags, "--election-timeout="+strconv.FormatInt(o.Election.Milliseconds(), 10))
	}
	if c := o.TLS; c != nil {
		flags = append(flags,
			"--cert-file="+c.Cert, "--key-file="+c.Key, "--trusted-ca-file="+c.CA, "--client-cert-auth",
			"--peer-cert-file="+c.Cert, "--peer-key-file="+c.Key, "--peer-trusted-ca-file="+c.CA,
			"--peer-client-cert-auth")
	}
	return append(flags, o.Extra...)
}

func (m *Member) process() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proc
}

// PID returns the process ID of the latest start.
func (m *Member) PID() int { return m.process().cmd.Process.Pid }

// Done returns a channel that is closed when the process has exited.
func (m *Member) Done() <-chan struct{} { return m.process().done }

// Wait waits until the process has exited. It returns nil for exit code 0, *exec.ExitError for other codes and signals,
// or an error with the cause of ctx if ctx ends first.
func (m *Member) Wait(ctx context.Context) error { return m.process().wait(ctx) }

// Kill9 sends SIGKILL. A process that waits for its disk ends only when the disk answers; see Wait.
func (m *Member) Kill9() error { return m.signal(syscall.SIGKILL, "kill") }

// Terminate sends SIGTERM: etcd transfers leadership, closes its files and then kills itself with the same signal. See
// Wait.
func (m *Member) Terminate() error { return m.signal(syscall.SIGTERM, "terminate") }

// Pause stops the process (SIGSTOP) and returns when it has stopped. Its sockets stay open.
func (m *Member) Pause() error {
	if err := m.signal(syscall.SIGSTOP, "pause"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopBound)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		state, err := m.process().state()
		if err != nil {
			return fmt.Errorf("cannot pause %s: %w", m.Options.Name, err)
		}
		if state == "T" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("cannot pause %s: it is in state %s after %v", m.Options.Name, state, stopBound)
		}
	}
}

// Resume continues a paused process (SIGCONT).
func (m *Member) Resume() error { return m.signal(syscall.SIGCONT, "resume") }

func (m *Member) signal(s syscall.Signal, verb string) error {
	if err := m.process().cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("cannot %s %s: %w", verb, m.Options.Name, err)
	}
	return nil
}

// Client returns a new client of this member alone. The caller closes it.
func (m *Member) Client() (*clientv3.Client, error) {
	return newClient([]string{m.Options.ClientURL}, m.Options.TLS)
}

func newClient(endpoints []string, certs *CertFiles) (*clientv3.Client, error) {
	var config *tls.Config
	if certs != nil {
		if _, err := certs.ClientConfig(); err != nil {
			return nil, err
		}
		config = certs.LiveConfig()
	}
	// Retry a failed connection soon: the tests measure etcd, not the backoff of gRPC (a second, then more).
	again := grpc.WithConnectParams(grpc.ConnectParams{
		Backoff: backoff.Config{
			BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
			MaxDelay: 200 * time.Millisecond,
		},
		MinConnectTimeout: time.Second,
	})
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, TLS: config, Logger: zap.NewNop(), DialOptions: []grpc.DialOption{again},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create an etcd client for %s: %w", strings.Join(endpoints, ", "), err)
	}
	return client, nil
}

// WaitReady waits until the member has a leader and, unless it is a learner, answers a linearizable read. It fails if
// ctx ends or the process exits; the error contains the reason and the end of the log.
func (m *Member) WaitReady(ctx context.Context) error {
	client, err := m.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	tick := time.NewTicker(5 * pollInterval)
	defer tick.Stop()
	done := m.Done()
	alive, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // cancel the pending call when the process exits
		select {
		case <-done:
			cancel()
		case <-alive.Done():
		}
	}()
	for {
		reason := ready(alive, client)
		if reason == nil {
			return nil
		}
		select {
		case <-done:
			reason = errors.New("it has exited")
		case <-ctx.Done():
		case <-tick.C:
			continue
		}
		return fmt.Errorf("%s is not ready: %w; its log ends with\n%s", m.Options.Name, reason, m.LogTail(8))
	}
}

// ready checks the member once.
func ready(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	status, err := client.Status(ctx, client.Endpoints()[0])
	switch {
	case err != nil:
		return err
	case status.Leader == 0:
		return errors.New("it has no leader")
	case status.IsLearner:
		return nil
	}
	_, err = client.Get(ctx, "health")
	return err
}

// LogPath returns the path of the log, which holds the output of all starts.
func (m *Member) LogPath() string { return filepath.Join(m.Options.Dir, "etcd.log") }

// LogTail returns the last lines of the log, or why it cannot be read.
func (m *Member) LogTail(lines int) string {
	text, err := os.ReadFile(m.LogPath())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// StopAfter kills the member when the test ends. If the test failed, it shows the end of the member's log.
func (m *Member) StopAfter(t testing.TB) {
	t.Cleanup(func() {
		_ = m.Kill9() // the process may have exited
		if err := m.process().stop(stopBound); err != nil {
			t.Errorf("cannot stop %s: %v", m.Options.Name, err)
		}
		if t.Failed() {
			t.Logf("the log of %s ends with\n%s", m.Options.Name, m.LogTail(40))
		}
	})
}
