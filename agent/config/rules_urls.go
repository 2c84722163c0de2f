// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// urlRules require that URLs agree on their scheme, that TLS files come with https, and that no two listeners share an
// address. They also check etcd's user and the sources of discovery.
func (d *decoder) urlRules(c *Config) []rule {
	e := &c.Etcd
	rules := []rule{
		d.listenNameRule("etcd.listenClientURL", "etcd.clientURL", e.ListenClientURL),
		d.listenNameRule("etcd.listenPeerURL", "etcd.peerURL", e.ListenPeerURL),
	}
	rules = append(rules, d.addressRules(c)...)
	rules = append(rules, d.etcdTLSRules(e)...)
	login := []string{"etcd.user", "etcd.passwordFile"}
	rules = append(rules,
		rule{
			login, e.User == "" || e.PasswordFile != "",
			"etcd.user (" + e.User + ") is set without etcd.passwordFile; set both or neither",
		},
		rule{
			login, e.User != "" || e.PasswordFile == "",
			"etcd.passwordFile (" + e.PasswordFile + ") is set without etcd.user; set both or neither",
		})
	rules = append(rules, d.discoveryRules(&c.Cluster.Discovery)...)
	if len(c.Cluster.Endpoints) == 0 {
		return rules
	}
	rules = append(rules, d.schemeRules(c)...)
	rules = append(rules, rule{
		[]string{"etcd.user", "cluster.discovery", "cluster.endpoints"},
		c.Etcd.User == "" || c.Etcd.AllowUnencryptedPassword || !c.Cluster.Discovery.Any() ||
			scheme(c.Cluster.Endpoints[0]) == "https",
		"etcd.user (" + c.Etcd.User + ") has a password, and cluster.discovery finds http endpoints, which would " +
			"receive it unencrypted; use https, remove cluster.discovery, or set etcd.allowUnencryptedPassword: true",
	})
	if c.Cluster.TLS == nil {
		return rules
	}
	return append(rules, d.tlsPairRules(c.Cluster.TLS)...)
}

func (d *decoder) discoveryRules(k *Discovery) []rule {
	sources := []string{"cluster.discovery.srv", "cluster.discovery.file", "cluster.discovery.program"}
	given := 0
	for _, value := range []string{k.SRV, k.File, k.Program} {
		if value != "" {
			given++
		}
	}
	return []rule{
		{sources, given <= 1, "cluster.discovery has more than one source; keep only one of srv, file and program"},
		{
			[]string{"cluster.discovery.timeout", "cluster.discovery.interval"},
			k.Timeout <= k.Interval,
			d.show("cluster.discovery.timeout", k.Timeout) + " must be at most " +
				d.show("cluster.discovery.interval", k.Interval) +
				", because a lookup is not started again before it has ended; lower timeout or raise interval",
		},
	}
}

// schemeRules require one scheme for etcd.clientURL and all endpoints, and that cluster.tls matches it. The caller has
// checked that there is an endpoint.
func (d *decoder) schemeRules(c *Config) []rule {
	const list, section = "cluster.endpoints", "cluster.tls"
	first, https := c.Cluster.Endpoints[0], scheme(c.Cluster.Endpoints[0]) == "https"
	same := func(path, value string) rule {
		return rule{
			[]string{path, list},
			scheme(value) == scheme(first),
			fmt.Sprintf("%s (%s) and %s[0] (%s) must both be http or both https; use the same scheme for all", path,
				value, list, first),
		}
	}
	rules := []rule{
		same("etcd.clientURL", c.Etcd.ClientURL),
		{
			[]string{section, list},
			c.Cluster.TLS != nil || !https,
			section + " is missing, but " + list + " are https (" + first +
				"); add the section with ca, cert and key, or \"tls: {}\" for the system's CAs and no client " +
				"certificate",
		},
		{
			[]string{section, list},
			c.Cluster.TLS == nil || https,
			section + " is given, but " + list + " are http (" + first + "); remove the section, or write https",
		},
	}
	for i, endpoint := range c.Cluster.Endpoints[1:] {
		rules = append(rules, same(fmt.Sprintf("%s[%d]", list, i+1), endpoint))
	}
	return rules
}

func (d *decoder) tlsPairRules(t *TLS) []rule {
	pair := []string{"cluster.tls.cert", "cluster.tls.key"}
	return []rule{
		{pair, t.Cert != "" || t.Key == "", "cluster.tls.key (" + t.Key +
			") is set without cluster.tls.cert; set both or neither"},
		{pair, t.Key != "" || t.Cert == "", "cluster.tls.cert (" + t.Cert +
			") is set without cluster.tls.key; set both or neither"},
	}
}

// httpsListener describes an etcd listener and the variables with which it serves https.
type httpsListener struct {
	listen, url string // the key of the listen URL, and that URL
	files       [2]string
	auto        string // the variable that makes etcd generate a self-signed certificate
}

// serves reports whether the listener serves a scheme. A client listener may serve both.
func (l httpsListener) serves(name string) bool {
	first, second, _ := strings.Cut(l.url, ",")
	return scheme(first) == name || scheme(second) == name
}

