// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/systemd"
	"github.com/quorumd/quorumd/systemd/roothelper"
)

// settle is how long etcd may take to open or close its ports after the operator's program ran: the kubelet checks its
// manifests every 20 s, and a pod has 30 s to end.
const settle = 90 * time.Second

// openExternal returns the unit of an etcd that systemd does not manage.
func openExternal(conf config.Config, orders *roothelper.Client, launcher *hooks.Launcher) (unit, error) {
	o := systemd.ExternalOptions{
		Name: "etcd", Addresses: portsOf(conf.Etcd), Programs: etcdPrograms{hooks.EtcdPrograms{Launcher: launcher}},
		Settle: settle, EnvironmentFile: conf.Etcd.EnvironmentFile,
	}
	if orders != nil {
		o.Orders = orders
	}
	return systemd.NewExternal(o)
}

// portsOf returns the addresses on which etcd listens. The peer port is among them, because a listener on the client
// port may be the proxy, but a listener on the peer port is always etcd.
func portsOf(e config.Etcd) (all []string) {
	for _, text := range []string{e.ListenPeerURL, e.ListenClientURL} {
		text, _, _ = strings.Cut(text, ",") // a list consists of an http URL and an https URL with the same address
		u, err := url.Parse(text)
		if err != nil {
			continue // impossible: the configuration has been validated
		}
		host := u.Hostname()
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			host = "localhost"
		}
		all = append(all, net.JoinHostPort(host, u.Port()))
	}
	return slices.Compact(all)
}

// etcdPrograms adapts the operator's programs that start and stop etcd to the interface of package systemd.
type etcdPrograms struct{ hooks.EtcdPrograms }

// Last returns the last run of a program.
func (p etcdPrograms) Last() (systemd.ProgramRun, error) {
	last, err := p.EtcdPrograms.Last()
	return systemd.ProgramRun(last), err
}
