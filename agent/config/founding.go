// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Listed is a host of bootstrap.hosts.
type Listed struct{ Name, URL string }

// Listed gives the hosts that make the cluster by themselves, by name. The first one starts.
func (b Bootstrap) Listed() []Listed {
	var all []Listed
	for _, text := range b.Hosts {
		name, url, _ := strings.Cut(text, "=")
		all = append(all, Listed{name, url})
	}
	slices.SortFunc(all, func(x, y Listed) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// Digest stands for the list, of this cluster.
func (b Bootstrap) Digest(cluster string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %d\n", cluster, b.Expect)
	for _, h := range b.Listed() {
		fmt.Fprintf(sum, "%q %q\n", h.Name, h.URL)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:16])
}

func checkListed(s string) error {
	name, url, found := strings.Cut(s, "=")
	if !found {
		return errors.New("must be a name, = and a URL, as in n1=http://192.0.2.1:9379")
	}
	if err := checkName(name); err != nil {
		return fmt.Errorf("has a name that %w", err)
	}
	scheme, address, _ := strings.Cut(url, "://")
	host, port, err := net.SplitHostPort(address)
	if (scheme != "http" && scheme != "https") || err != nil || host == "" || port == "" {
		return errors.New("must end in a URL with a port and no path, as in n1=http://192.0.2.1:9379")
	}
	return checkHostPort(address)
}

func foundingRules(c *Config) []rule {
	b := c.Bootstrap
	if b.Expect == 0 && len(b.Hosts) == 0 {
		return nil
	}
	names, urls := map[string]bool{}, map[string]bool{}
	for _, h := range b.Listed() {
		names[h.Name], urls[h.URL] = true, true
	}
	const expect, hosts = "bootstrap.expect", "bootstrap.hosts"
	return []rule{
		{
			[]string{expect, hosts},
			b.Expect == len(b.Hosts) && b.Expect >= 3,
			fmt.Sprintf("bootstrap.expect (%d) must be the number of bootstrap.hosts (%d), and at least 3; name every "+
				"host there once, this one too", b.Expect, len(b.Hosts)),
		},
		{
			[]string{hosts},
			len(names) == len(b.Hosts) && len(urls) == len(b.Hosts),
			"bootstrap.hosts has a name or a URL twice; name every host once, with its own URL",
		},
		{
			[]string{hosts, "host.name"},
			names[c.Host.Name],
			fmt.Sprintf("bootstrap.hosts does not name this host, %s; add it there, on every host", c.Host.Name),
		},
	}
}
