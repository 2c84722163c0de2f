// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"strings"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/record"
)

// environment gives the variables with which the local etcd starts. members is the present
// member list, this host's own entry included; with token set, a new cluster of this host alone
// is described instead. etcd reads the initial variables only when its data directory is empty.
func environment(c config.Config, members []cluster.Member, token string) map[string]string {
	env := map[string]string{
		"ETCD_NAME":                        c.Host.Name,
		"ETCD_DATA_DIR":                    c.Etcd.DataDir,
		"ETCD_LISTEN_CLIENT_URLS":          c.Etcd.ListenClientURL,
		"ETCD_LISTEN_PEER_URLS":            c.Etcd.ListenPeerURL,
		"ETCD_ADVERTISE_CLIENT_URLS":       c.Etcd.ClientURL,
		"ETCD_INITIAL_ADVERTISE_PEER_URLS": c.Etcd.PeerURL,
	}
	if c.Etcd.WALDir != "" {
		env["ETCD_WAL_DIR"] = c.Etcd.WALDir
	}
	if c.Etcd.MetricsURL != "" {
		env["ETCD_LISTEN_METRICS_URLS"] = c.Etcd.MetricsURL
	}
	if token != "" {
		env["ETCD_INITIAL_CLUSTER"] = c.Host.Name + "=" + c.Etcd.PeerURL
		env["ETCD_INITIAL_CLUSTER_STATE"] = "new"
		env["ETCD_INITIAL_CLUSTER_TOKEN"] = token
	} else {
		env["ETCD_INITIAL_CLUSTER"] = initialCluster(c, members)
		env["ETCD_INITIAL_CLUSTER_STATE"] = "existing"
	}
	maps.Copy(env, c.Etcd.Environment)
	return env
}

// initialCluster lists all members by peer URL. etcd compares the URLs and ignores the names of
// the others, but merges equal ones: each goes by its ID.
func initialCluster(c config.Config, members []cluster.Member) string {
	var parts []string
	for _, m := range members {
		for _, url := range m.PeerURLs {
			name := record.MemberID(m.ID).String()
			if url == c.Etcd.PeerURL {
				name = c.Host.Name
			}
			parts = append(parts, name+"="+url)
		}
	}
	return strings.Join(parts, ",")
}
