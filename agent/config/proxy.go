// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net"
	"slices"
)

// ProxyOn returns the first of the URLs whose address the proxy already occupies; "" if there is none.
func (c Config) ProxyOn(urls []string) string {
	i := slices.IndexFunc(urls, func(url string) bool { return overlap(address(url), c.Proxy.Listen) })
	if c.Proxy.Listen == "" || i < 0 {
		return ""
	}
	return urls[i]
}

// externalRules keep the proxy off the port of an external etcd. The configuration does not show whether that etcd also
// listens on addresses other than that of its client URL; kubeadm adds the loopback address. If two listeners use one
// port, the second fails to start. If listenClientURL is set, the addresses are known.
func (d *decoder) externalRules(c *Config) []rule {
	const listen, from, proxy = "etcd.listenClientURL", "etcd.clientURL", "proxy.listen"
	_, etcdPort, _ := net.SplitHostPort(address(c.Etcd.ClientURL))
	_, port, _ := net.SplitHostPort(c.Proxy.Listen)
	return []rule{{
		[]string{proxy, from, "etcd.runner"},
		c.Etcd.Runner != RunnerExternal || d.setAt[listen] > 0 || port == "" || port != etcdPort,
		"etcd.runner is external, and that etcd may also listen on the loopback address besides " +
			d.show(from, c.Etcd.ClientURL) + ", as kubeadm does, so " + d.show(proxy, c.Proxy.Listen) +
			" must use a different port; or set " + listen + " to etcd's address, if it listens on only one",
	}}
}
