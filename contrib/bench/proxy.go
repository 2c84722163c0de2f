// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// proxyVoters is the number of servers behind a proxy.
	proxyVoters = 3
	// The bulk load consists of concurrent streams, each of streamBytes. The interactive load consists of concurrent
	// talkers. Each talker makes that many exchanges, with messageBytes in each direction.
	streams      = 8
	streamBytes  = 256 * mebibyte
	talkers      = 64
	exchanges    = 1500
	messageBytes = 256
	// idleLinks is the number of connections that stay open without traffic while memory is measured. The bench holds
	// both ends of each.
	idleLinks = 4000
	// proxyTurns is the number of times each proxy is measured. The proxies alternate, so that both are exposed to the
	// same noise.
	proxyTurns = 3
	linkBound  = time.Minute
)

// The names of the figures.
const (
	carried    = "time for 2 GiB"
	carriedCPU = "CPU for 2 GiB"
	talked     = "time for 96,000 exchanges"
	talkedCPU  = "CPU for 96,000 exchanges"
	perLink    = "memory per idle connection"
)

func proxies() row {
	return row{
		name:    "proxy",
		about:   "a local proxy in front of three servers; haproxy and quorumd are measured in alternation",
		plainly: "haproxy, mode tcp, balance leastconn, otherwise defaults",
		ours:    "quorumd proxy",
		figures: []figure{
			{name: carried, unit: "s", digits: 2},
			{name: carriedCPU, unit: "s", digits: 2},
			{name: talked, unit: "s", digits: 2},
			{name: talkedCPU, unit: "s", digits: 2},
			{name: perLink, unit: "KiB", digits: 1},
		},
		need: gibibyte / 16, bound: 8 * time.Minute,
		both: compareProxies,
	}
}

// compareProxies measures both proxies in alternation, in front of the same servers.
func compareProxies(s *site) (plain, quorumd values, err error) {
	var servers []string
	for range proxyVoters {
		address, err := s.echoServer()
		if err != nil {
			return nil, nil, err
		}
		servers = append(servers, address)
	}
	haproxy, err := s.haproxy(servers)
	if err != nil {
		return nil, nil, err
	}
	ours, err := s.quorumdProxy(servers)
	if err != nil {
		return nil, nil, err
	}
	turns := [2]map[string][]float64{{}, {}}
	for range proxyTurns {
		for i, p := range []*runningProxy{haproxy, ours} {
			v, err := s.measureProxy(p)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", p.name, err)
			}
			for name, value := range v {
				turns[i][name] = append(turns[i][name], value)
			}
		}
	}
	plain, quorumd = values{}, values{}
	for name := range turns[0] {
		plain[name], quorumd[name] = median(turns[0][name]), median(turns[1][name])
	}
	return plain, quorumd, nil
}

type runningProxy struct {
	name, address string
	pid           int
	first         float64 // KiB per idle connection, measured before any load
}

// echoServer starts a server and returns its address. The first byte of a connection selects what the server does: echo
// every message, or discard streamBytes and then send one byte.
func (s *site) echoServer() (address string, err error) {
	var config net.ListenConfig
	l, err := config.Listen(s.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { answer(conn) })
		}
	})
	s.atEnd(func(context.Context) error {
		l.Close()
		all.Wait() // the proxies have already ended, and their connections with them
		return nil
	})
	return l.Addr().String(), nil
}

func answer(conn net.Conn) {
	defer conn.Close()
	kind := make([]byte, 1)
	if _, err := io.ReadFull(conn, kind); err != nil {
		return
	}
	if kind[0] == 'e' {
		message := make([]byte, messageBytes)
		for {
			if _, err := io.ReadFull(conn, message); err != nil {
				return
			}
			if _, err := conn.Write(message); err != nil {
				return
			}
		}
	}
	left := streamBytes
	buffer := make([]byte, mebibyte/4)
	for left > 0 {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		left -= n
	}
	_, _ = conn.Write(kind) // on an error the client does not get the byte and reports that
}

