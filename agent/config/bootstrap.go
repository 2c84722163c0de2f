// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Networks returns the networks that may connect to the metrics listener: the loopback networks, and those in Allow.
func (m Metrics) Networks() []netip.Prefix {
	all := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, text := range m.Allow {
		if p, err := netip.ParsePrefix(text); err == nil { // checked before
			all = append(all, p.Masked())
		}
	}
	return all
}

// defaultListen returns the default address: the loopback address, or all addresses if other networks may connect.
func (m Metrics) defaultListen() string {
	if len(m.Allow) > 0 {
		return ":9379"
	}
	return "127.0.0.1:9379"
}

// BootstrapHost is a host of bootstrap.hosts.
type BootstrapHost struct{ Name, URL string }

// SortedHosts returns the hosts of bootstrap.hosts, sorted by name. If they create the cluster automatically, the first
// host creates it, and the others join.
func (b Bootstrap) SortedHosts() []BootstrapHost {
	var all []BootstrapHost
	for _, text := range b.Hosts {
		name, url, _ := strings.Cut(text, "=")
		all = append(all, BootstrapHost{name, url})
	}
	slices.SortFunc(all, func(x, y BootstrapHost) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// URL returns the bootstrap URL of a host; "" if it is not listed.
func (b Bootstrap) URL(name string) string {
	for _, h := range b.SortedHosts() {
		if h.Name == name {
			return h.URL
		}
	}
	return ""
}

// defaultListen returns the address on which a host answers the others; "" if it is not listed. Unless the URL has a
// loopback address, the host listens on all addresses: its URL may have a name, or an address that only others use.
func (b Bootstrap) defaultListen(name string) string {
	host, port, err := net.SplitHostPort(address(b.URL(name)))
	if err != nil {
		return ""
	}
	if !isLoopback(host) {
		host = ""
	}
	return net.JoinHostPort(host, port)
}

// Digest returns a hash of the cluster's name, bootstrap.expect and the list of hosts.
func (b Bootstrap) Digest(cluster string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %d\n", cluster, b.Expect)
	for _, h := range b.SortedHosts() {
		fmt.Fprintf(sum, "%q %q\n", h.Name, h.URL)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:16])
}

func checkBootstrapHost(s string) error {
	name, url, found := strings.Cut(s, "=")
	if !found {
		return errors.New("must be a name, = and a URL, such as n1=http://192.0.2.1:9381")
	}
	if err := checkName(name); err != nil {
		return fmt.Errorf("must begin with a name, which %w", err)
	}
	scheme, address, _ := strings.Cut(url, "://")
	host, port, err := net.SplitHostPort(address)
	if (scheme != "http" && scheme != "https") || err != nil || host == "" || port == "" {
		return errors.New("must end in a URL with a port and no path, such as n1=http://192.0.2.1:9381")
	}
	return checkHostPort(address)
}

func bootstrapRules(c *Config) []rule {
	b := c.Bootstrap
	if b.Expect == 0 && len(b.Hosts) == 0 { // quorumctl bootstrap then asks no other host
		return nil
	}
	names, urls := map[string]bool{}, map[string]bool{}
	for _, h := range b.SortedHosts() {
		names[h.Name], urls[h.URL] = true, true
	}
	const expect, hosts = "bootstrap.expect", "bootstrap.hosts"
	return []rule{
		{
			[]string{expect, hosts},
			b.Expect == len(b.Hosts) && b.Expect >= 3 || b.Expect == 0 && len(b.Hosts) >= 2,
			fmt.Sprintf("bootstrap.expect (%d) must equal the number of bootstrap.hosts (%d) and be at least 3, "+
				"or be 0 with at least 2 hosts; list every host once in bootstrap.hosts, including this one",
				b.Expect, len(b.Hosts)),
		},
		{
			[]string{hosts},
			len(names) == len(b.Hosts) && len(urls) == len(b.Hosts),
			"bootstrap.hosts lists a name or a URL twice; list every host once, with its own URL",
		},
		{
			[]string{hosts, "host.name"},
			names[c.Host.Name],
			fmt.Sprintf("bootstrap.hosts does not name this host, %s; add it there, on every host", c.Host.Name),
		},
		{
			[]string{hosts, "host.role"},
			c.Host.Role != RoleLearner,
			"bootstrap.hosts names this host, which has host.role: learner; list only hosts that may vote",
		},
		{
			[]string{hosts, "metrics.webConfig"},
			scheme(b.URL(c.Host.Name)) != "https" || c.Metrics.WebConfig != "",
			"bootstrap.hosts has an https URL for this host, but there is no certificate for it → set " +
				"metrics.webConfig",
		},
	}
}
