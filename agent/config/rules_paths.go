// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// pathRules require that etcd's directories hold nothing else: they belong to etcd alone, and their contents are moved
// aside.
func (d *decoder) pathRules(c *Config) []rule {
	type place struct{ key, path string }
	const data, wal = "etcd.dataDir", "etcd.walDir"
	owned := []place{
		{"etcd.binary", c.Etcd.Binary},
		{"etcd.nextBinary", c.Etcd.NextBinary},
		{"etcd.environmentFile", c.Etcd.EnvironmentFile},
		{"etcd.logFile", c.Etcd.LogFile},
		{"etcd.passwordFile", c.Etcd.PasswordFile},
		{"disk.probeDir", c.Disk.ProbeDir},
		{"control.socket", c.Control.Socket},
		{"metrics.webConfig", c.Metrics.WebConfig},
		{"maintenance.hooks", c.Maintenance.Hooks},
		{"maintenance.veto", c.Maintenance.Veto},
		{"checks.dir", c.Checks.Dir},
		{"cluster.discovery.file", c.Cluster.Discovery.File},
		{"cluster.discovery.program", c.Cluster.Discovery.Program},
		{"paths.state", c.Paths.State},
		{"paths.runtime", c.Paths.Runtime},
	}
	if tls := c.Cluster.TLS; tls != nil {
		owned = append(owned, place{"cluster.tls.ca", tls.CA}, place{"cluster.tls.cert", tls.Cert},
			place{"cluster.tls.key", tls.Key})
	}
	if tls := c.Etcd.TLS; tls != nil {
		all := []place{
			{"etcd.tls.ca", tls.CA},
			{"etcd.tls.cert", tls.Cert},
			{"etcd.tls.key", tls.Key},
			{"etcd.tls.peerCA", tls.PeerCA},
			{"etcd.tls.peerCert", tls.PeerCert},
			{"etcd.tls.peerKey", tls.PeerKey},
		}
		for i, p := range all {
			if i < 3 || p.path != all[i-3].path { // skip a peer file that defaults to the client file
				owned = append(owned, p)
			}
		}
	}
	var rules []rule
	for _, p := range owned {
		for _, dir := range []place{{data, c.Etcd.DataDir}, {wal, c.Etcd.WALDir}} {
			rules = append(rules, rule{
				[]string{p.key, dir.key},
				!within(p.path, dir.path),
				d.show(p.key, p.path) + " is inside " + d.show(dir.key, dir.path) +
					", which belongs to etcd alone; choose another path",
			})
		}
	}
	return append(rules, rule{
		[]string{wal, data},
		!within(c.Etcd.DataDir, c.Etcd.WALDir),
		d.show(data, c.Etcd.DataDir) + " is inside " + d.show(wal, c.Etcd.WALDir) +
			"; choose another directory for the WAL, or remove walDir",
	})
}

// within reports whether path is dir or below it. Both are clean; an empty path is never inside.
func within(path, dir string) bool {
	if path == "" || dir == "" {
		return false
	}
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
