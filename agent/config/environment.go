// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
)

// Environment returns the variables with which the local etcd starts. cluster is the initial cluster: a new cluster if
// token is set, otherwise the existing cluster that the member joins. etcd ignores the initial cluster unless its data
// directory is empty.
func (c Config) Environment(cluster, token string) map[string]string {
	env := map[string]string{
		"ETCD_NAME":                        c.Host.Name,
		"ETCD_DATA_DIR":                    c.Etcd.DataDir,
		"ETCD_LISTEN_CLIENT_URLS":          c.Etcd.ListenClientURL,
		"ETCD_LISTEN_PEER_URLS":            c.Etcd.ListenPeerURL,
		"ETCD_ADVERTISE_CLIENT_URLS":       c.Etcd.ClientURL,
		"ETCD_INITIAL_ADVERTISE_PEER_URLS": c.Etcd.PeerURL,
		"ETCD_INITIAL_CLUSTER":             cluster,
		"ETCD_INITIAL_CLUSTER_STATE":       "existing",
	}
	if c.Etcd.WALDir != "" {
		env["ETCD_WAL_DIR"] = c.Etcd.WALDir
	}
	if c.Etcd.MetricsURL != "" {
		env["ETCD_LISTEN_METRICS_URLS"] = c.Etcd.MetricsURL
	}
	if token != "" {
		env["ETCD_INITIAL_CLUSTER_STATE"], env["ETCD_INITIAL_CLUSTER_TOKEN"] = "new", token
	}
	if c.Etcd.TLS != nil {
		maps.Copy(env, c.Etcd.TLS.environment())
	}
	maps.Copy(env, c.Etcd.Environment)
	return env
}

// MaxLearners returns the maximum number of learners in the cluster, as configured for etcd with ETCD_MAX_LEARNERS; 1
// if the variable is not set, 0 if its value is invalid.
func (e Etcd) MaxLearners() int {
	n, err := strconv.Atoi(cmp.Or(e.Environment["ETCD_MAX_LEARNERS"], "1"))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// environment returns the variables that make etcd use the files, and require certificates from clients and peers.
func (t EtcdTLS) environment() map[string]string {
	return map[string]string{
		"ETCD_CERT_FILE": t.Cert, "ETCD_KEY_FILE": t.Key, "ETCD_TRUSTED_CA_FILE": t.CA,
		"ETCD_CLIENT_CERT_AUTH": "true",
		"ETCD_PEER_CERT_FILE":   t.PeerCert, "ETCD_PEER_KEY_FILE": t.PeerKey, "ETCD_PEER_TRUSTED_CA_FILE": t.PeerCA,
		"ETCD_PEER_CLIENT_CERT_AUTH": "true",
	}
}

// SingleMember returns an initial cluster with this host as its only member.
func (c Config) SingleMember() string { return c.Host.Name + "=" + c.Etcd.PeerURL }

// StartGuardFile returns the path of the file that keeps etcd's unit from starting while it exists. It is in the
// directory of the environment file.
func (e Etcd) StartGuardFile() string {
	base := filepath.Base(e.EnvironmentFile)
	return filepath.Join(filepath.Dir(e.EnvironmentFile), strings.TrimSuffix(base, ".env")+".hold")
}
