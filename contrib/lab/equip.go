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

// ClusterName is the cluster that the hosts belong to.
const ClusterName = "lab"

// Etcd's ports.
const (
	clientPort = 2379
	peerPort   = 2380
)

// etcdPath is the path of a pinned etcd on a host.
const etcdPath = "/usr/local/bin/etcd"

// etcdDropIn makes the distribution's unit run a pinned etcd.
const etcdDropIn = `[Service]
ExecStart=
ExecStart=` + etcdPath + ` $DAEMON_ARGS
`

// bootDropIn shows quorumd the boot of its host. systemd-nspawn mounts the host's own boot ID over the machine's in
// /proc, and a service with one of these protections gets a /proc without that mount: each boot would look like the one
// before.
const bootDropIn = `[Service]
ProtectProc=default
ProtectControlGroups=no
ProtectKernelTunables=no
`

// ClientURL is the client URL of the host's etcd.
func (h *Host) ClientURL() string { return fmt.Sprintf("http://%s:%d", h.Address, clientPort) }

// PeerURL is the peer URL of the host's etcd.
func (h *Host) PeerURL() string { return fmt.Sprintf("http://%s:%d", h.Address, peerPort) }

// ClientURLs are the client URLs of all hosts.
func (l *Lab) ClientURLs() []string {
	var urls []string
	for _, h := range l.Hosts {
		urls = append(urls, h.ClientURL())
	}
	return urls
}

// UseEtcd makes the distribution's unit run another etcd than the distribution's, as an operator would.
func (h *Host) UseEtcd(binary string) error {
	return errors.Join(h.Copy(binary, etcdPath), h.Write("/etc/systemd/system/etcd.service.d/version.conf", etcdDropIn,
		0o644))
}

// Install installs a package of quorumd as an operator does, and allows it to reboot the machine. It starts nothing.
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

// Settings are the settings of a lab's host that differ from the defaults, by section of the configuration. Waits of a
// minute take seconds, and the limits for the disk are loose, because all hosts share one.
type Settings map[string]map[string]any

// Settings returns those of the host.
func (h *Host) Settings() Settings {
	return Settings{
		"host":    {"name": h.Name, "domain": "rack-" + h.Name},
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

// Configure replaces the configuration that the package brought.
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
