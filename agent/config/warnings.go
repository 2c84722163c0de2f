// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"slices"
)

// warnings returns remarks on values that are valid but questionable.
func warnings(c *Config) []string {
	var w []string
	if c.Cluster.Voters == 9 {
		w = append(w,
			"cluster.voters is 9: every write waits for five disks; 5 or 7 voters are faster and hardly less safe")
	}
	if !slices.Contains(c.Cluster.Endpoints, c.Etcd.ClientURL) {
		w = append(w,
			fmt.Sprintf("etcd.clientURL (%s) is not in cluster.endpoints: add it there on every host, or other hosts "+
				"will not query this one", c.Etcd.ClientURL))
	}
	unless := "quorumd was started with them" // etcd may have more variables than quorumd writes
	if c.Etcd.Runner == RunnerSystemd {
		unless = c.Etcd.Unit + " sets them (systemctl cat " + c.Etcd.Unit + ")"
	}
	for _, s := range httpsListeners(c.Etcd) {
		if c.Etcd.TLS == nil && s.lacksCertificate(c.Etcd.Environment) {
			w = append(w, s.warning(unless))
		}
	}
	for _, l := range httpsListeners(c.Etcd) {
		if c.Etcd.TLS != nil && l.serves("http") {
			w = append(w, fmt.Sprintf("etcd.tls is set, and %s (%s) is http: it accepts connections without a "+
				"certificate", l.listen, l.url))
		}
	}
	if t := c.Etcd.TLS; t != nil && t.CA != "" && t.PeerCA == t.CA {
		w = append(w, "etcd.tls.peerCA is etcd.tls.ca, so the certificate of any client is accepted at etcd's peer "+
			"port, where etcd's authentication does not apply: give the peers a CA of their own (quorumctl pki "+
			"rotate begin --peers-only)")
	}
	w = append(w, unverifiedWarnings(c)...)
	if c.Cluster.AllowUnsafeVersion {
		w = append(w,
			"cluster.allowUnsafeVersion is set: membership is managed with etcd versions that have known faults")
	}
	if c.Maintenance.AutoReboot && (c.Mode != ModeManage || c.Etcd.Runner == RunnerProcess) {
		w = append(w, "maintenance.autoReboot has no effect: it requires mode manage "+
			"and etcd.runner systemd or external")
	}
	if c.Space.Defrag == DefragWindows && c.Mode != ModeManage {
		w = append(w, "space.defrag has no effect: it requires mode manage")
	}
	if host, _, _ := net.SplitHostPort(c.Metrics.Listen); len(c.Metrics.Allow) == 0 && !isLoopback(host) {
		w = append(w, fmt.Sprintf("metrics.listen (%s) is reachable from other hosts, but metrics.allow is empty, so "+
			"connections from other hosts are closed → set metrics.allow, or use 127.0.0.1", c.Metrics.Listen))
	}
	if c.Etcd.Runner == RunnerSystemd && within(c.Etcd.EnvironmentFile, c.Paths.State) {
		w = append(w,
			fmt.Sprintf("etcd.environmentFile (%s) is in paths.state, where quorumd may write, so root does not "+
				"read it: use a path in /var/lib/quorumd-etcd, and set it and its .hold file in the drop-in of %s",
				c.Etcd.EnvironmentFile, c.Etcd.Unit))
	}
	return w
}

// unverifiedWarnings returns remarks on stores and endpoints whose identity or secrecy is not verified.
func unverifiedWarnings(c *Config) []string {
	var w []string
	if c.Cluster.Discovery.Any() && c.Cluster.TLS != nil && c.Cluster.TLS.CA == "" {
		w = append(w,
			"cluster.discovery is set, and cluster.tls.ca is empty, so every certificate of a public CA is "+
				"trusted: an attacker who forges DNS answers or changes the source of the endpoints can name "+
				"another host; set cluster.tls.ca to the CA of etcd's servers")
	}
	if c.Etcd.User != "" && c.Etcd.AllowUnencryptedPassword && c.Cluster.Discovery.Any() && c.Cluster.TLS == nil {
		w = append(w, "etcd.allowUnencryptedPassword is set: the password of "+c.Etcd.User+" is sent unencrypted to "+
			"endpoints that cluster.discovery finds")
	}
	if s := c.Backup.Store.S3; s != nil && scheme(s.Endpoint) == "http" && len(c.Backup.EncryptTo) == 0 {
		w = append(w,
			"backup.store.s3.endpoint ("+s.Endpoint+") is http, and backup.encryptTo is empty: everything in etcd "+
				"goes over the network unencrypted; use https, or set backup.encryptTo")
	}
	return w
}
