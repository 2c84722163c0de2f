// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net"
	"slices"
)

// ProxyOn gives the first of the URLs at which nobody can listen beside the forwarder; empty where there is none.
func (c Config) ProxyOn(urls []string) string {
	i := slices.IndexFunc(urls, func(url string) bool { return overlap(address(url), c.Proxy.Listen) })
	if c.Proxy.Listen == "" || i < 0 {
		return ""
	}
	return urls[i]
}

// externalRules keep the forwarder off the port of an etcd that others run: where they have it listen beside its client
// URL this file does not say, and kubeadm does so on the loopback. Whichever of the two starts first keeps the other
// down. Who sets listenClientURL has said where it is.
func (d *decoder) externalRules(c *Config) []rule {
	const listen, from, proxy = "etcd.listenClientURL", "etcd.clientURL", "proxy.listen"
	_, etcdPort, _ := net.SplitHostPort(address(c.Etcd.ClientURL))
	_, port, _ := net.SplitHostPort(c.Proxy.Listen)
	return []rule{{
		[]string{proxy, from, "etcd.runner"},
		c.Etcd.Runner != RunnerExternal || d.setAt[listen] > 0 || port == "" || port != etcdPort,
		"etcd.runner is external, and that etcd may also listen on the loopback address besides " +
			d.show(from, c.Etcd.ClientURL) + ", as kubeadm does, so " + d.show(proxy, c.Proxy.Listen) +
			" must have another port; or set " + listen + " to what it listens on, if that is one address",
	}}
}
