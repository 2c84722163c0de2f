// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// ClusterName is the cluster to which the hosts belong.
const ClusterName = "lab"

// Etcd's ports.
const (
	clientPort = 2379
	peerPort   = 2380
)

// etcdPath is the path of a pinned etcd version on a host.
const etcdPath = "/usr/local/bin/etcd"

// etcdDropIn makes the distribution's unit run a pinned etcd version.
const etcdDropIn = `[Service]
ExecStart=
ExecStart=` + etcdPath + ` $DAEMON_ARGS
`

// bootDropIn lets quorumd read the boot ID of its host. systemd-nspawn mounts the host's own boot ID over the machine's
// in /proc. A service with one of these protections would get a /proc without that mount, so that every boot would look
// like the previous one.
const bootDropIn = `[Service]
ProtectProc=default
ProtectControlGroups=no
ProtectKernelTunables=no
`

// ClientURL returns the client URL of the host's etcd.
func (h *Host) ClientURL() string { return fmt.Sprintf("http://%s:%d", h.Address, clientPort) }

// PeerURL returns the peer URL of the host's etcd.
func (h *Host) PeerURL() string { return fmt.Sprintf("http://%s:%d", h.Address, peerPort) }

// ClientURLs returns the client URLs of all hosts.
func (l *Lab) ClientURLs() []string {
	var urls []string
	for _, h := range l.Hosts {
		urls = append(urls, h.ClientURL())
	}
	return urls
}

// UseEtcd makes the distribution's unit run a different etcd binary, as an operator would configure it.
func (h *Host) UseEtcd(binary string) error {
	return errors.Join(h.Copy(binary, etcdPath), h.Write("/etc/systemd/system/etcd.service.d/version.conf", etcdDropIn,
		0o644))
}

// Install installs a quorumd package as an operator does, and allows quorumd to reboot the host. It starts nothing.
func (h *Host) Install(ctx context.Context, deb string) error {
	path := "/var/cache/apt/archives/" + filepath.Base(deb)
	if err := h.Write("/etc/systemd/system/quorumd.service.d/boot.conf", bootDropIn, 0o644); err != nil {
		return err
	}
	if err := h.Copy(deb, path); err != nil {
		return err
	}
	if _, err := h.Run(ctx, "env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "--install", path); err != nil {
		return err
	}
	_, err := h.Run(ctx, "cp", "/usr/share/quorumd/polkit/51-quorumd-reboot.rules", "/etc/polkit-1/rules.d/")
	return err
}

// Settings are a host's differences from the default configuration, by section. Waits of a minute become seconds, and
// the limits for the disk are loose, because all hosts share one disk.
type Settings map[string]map[string]any

// Settings returns the settings of the host.
func (h *Host) Settings() Settings {
	return Settings{
		"host":    {"name": h.Name, "domain": "rack-" + h.Name, "allowSharedHardware": true},
		"cluster": {"name": ClusterName, "voters": 3, "standbys": 1, "endpoints": h.lab.ClientURLs()},
		"etcd":    {"binary": etcdPath, "clientURL": h.ClientURL(), "peerURL": h.PeerURL()},
		"disk": {
			"directInterval": "200ms", "qualifySamples": 60, "window": 30, "fsyncClear": "1s", "fsyncWarm": "2s",
			"fsyncSlow": "5s",
			"stall":     "20s", "minFree": "64MiB", "starved": 100,
		},
		"metrics": {"allow": []string{"0.0.0.0/0"}},
		"timing": {
			"interval": "500ms", "callTimeout": "2s", "lockTTL": "10s", "orphanGrace": "20s", "renewEvery": "1s",
			"renewGiveUp": "5s", "stepMargin": "1s",
			"hostRecordTTL": "10s", "settle": "5500ms", "cooldown": "1s", "promoteStable": "2s", "steadyLag": "1s",
			"learnerStall": "30s", "learnerMax": "2m", "joinBackoff": "5s", "returnStable": "4s",
		},
	}
}

// Configure replaces the host's configuration.
func (h *Host) Configure(mode string, s Settings) error {
	all := map[string]any{"mode": mode}
	for section, keys := range s {
		all[section] = keys
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return err
	}
	return h.Write("/etc/quorumd/quorumd.yaml", string(text), 0o644)
}