// lacksCertificate reports whether the variables leave etcd without a certificate for an https URL. etcd would refuse
// to start.
func (l httpsListener) lacksCertificate(variables map[string]string) bool {
	given := variables[l.files[0]] != "" && variables[l.files[1]] != ""
	return l.serves("https") && !given && variables[l.auto] != "true"
}

// warning returns the message about a missing certificate. unless names the other place that may set the variables.
func (l httpsListener) warning(unless string) string {
	return fmt.Sprintf("%s (%s) is https, and etcd does not start without %s and %s: add the section etcd.tls, or set "+
		"them in etcd.environment, unless %s",
		l.listen, l.url, l.files[0], l.files[1], unless)
}

func httpsListeners(e Etcd) []httpsListener {
	return []httpsListener{
		{"etcd.listenClientURL", e.ListenClientURL, [2]string{"ETCD_CERT_FILE", "ETCD_KEY_FILE"}, "ETCD_AUTO_TLS"},
		{
			"etcd.listenPeerURL", e.ListenPeerURL,
			[2]string{"ETCD_PEER_CERT_FILE", "ETCD_PEER_KEY_FILE"},
			"ETCD_PEER_AUTO_TLS",
		},
	}
}

// etcdTLSRules require that the section is complete, and that etcd.environment does not set the same variables. A
// listener may be http, because every member needs certificates before any peer URL becomes https.
func (d *decoder) etcdTLSRules(e *Etcd) []rule {
	if e.TLS == nil {
		return nil
	}
	const section = "etcd.tls"
	rules := []rule{{
		[]string{section},
		e.TLS.CA != "" && e.TLS.Cert != "" && e.TLS.Key != "",
		section + " needs ca, cert and key; set all three",
	}, {
		[]string{section + ".peerCert", section + ".peerKey"},
		(e.TLS.PeerCert == e.TLS.Cert) == (e.TLS.PeerKey == e.TLS.Key),
		section + ".peerCert (" + e.TLS.PeerCert + ") and " + section + ".peerKey (" + e.TLS.PeerKey +
			") go together; set both or neither",
	}}
	for _, name := range slices.Sorted(maps.Keys(e.TLS.environment())) {
		rules = append(rules, rule{
			[]string{section, "etcd.environment"},
			e.Environment[name] == "",
			"etcd.environment has " + name + ", which etcd.tls sets, too; remove the variable, or the section etcd.tls",
		})
	}
	return rules
}

// listenNameRule requires an IP address if the listen URL is derived from an advertised URL, which may have a name.
func (d *decoder) listenNameRule(listen, advertised, value string) rule {
	_, err := parseListenURLs(value)
	return rule{
		[]string{listen, advertised},
		value == "" || err == nil,
		fmt.Sprintf("%s is not set, so it defaults to %s, but %s, in %s", listen, advertised, listenNeedsIP(value),
			listen),
	}
}

// addressRules require that every listener has its own address and port.
func (d *decoder) addressRules(c *Config) []rule {
	listeners := []struct{ path, from, value string }{
		{"etcd.listenClientURL", "etcd.clientURL", c.Etcd.ListenClientURL},
		{"etcd.listenPeerURL", "etcd.peerURL", c.Etcd.ListenPeerURL},
		{"etcd.metricsURL", "etcd.metricsURL", c.Etcd.MetricsURL},
		{"metrics.listen", "metrics.allow", c.Metrics.Listen},
		{"bootstrap.listen", "bootstrap.hosts", c.Bootstrap.Listen},
		{"fleetlock.listen", "fleetlock.listen", c.FleetLock.Listen},
		{"proxy.listen", "proxy.listen", c.Proxy.Listen},
		{"proxy.learnerListen", "proxy.learnerListen", c.Proxy.LearnerListen},
	}
	var rules []rule
	for i, a := range listeners {
		for _, b := range listeners[i+1:] {
			rules = append(rules, rule{
				[]string{a.path, b.path, a.from, b.from},
				!overlap(address(a.value), address(b.value)),
				d.show(a.path, a.value) + " and " + d.show(b.path, b.value) +
					" listen on the same address and port; give one of them a different port",
			})
		}
	}
	rules = append(rules, rule{
		[]string{"proxy.learnerListen", "host.role"},
		c.Proxy.LearnerListen == "" || c.Host.Role == RoleLearner,
		d.show("proxy.learnerListen", c.Proxy.LearnerListen) + " is the port of a permanent learner, but " +
			"host.role is " + string(c.Host.Role) + "; remove the port, or set host.role: learner",
	})
	return append(rules, d.externalRules(c)...)
}

// overlap reports whether two listeners use the same address: equal ports, and equal or unspecified hosts.
func overlap(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	return portA != "" && portA == portB && (plain(hostA) == plain(hostB) || isAll(hostA) || isAll(hostB))
}

// plain replaces localhost with its address.
func plain(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

func isAll(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// address returns the host and port of a URL or an address, or of the first of two URLs.
func address(s string) string {
	s, _, _ = strings.Cut(s, ",")
	if _, after, ok := strings.Cut(s, "://"); ok {
		return after
	}
	return s
}

func scheme(s string) string {
	before, _, _ := strings.Cut(s, "://")
	return before
}
