// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/health/certificates"
)

// certificateFiles returns the paths of the certificate files that connections to etcd depend on. etcd's own files may
// be missing from the list, if only etcd's unit names them, and may be unreadable for this user.
func certificateFiles(conf config.Config) certificates.Files {
	env := conf.Environment("", "") // includes the variables derived from etcd.tls
	files := certificates.Files{
		Chains: []string{
			env["ETCD_CERT_FILE"], env["ETCD_CLIENT_CERT_FILE"], env["ETCD_PEER_CERT_FILE"],
			env["ETCD_PEER_CLIENT_CERT_FILE"],
		},
		Authorities: []string{env["ETCD_TRUSTED_CA_FILE"], env["ETCD_PEER_TRUSTED_CA_FILE"]},
	}
	if t := conf.Cluster.TLS; t != nil {
		files.Chains, files.Authorities = append(files.Chains, t.Cert), append(files.Authorities, t.CA)
	}
	return files
}
