// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net"
	"slices"
)

// ProxyOn returns the first port of the proxy that one of the URLs already uses: its key, its address and that URL. All
// are empty if there is no conflict.
func (c Config) ProxyOn(urls []string) (key, listen, url string) {
	for _, port := range c.Proxy.ports() {
		i := slices.IndexFunc(urls, func(url string) bool { return overlap(address(url), port.listen) })
		if i >= 0 {
			return port.key, port.listen, urls[i]
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
	for _, own := range c.Proxy.ports() {
		_, port, _ := net.SplitHostPort(own.listen)
		rules = append(rules, rule{
			[]string{own.key, from, "etcd.runner"},
			c.Etcd.Runner != RunnerExternal || d.setAt[listen] > 0 || port == "" || port != etcdPort,
			"etcd.runner is external, and etcd may listen on the loopback address as well as on " +
				d.show(from, c.Etcd.ClientURL) + ", as kubeadm configures it, so " + d.show(own.key, own.listen) +
				" must use a different port; if etcd listens on only one address, set " + listen + " to it instead",
		})
	}
	return rules
}

// proxyPort is a port of the proxy, with the key that sets it.
type proxyPort struct{ key, listen string }

func (p Proxy) ports() []proxyPort {
	return []proxyPort{{"proxy.listen", p.Listen}, {"proxy.learnerListen", p.LearnerListen}}
}
