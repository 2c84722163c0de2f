// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"time"
)

// TLS names the files with which quorumd connects to etcd. They are read again when they change.
type TLS struct {
	// CAs that signed etcd's server certificates, PEM. Empty: the system's CAs.
	CA string `yaml:"ca" default:"" example:"/etc/quorumd/tls/ca.crt" is:"path"`

	// Client certificate of quorumd, PEM. Requires key.
	Cert string `yaml:"cert" default:"" example:"/etc/quorumd/tls/client.crt" is:"path"`

	// Private key of the client certificate, PEM, not encrypted. Requires cert. Only quorumd's user may read it:
	// chown quorumd: FILE && chmod 0400 FILE. With "quorumctl pki install" root owns it, and the group quorumd can
	// read it.
	Key string `yaml:"key" default:"" example:"/etc/quorumd/tls/client.key" is:"path"`
}

// Etcd describes the etcd member of this host.
type Etcd struct {
	// The program that runs etcd. systemd: a systemd unit. process: quorumd itself, as a child process (containers,
	// development, demo). external: another program, such as a kubelet. With external, quorumd observes etcd through
	// its ports, and only coordinates operations. It starts and stops etcd only if the programs start and stop exist in
	// etcd.d, in the directory of maintenance.hooks.
	Runner Runner `yaml:"runner" default:"systemd" oneOf:"systemd process external"`

	// The systemd unit that runs etcd.
	Unit string `yaml:"unit" default:"etcd.service" is:"unit"`

	// The etcd binary. The process runner starts it; every runner asks it for its version before a join.
	Binary string `yaml:"binary" default:"/usr/bin/etcd" is:"path"`

	// Path of the etcd binary of the next version, such as /opt/etcd-3.7/etcd. quorumd runs it only to print its
	// version and to find settings of the running etcd that the next version does not support. If that version is
	// 3.7, quorumd also reads etcd's log for entries of etcd 3.5, which 3.7 cannot read. quorumctl upgrade is
	// refused if there are any. quorumd does not install it. quorumd's user must be able to execute it, and only
	// root or that user may be able to write it or a directory above it. Remove this key after the upgrade.
	NextBinary string `yaml:"nextBinary" default:"" is:"path"`

	// Data directory of etcd. quorumd never deletes it. When a member must start with empty data, quorumd moves the
	// directory "member" in it aside. No other path in this file, except walDir, may be inside it.
	DataDir string `yaml:"dataDir" default:"/var/lib/etcd/default" is:"path"`

	// WAL directory of etcd. Empty: inside the data directory. If it is on a disk of its own, quorumd measures writes
	// on that disk, and also checks free space, file system and devices of the database's disk.
	WALDir string `yaml:"walDir" default:"" is:"path"`

	// File with the member's ETCD_* variables, which the etcd unit reads (EnvironmentFile=). The root helper writes
	// it from this configuration, in a directory where only root may write. The same directory holds etcd.hold,
	// which keeps the unit from starting.
	EnvironmentFile string `yaml:"environmentFile" default:"/var/lib/quorumd-etcd/etcd.env" is:"path"`

	// etcd user that quorumd authenticates as, if etcd has authentication on. Empty: the common name of the client
	// certificate, if there is one. quorumd(8) lists the permissions that it needs.
	User string `yaml:"user" default:"" is:"name"`

	// File that contains only the password of user. Only the user that runs quorumd may read it (mode 0400 or 0600).
	// quorumd reads it again when it changes.
	PasswordFile string `yaml:"passwordFile" default:"" is:"path"`

	// Send the password of user unencrypted to discovered http endpoints. A forged DNS answer, or a change to the file
	// of cluster.discovery, then reveals the password.
	AllowUnencryptedPassword bool `yaml:"allowUnencryptedPassword" default:"false"`

	// URL at which clients reach the member of this host. Add it to cluster.endpoints, too.
	ClientURL string `yaml:"clientURL" required:"true" example:"http://192.0.2.1:2379" is:"url"`

	// URL at which the other members reach the member of this host.
	PeerURL string `yaml:"peerURL" required:"true" example:"http://192.0.2.1:2380" is:"url"`

	// URL etcd listens on for clients. Its host is an IP address or localhost; etcd refuses other names. To serve http
	// and https on one port, name both URLs, separated by a comma.
	ListenClientURL string `yaml:"listenClientURL" derived:"same as clientURL" example:"http://192.0.2.1:2379" is:"listenURLs"`

	// URL etcd listens on for its peers. Its host is an IP address or localhost; etcd refuses other names.
	ListenPeerURL string `yaml:"listenPeerURL" derived:"same as peerURL" example:"http://192.0.2.1:2380" is:"listenURL"`

	// Additional URL on which etcd serves its metrics. Empty: only on the client URL.
	MetricsURL string `yaml:"metricsURL" default:"" is:"listenURL"`

	// Files with which etcd serves https to clients and peers. To set them, uncomment these lines. Every client then
	// needs a certificate from the CA in ca. quorumd configures etcd with them when it joins or bootstraps; etcd's user
	// must be able to read them. 'quorumctl pki' creates them. Without this section use environment, or etcd's own
	// unit.
	TLS *EtcdTLS `yaml:"tls"`

	// Further ETCD_* variables for etcd, such as ETCD_QUOTA_BACKEND_BYTES. With an https clientURL etcd needs
	// ETCD_CERT_FILE and ETCD_KEY_FILE, with an https peerURL ETCD_PEER_CERT_FILE and ETCD_PEER_KEY_FILE: from tls,
	// from here, or from its own unit. Variables that quorumd sets itself (name, URLs, directories, initial cluster)
	// are refused.
	Environment map[string]string `yaml:"environment" default:"{}"`

	// Log file of etcd. Only the process runner writes it; with systemd the journal has the log.
	LogFile string `yaml:"logFile" default:"/var/log/quorumd/etcd.log" is:"path"`

	// How long etcd may take to stop before it is killed.
	StopTimeout time.Duration `yaml:"stopTimeout" default:"30s"`
}

