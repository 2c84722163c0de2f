// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/proxy"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestClientsLeaveAVoterInMaintenanceAndTheProxyOutlivesTheAgent has an agent that writes the list of voters, and a
// proxy as a separate process.
func TestClientsLeaveAVoterInMaintenanceAndTheProxyOutlivesTheAgent(t *testing.T) {
	t.Parallel()
	listen := fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	w := newWorld(t, worldOptions{hosts: 3, voters: 3, each: func(i int, o *testbed.HostOptions) {
		if i == 1 {
			o.Set["proxy.listen"] = listen
		}
	}})
	n1, n2 := w.hosts[0], w.hosts[1]
	output := proxyProcess(t, n1.ConfigPath(), listen) // before any etcd or agent runs
	w.start(w.hosts...)
	w.bootstrap()
	w.within(2*formation, "there are 3 voters", func() bool { return w.has(3, 0) })
	w.waitRolesAgree()
	w.eventually("the proxy reports three voters", func() bool {
		return strings.Contains(output.String(), "n3") && w.listsVoters(n1, 3)
	})

	id := memberID(t, address(n2.Options.ClientURL))
	var mine, others []*proxyClient
	for len(mine) == 0 || len(others) == 0 {
		p, err := connectThrough(listen, false)
		must(t, err)
		t.Cleanup(p.close)
		if p.member == id {
			mine = append(mine, p)
		} else {
			others = append(others, p)
		}
	}
	n2.requestWork(policy.WorkMaintenance)
	w.eventually("n2 may be touched", func() bool { return n2.maintenance() == policy.RequestSafe })
	for _, p := range mine {
		w.eventually("the connections to n2 end", p.isBroken)
	}
	for _, p := range others {
		if p.isBroken() || !p.exchange() {
			t.Errorf("a connection to another voter has broken: %v", p.err())
		}
	}

	n1.kill()
	p, err := connectThrough(listen, false)
	must(t, err)
	defer p.close()
	if p.member == id {
		t.Error("without the agent a client goes to a voter that is down")
	}
	w.start(n1)
	n2.endMaintenance()
	w.eventually("n2 is back", func() bool { return n2.endedWith(policy.Cycled) })
	w.eventually("n2 serves clients again", func() bool {
		p, err := connectThrough(listen, false)
		if err != nil {
			return false
		}
		t.Cleanup(p.close)
		return p.member == id
	})
}

// listsVoters reports whether a host's agent lists that many voters for its proxy, all of them usable.
func (w *world) listsVoters(h *host, voters int) bool {
	text, err := os.ReadFile(filepath.Join(h.Options.Dir, "run", proxy.FileName))
	if err != nil {
		return false
	}
	list, err := proxy.Parse(text)
	must(w.t, err)
	return len(list.Voters) == voters && strings.Count(string(text), `"use":true`) == voters
}

// startProxy starts quorumd proxy as a process, with a list as an agent writes it.
func startProxy(t *testing.T, list proxy.List, endpoints []string) (address string) {
	t.Helper()
	dir := t.TempDir()
	text, err := list.Encode()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, proxy.FileName), text, 0o600))
	address = fmt.Sprintf("127.0.0.1:%d", testbed.FreePorts(t, 1)[0])
	config := filepath.Join(dir, "quorumd.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "cluster: {name: demo, endpoints: ['%s']}\n"+
		"etcd: {clientURL: '%s', peerURL: 'http://127.0.0.1:1'}\nproxy: {listen: '%s'}\npaths: {runtime: %s}\n",
		strings.Join(endpoints, "', '"), endpoints[0], address, dir), 0o600))
	proxyProcess(t, config, address)
	return address
}

// proxyProcess starts quorumd proxy, and returns its output.
func proxyProcess(t *testing.T, config, address string) *processOutput {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "proxy", config)
	output := &processOutput{}
	command.Stderr, command.SysProcAttr = output, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, command.Start())
	t.Cleanup(func() {
		must(t, command.Process.Signal(syscall.SIGTERM))
		if err := command.Wait(); err != nil || t.Failed() {
			t.Errorf("the proxy has ended with %v; its output:\n%s", err, output)
		}
	})
	testbed.Eventually(t, bound, "the proxy to answer", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return output
}

// processOutput is the output of a process up to now.
type processOutput struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *processOutput) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *processOutput) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.text.String() }

// proxyClient is a connection through a proxy to some voter. It is never reopened.
type proxyClient struct {
	conn    *net.TCPConn
	reader  *bufio.Reader
	busy    bool
	member  string // the member that answers over it
	answers atomic.Int64
	failed  atomic.Pointer[error]
	stop    chan struct{}
	done    sync.WaitGroup
	once    sync.Once
}

func connectThrough(address string, busy bool) (*proxyClient, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &proxyClient{
		conn: conn.(*net.TCPConn), reader: bufio.NewReaderSize(conn, 1024), busy: busy, stop: make(chan struct{}),
	}
	if p.member, err = p.whoAnswers(); err != nil {
		conn.Close()
		return nil, err
	}
	if busy {
		p.done.Go(p.talk)
	}
	return p, nil
}

// whoAnswers requests the member ID of the etcd at the other end.
func (p *proxyClient) whoAnswers() (string, error) {
	var answer struct {
		Header struct {
			Member string `json:"member_id"`
		} `json:"header"`
	}
	err := p.ask("POST /v3/maintenance/status", "{}", &answer)
	if err == nil && answer.Header.Member == "" {
		err = errors.New("the answer has no member ID")
	}
	return answer.Header.Member, err
}

// ask sends a request over this connection.
func (p *proxyClient) ask(line, body string, into any) error {
	if err := p.conn.SetDeadline(time.Now().Add(bound)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.conn, "%s HTTP/1.1\r\nHost: etcd\r\nContent-Length: %d\r\n\r\n%s", line, len(body),
		body); err != nil {
		return err
	}
	answer, err := http.ReadResponse(p.reader, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", line, answer.Status)
	}
	text, err := io.ReadAll(answer.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

// talk sends a request once a second until the connection breaks.
func (p *proxyClient) talk() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		if err := p.ask("GET /version", "", nil); err != nil {
			p.failed.Store(&err)
			return
		}
		p.answers.Add(1)
	}
}

// exchange reports whether an idle connection still carries a request and its answer.
func (p *proxyClient) exchange() bool {
	if err := p.ask("GET /version", "", nil); err != nil {
		p.failed.Store(&err)
		return false
	}
	p.answers.Add(1)
	return true
}

// isBroken reports whether the connection has broken, without sending anything.
func (p *proxyClient) isBroken() bool {
	if p.failed.Load() != nil {
		return true
	}
	if p.busy {
		return false // talk reports a break itself
	}
	raw, err := p.conn.SyscallConn()
	if err != nil {
		return true
	}
	over := false
	if err := raw.Control(func(fd uintptr) {
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		over = err == nil && n == 0 || err != nil && !errors.Is(err, unix.EAGAIN)
	}); err != nil {
		return true
	}
	return over
}

func (p *proxyClient) err() error {
	if err := p.failed.Load(); err != nil {
		return *err
	}
	return io.EOF
}

func (p *proxyClient) close() {
	p.once.Do(func() {
		close(p.stop)
		p.conn.Close()
		p.done.Wait()
	})
}

// memberID requests an etcd's member ID directly, not through a proxy.
func memberID(t *testing.T, address string) string {
	t.Helper()
	p, err := connectThrough(address, false)
	must(t, err)
	defer p.close()
	return p.member
}
