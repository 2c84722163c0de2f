// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// Text returns the configuration file. It contains the answers, with comments, and omits optional keys without an
// answer. The packages ship the result for three example hosts.
func (a Answers) Text() ([]byte, error) {
	here, all, err := a.here()
	if err != nil {
		return nil, err
	}
	scheme := "http"
	if a.TLS != "" {
		scheme = "https"
	}
	url := func(address, port string) string { return scheme + "://" + net.JoinHostPort(address, port) }
	f := file{Mode: a.Mode, Host: map[string]string{"name": here.Name}}
	if a.ID != "" {
		f.Host["id"] = a.ID
	}
	f.Cluster.Name, f.Cluster.Voters = a.Cluster, a.Voters
	f.Repair = map[string]string{"dead": deadAfter}
	if f.Cluster.Voters == 0 {
		if f.Cluster.Voters = 3; len(all) < 3 {
			f.Cluster.Voters = 1
		}
	}
	for _, h := range all {
		f.Cluster.Endpoints = append(f.Cluster.Endpoints, url(h.Address, clientPort))
	}
	f.Etcd.Binary, f.Etcd.DataDir = a.Binary, a.DataDir
	f.Etcd.ClientURL, f.Etcd.PeerURL = url(here.Address, clientPort), url(here.Address, peerPort)
	if _, err := netip.ParseAddr(here.Address); err != nil { // etcd listens only on IP addresses
		f.Etcd.ListenClientURL, f.Etcd.ListenPeerURL = url("0.0.0.0", clientPort), url("0.0.0.0", peerPort)
	}
	if a.TLS != "" {
		in := func(name string) string { return filepath.Join(a.TLS, name) }
		f.Cluster.TLS = files{"ca": in("ca.crt"), "cert": in("client.crt"), "key": in("client.key")}
		f.Etcd.TLS = files{
			"ca": in("ca.crt"), "cert": in("server.crt"), "key": in("server.key"), "peerCA": in("peer-ca.crt"),
			"peerCert": in("peer.crt"), "peerKey": in("peer.key"),
		}
		if a.OneCA {
			delete(f.Etcd.TLS, "peerCA")
		}
	}
	return f.text()
}

type files map[string]string

// file is a configuration, with its keys in the order of the reference.
type file struct {
	Mode    string            `yaml:"mode"`
	Host    map[string]string `yaml:"host"`
	Cluster struct {
		Name      string   `yaml:"name"`
		Voters    int      `yaml:"voters"`
		Endpoints []string `yaml:"endpoints"`
		TLS       files    `yaml:"tls,omitempty"`
	} `yaml:"cluster"`
	Etcd struct {
		Binary          string `yaml:"binary,omitempty"`
		DataDir         string `yaml:"dataDir,omitempty"`
		ClientURL       string `yaml:"clientURL"`
		PeerURL         string `yaml:"peerURL"`
		ListenClientURL string `yaml:"listenClientURL,omitempty"`
		ListenPeerURL   string `yaml:"listenPeerURL,omitempty"`
		TLS             files  `yaml:"tls,omitempty"`
	} `yaml:"etcd"`
	Repair map[string]string `yaml:"repair"`
}

// deadAfter is the value of repair.dead in a new configuration: longer than a machine takes to boot. Without the key,
// no voter is replaced.
const deadAfter = "10m"

const header = "# Configuration of quorumd, written by 'quorumctl init'. All other keys have defaults: see man " +
	"quorumd.yaml.\n# After a change: quorumctl config check && systemctl reload quorumd\n"

// footer contains commented-out sections that most clusters need on every host.
const footer = `
# Take a snapshot every 6 hours. The directory must exist and be writable: see man quorumd.yaml, backup.
#backup:
#  every: 6h
#  store:
#    directory: /mnt/backup

# Let Prometheus connect from this network. Default: this host only.
#metrics:
#  allow: [10.0.0.0/24]
`

// comments returns the comments above keys, by the path of the key.
func comments() map[string]string {
	return map[string]string{
		"mode":              "observe: measure, and report what quorumd would do. manage: also do it.",
		"host.name":         "Name of this host and of its etcd member. Unique in the cluster.",
		"host.id":           "Identity of this host in the cluster's records. It must never change.",
		"cluster.name":      "Name of the cluster, the same on every host.",
		"cluster.voters":    "1, 3, 5, 7 or 9. Three voters survive one failure; five survive two.",
		"cluster.endpoints": "Client URLs of all hosts that may hold a member, including this one.",
		"cluster.tls":       "Files with which quorumd connects to etcd.",
		"etcd.clientURL":    "URL at which clients reach the member of this host.",
		"etcd.peerURL":      "URL at which the other members reach the member of this host.",
		"etcd.tls":          "Files with which etcd serves clients and peers.",
		"repair.dead":       "Replace a voter that has been dead for this long. off: report it, and replace nothing.",
	}
}

// text writes the file, with a blank line between its sections.
func (f file) text() ([]byte, error) {
	var all yaml.Node
	if err := all.Encode(f); err != nil {
		return nil, err
	}
	explain(&all, "")
	var out bytes.Buffer
	out.WriteString(header)
	for i := 0; i < len(all.Content); i += 2 {
		out.WriteByte('\n')
		w := yaml.NewEncoder(&out)
		w.SetIndent(2)
		section := &yaml.Node{Kind: yaml.MappingNode, Content: all.Content[i : i+2]}
		if err := errors.Join(w.Encode(section), w.Close()); err != nil {
			return nil, err
		}
	}
	out.WriteString(footer)
	return out.Bytes(), nil
}

// explain adds the comments above the keys of a section.
func explain(section *yaml.Node, path string) {
	for i := 0; i+1 < len(section.Content) && section.Kind == yaml.MappingNode; i += 2 {
		key, value := section.Content[i], section.Content[i+1]
		key.HeadComment = comments()[path+key.Value]
		explain(value, path+key.Value+".")
	}
}
