// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"slices"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/fileaccess"
)

// Missing returns the problems of a valid configuration on this host: a file that other users can change, documentation
// addresses, addresses of other hosts, and programs, units, users or directories that do not exist.
func Missing(ctx context.Context, file string, c config.Config) config.Errors {
	var m missing
	m.modes(file)
	m.addresses(c, ownAddresses())
	if c.Etcd.Runner != config.RunnerExternal {
		m.program(c.Etcd.Binary)
	}
	if c.Etcd.Runner == config.RunnerSystemd {
		m.unit(ctx, c.Etcd.Unit)
	}
	if dir := c.Backup.Store.Directory; dir != "" {
		if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			m.add("backup.store.directory", "%s is not a directory; create or mount it on every host", dir)
		}
	}
	return m.problems
}

type missing struct{ problems config.Errors }

func (m *missing) add(key, format string, args ...any) {
	m.problems = append(m.problems, config.Problem{Key: key, Message: fmt.Sprintf(format, args...)})
}

// modes checks that no other user can change the file, because the root helper acts on it.
func (m *missing) modes(file string) {
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&0o022 == 0 {
		return
	}
	m.problems = append(m.problems, config.Problem{Message: fmt.Sprintf(
		"other users can change %s (mode %04o); run chmod go-w %s", file, info.Mode().Perm(), file)})
}

// addresses checks the URLs of this host, and looks for documentation addresses in cluster.endpoints.
func (m *missing) addresses(c config.Config, own []netip.Addr) {
	remote := slices.ContainsFunc(c.Cluster.Endpoints, func(u string) bool {
		a, is := addressOf(u)
		return !is || !a.IsLoopback()
	})
	for _, u := range []struct{ key, url string }{
		{"etcd.clientURL", c.Etcd.ClientURL}, {"etcd.peerURL", c.Etcd.PeerURL},
	} {
		a, is := addressOf(u.url)
		switch {
		case !is: // a DNS name, which every host resolves by itself
		case isExample(a):
			m.add(u.key, "%s is a documentation address; use this host's own", a)
		case a.IsLoopback() && remote:
			m.add(u.key, "no other host can reach %s; use the address at which other hosts reach this one", a)
		case own != nil && !a.IsLoopback() && !slices.Contains(own, a):
			m.add(u.key, "no interface of this host has %s; use this host's own address", a)
		}
	}
	for _, u := range c.Cluster.Endpoints {
		if a, is := addressOf(u); is && isExample(a) {
			m.add("cluster.endpoints", "%s is a documentation address; list the client URLs of your hosts", a)
			return
		}
	}
}

// isExample reports whether RFC 5737 or RFC 3849 reserves the address for documentation.
func isExample(a netip.Addr) bool {
	return slices.ContainsFunc([]string{"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32"},
		func(p string) bool { return netip.MustParsePrefix(p).Contains(a) })
}

// addressOf returns the IP address in a URL, and reports whether it contains one. localhost counts as 127.0.0.1.
func addressOf(text string) (a netip.Addr, is bool) {
	u, err := url.Parse(text)
	if err != nil {
		return netip.Addr{}, false
	}
	if u.Hostname() == "localhost" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	a, err = netip.ParseAddr(u.Hostname())
	return a.Unmap(), err == nil
}

// ownAddresses returns the addresses of this host's interfaces, or nil if they cannot be read.
func ownAddresses() []netip.Addr {
	nets, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	own := []netip.Addr{}
	for _, n := range nets {
		if prefix, err := netip.ParsePrefix(n.String()); err == nil {
			own = append(own, prefix.Addr().Unmap())
		}
	}
	return own
}

func (m *missing) program(path string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		m.add(
			"etcd.binary",
			"%s does not exist; install etcd (for example the package quorumd-etcd), or correct the path",
			path,
		)
	case err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0):
		m.add("etcd.binary", "%s is not an executable file; correct the path, or run chmod +x on it", path)
	}
}

// unknownUser reports whether no account database of this host (nsswitch.conf) contains the user.
func unknownUser(ctx context.Context, name string) bool {
	const notFound = 2 // exit code of getent
	_, err := ask(ctx, "getent", "passwd", "--", name)
	exit, ended := errors.AsType[*exec.ExitError](err)
	return ended && exit.ExitCode() == notFound
}

// unit checks that etcd's unit and its user exist. Without systemd, it reports no problem.
func (m *missing) unit(ctx context.Context, unit string) {
	switch show(ctx, unit)["LoadState"] {
	case "not-found":
		m.add(
			"etcd.unit",
			"unit %s does not exist; install etcd (for example the package quorumd-etcd), or correct the name",
			unit,
		)
	case "loaded":
		name := fileaccess.EtcdUser(ctx, unit)
		if unknownUser(ctx, name) {
			m.add("etcd.unit", "%s runs as user %s, which does not exist; run useradd --system %s", unit, name, name)
		}
	}
}
