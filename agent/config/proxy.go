// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net"
	"slices"
)

// ProxyOn returns the key of a port of the proxy, its address, and the first of the URLs that already occupies it. All
// are empty if there is none.
func (c Config) ProxyOn(urls []string) (key, listen, url string) {
	for _, port := range [][2]string{
		{"proxy.listen", c.Proxy.Listen}, {"proxy.learnerListen", c.Proxy.LearnerListen},
	} {
		i := slices.IndexFunc(urls, func(url string) bool { return overlap(address(url), port[1]) })
		if i >= 0 {
			return port[0], port[1], urls[i]
		}
	}
	return "", "", ""
}

// externalRules keep the proxy off the port of an external etcd. The configuration does not show whether that etcd also
// listens on addresses other than that of its client URL; kubeadm adds the loopback address. If two listeners use one
// port, the second fails to start. If listenClientURL is set, the addresses are known.
func (d *decoder) externalRules(c *Config) (rules []rule) {
	const listen, from = "etcd.listenClientURL", "etcd.clientURL"
	_, etcdPort, _ := net.SplitHostPort(address(c.Etcd.ClientURL))
	for _, own := range [][2]string{
		{"proxy.listen", c.Proxy.Listen}, {"proxy.learnerListen", c.Proxy.LearnerListen},
	} {
		_, port, _ := net.SplitHostPort(own[1])
		rules = append(rules, rule{
			[]string{own[0], from, "etcd.runner"},
			c.Etcd.Runner != RunnerExternal || d.setAt[listen] > 0 || port == "" || port != etcdPort,
			"etcd.runner is external, and that etcd may also listen on the loopback address besides " +
				d.show(from, c.Etcd.ClientURL) + ", as kubeadm does, so " + d.show(own[0], own[1]) +
				" must use a different port; or set " + listen + " to etcd's address, if it listens on only one",
		})
	}
	return rules
}