// EtcdTLS names the files with which the etcd of this host serves https. etcd reads them again when they
// change, except the CAs.
type EtcdTLS struct {
	// CAs of the client certificates that etcd accepts, including quorumd's, PEM.
	CA string `yaml:"ca" default:"" example:"/etc/quorumd/tls/ca.crt" is:"path"`

	// Server certificate for clients, PEM. It must be valid for the host of clientURL.
	Cert string `yaml:"cert" default:"" example:"/etc/quorumd/tls/server.crt" is:"path"`

	// Private key of cert, PEM, not encrypted.
	Key string `yaml:"key" default:"" example:"/etc/quorumd/tls/server.key" is:"path"`

	// CAs of the other members, PEM. Every certificate from these CAs is accepted at etcd's peer port, where etcd's
	// authentication does not apply. If this is also the CA of the clients, every client can connect to that port.
	PeerCA string `yaml:"peerCA" derived:"same as ca" example:"/etc/quorumd/tls/peer-ca.crt" is:"path"`

	// Certificate for the other members, as server and as client, PEM. It must be valid for the host of peerURL.
	PeerCert string `yaml:"peerCert" derived:"same as cert" example:"/etc/quorumd/tls/peer.crt" is:"path"`

	// Private key of peerCert, PEM, not encrypted.
	PeerKey string `yaml:"peerKey" derived:"same as key" example:"/etc/quorumd/tls/peer.key" is:"path"`
}

// Runner selects the program that runs etcd.
type Runner string

// The runners.
const (
	RunnerSystemd  Runner = "systemd"  // a systemd unit, over D-Bus
	RunnerProcess  Runner = "process"  // a child process of quorumd
	RunnerExternal Runner = "external" // another program, such as a kubelet
)

// probeDir returns the default of disk.probeDir. It is next to the directory that holds the WAL, because the file
// system of that directory must be measured. It is not inside that directory, because etcd's directories belong to
// etcd alone.
func (e Etcd) probeDir() string {
	holdsWAL := e.DataDir
	if e.WALDir != "" && !within(e.WALDir, e.DataDir) {
		holdsWAL = e.WALDir
	}
	return filepath.Join(filepath.Dir(holdsWAL), ".quorumd-probe")
}