// program starts a proxy, and returns when it accepts connections.
func (s *site) program(name, address string, command *exec.Cmd) (*runningProxy, error) {
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", name, err)
	}
	s.atEnd(func(context.Context) error {
		err := command.Process.Kill()
		_ = command.Wait() // Wait returns an error, because the process was killed
		return err
	})
	p := &runningProxy{name: name, address: address, pid: command.Process.Pid}
	return p, s.until(name+" to answer", readyBound, func(ctx context.Context) bool {
		conn, err := p.dial(ctx, 'e')
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// haproxy starts haproxy with a minimal configuration.
func (s *site) haproxy(servers []string) (*runningProxy, error) {
	path, err := exec.LookPath("haproxy")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/haproxy"); err != nil {
			return nil, &unavailable{"haproxy not found: install Debian's package"}
		}
	}
	ports, err := s.ports(1)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	text := fmt.Sprintf("global\n  maxconn %d\ndefaults\n  mode tcp\n  timeout connect 2s\n  timeout client 1h\n"+
		"  timeout server 1h\nlisten etcd\n  bind %s\n  balance leastconn\n", idleLinks+1000, address)
	for i, server := range servers {
		text += fmt.Sprintf("  server n%d %s\n", i+1, server)
	}
	file := filepath.Join(s.dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return s.program("haproxy", address, exec.Command(path, "-db", "-f", file))
}

// quorumdProxy starts quorumd's proxy.
func (s *site) quorumdProxy(servers []string) (*runningProxy, error) {
	ports, err := s.ports(1)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	file := filepath.Join(s.dir, "quorumd.yaml")
	text := fmt.Sprintf("cluster: {name: bench, endpoints: ['http://%s']}\netcd: {clientURL: 'http://%s', "+
		"peerURL: 'http://127.0.0.1:1'}\nproxy: {listen: '%s'}\npaths: {runtime: %s}\n",
		strings.Join(servers, "', 'http://"), servers[0], address, s.dir)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return s.program("proxy", address, exec.Command(s.quorumd, "proxy", "--config", file))
}

// dial connects through a proxy, and sends the byte that selects what the server does.
func (p *runningProxy) dial(ctx context.Context, kind byte) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: linkBound}
	conn, err := dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	c := conn.(*net.TCPConn)
	_, err = c.Write([]byte{kind})
	if err == nil && kind == 'e' { // one exchange proves that the connection is open from end to end
		err = exchange(c, make([]byte, messageBytes))
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func exchange(c net.Conn, message []byte) error {
	if _, err := c.Write(message); err != nil {
		return err
	}
	_, err := io.ReadFull(c, message)
	return err
}

// measureProxy measures a proxy with bulk traffic, then with small exchanges. The first call for a proxy measures the
// memory for idle connections before that.
func (s *site) measureProxy(p *runningProxy) (values, error) {
	v := values{}
	if p.first == 0 {
		memory, err := s.idleMemory(p)
		if err != nil {
			return nil, err
		}
		p.first = memory
	}
	v[perLink] = p.first
	for _, load := range []struct {
		took, cpu string
		links     int
		kind      byte
		do        func(c *net.TCPConn) error
	}{
		{carried, carriedCPU, streams, 's', stream},
		{talked, talkedCPU, talkers, 'e', talk},
	} {
		before, err := costOf(p.pid, 0)
		if err != nil {
			return nil, err
		}
		took, err := s.through(p, load.links, load.kind, load.do)
		if err != nil {
			return nil, err
		}
		after, err := costOf(p.pid, 0)
		if err != nil {
			return nil, err
		}
		v[load.took], v[load.cpu] = took.Seconds(), after.cpu-before.cpu
	}
	return v, nil
}

// through opens the given number of connections, calls do on all of them concurrently, and returns how long the calls
// took.
func (s *site) through(p *runningProxy, links int, kind byte, do func(c *net.TCPConn) error) (time.Duration, error) {
	var all []*net.TCPConn
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	for range links {
		c, err := p.dial(s.ctx, kind)
		if err != nil {
			return 0, err
		}
		all = append(all, c)
	}
	began := time.Now()
	var group errgroup.Group
	for _, c := range all {
		group.Go(func() error {
			if err := c.SetDeadline(began.Add(2 * linkBound)); err != nil {
				return err
			}
			return do(c)
		})
	}
	err := group.Wait()
	return time.Since(began), err
}

// stream sends a large amount of data, and waits until all of it has arrived.
func stream(c *net.TCPConn) error {
	piece := make([]byte, mebibyte/4)
	for sent := 0; sent < streamBytes; sent += len(piece) {
		if _, err := c.Write(piece); err != nil {
			return err
		}
	}
	_, err := io.ReadFull(c, piece[:1])
	return err
}

func talk(c *net.TCPConn) error {
	message := make([]byte, messageBytes)
	for range exchanges {
		if err := exchange(c, message); err != nil {
			return err
		}
	}
	return nil
}

// idleMemory returns the additional memory per idle connection of a process, in KiB. It does not count kernel memory,
// which is the same for all proxies.
func (s *site) idleMemory(p *runningProxy) (float64, error) {
	before, err := costOf(p.pid, 0)
	if err != nil {
		return 0, err
	}
	var all []*net.TCPConn
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	for range idleLinks {
		c, err := p.dial(s.ctx, 'e')
		if err != nil {
			return 0, err
		}
		all = append(all, c)
	}
	after, err := costOf(p.pid, 0)
	return (float64(after.pss) - float64(before.pss)) / 1024 / idleLinks, err
}
