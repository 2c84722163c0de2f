// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package setup creates the configuration of a host from a few answers. It also inspects the host: the disk for etcd's
// data, the interface with the host's address, the etcd binary and unit, and a running etcd.
//
// It creates a configuration only if the caller's check accepts it, and overwrites no file.
package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/disk/atomicfile"
)

const (
	clientPort = "2379"
	peerPort   = "2380"
)

// Answers are the operator's input for a new cluster.
type Answers struct {
	Name    string   // name of this host
	ID      string   // ID of this host; empty: from the machine ID
	Hosts   []string // NAME=ADDRESS of all hosts that may hold a member, including this one
	Cluster string
	Voters  int    // 0: three, or one if there are fewer than three hosts
	Mode    string // observe or manage
	TLS     string // directory with the files of a bundle; empty: without TLS
	OneCA   bool   // that directory has no separate CA for the peers
	DataDir string // empty: the default
	Binary  string // empty: the default
}

// Host is a host of the cluster.
type Host struct {
	Name    string
	Address string // an IP address or a DNS name
}

// Refusal is an invalid answer, with a remedy.
type Refusal struct{ Text, Remedy string }

func (r *Refusal) Error() string { return r.Text }

// FileExists is the refusal to overwrite an existing file.
type FileExists struct{ Path string }

func (t *FileExists) Error() string {
	return t.Path + " exists with different contents, and nothing is overwritten"
}

// hosts parses Hosts. Names and addresses must be unique.
func (a Answers) hosts() ([]Host, error) {
	const example = "--hosts n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3"
	var all []Host
	for _, text := range a.Hosts {
		name, address, ok := strings.Cut(strings.TrimSpace(text), "=")
		ip, err := netip.ParseAddr(strings.Trim(address, "[]"))
		switch {
		case !ok || name == "" || address == "":
			return nil, &Refusal{fmt.Sprintf("%q is not NAME=ADDRESS", text), example}
		case err == nil && (ip.IsUnspecified() || ip.Zone() != ""):
			return nil, &Refusal{
				fmt.Sprintf("%s is not an address at which other hosts can reach %s", address, name), example,
			}
		case err == nil:
			address = ip.String()
		case strings.ContainsAny(address, ":/"):
			return nil, &Refusal{fmt.Sprintf("%q has a scheme or a port", address), "give addresses alone: " + example}
		}
		for _, other := range all {
			if other.Name == name || other.Address == address {
				return nil, &Refusal{
					fmt.Sprintf("%s=%s and %s=%s have the same name or address", other.Name, other.Address, name,
						address),
					"give each host a name and an address of its own",
				}
			}
		}
		all = append(all, Host{name, address})
	}
	if len(all) == 0 {
		return nil, &Refusal{"no hosts are given", "list every host that may run a member: " + example}
	}
	return all, nil
}

// here returns this host, and all hosts.
func (a Answers) here() (here Host, all []Host, err error) {
	if all, err = a.hosts(); err != nil {
		return Host{}, nil, err
	}
	i := slices.IndexFunc(all, func(h Host) bool { return h.Name == a.Name })
	if i < 0 {
		return Host{}, nil, &Refusal{
			fmt.Sprintf("%s is not among --hosts", a.Name), "name this host with --name, and add it to --hosts",
		}
	}
	return all[i], all, nil
}

// Text returns the configuration file. It contains the answers, with comments, and omits optional keys without an
// answer. The packages ship its result for three example hosts.
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
	if _, err := netip.ParseAddr(here.Address); err != nil { // etcd listens only on addresses
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

const header = `# Configuration of quorumd, written by 'quorumctl init'. All other keys have defaults: see man quorumd.yaml.
# After a change: quorumctl config check && systemctl reload quorumd
`

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

// Write creates a configuration file, after check has validated it under a temporary name in the same directory. It
// does not rewrite a file with the same text.
func Write(path string, text []byte, check func(path string) error) error {
	before, err := CanWrite(path, text)
	if err != nil {
		return err
	}
	if before {
		return check(path)
	}
	// quorumd and users who run 'quorumctl config check' must be able to read it.
	temp, err := atomicfile.Stage(path, text, 0o644)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := check(temp); err != nil {
		return err
	}
	err = os.Link(temp, path)
	if errors.Is(err, fs.ErrExist) {
		return &FileExists{path}
	}
	return err
}

// CanWrite reports whether the file exists with exactly this text. It returns an error if the file exists with a
// different text, or if its directory does not exist.
func CanWrite(path string, text []byte) (exists bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		dir := filepath.Dir(path)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return false, &Refusal{"there is no directory " + dir + " for " + filepath.Base(path), "mkdir -p " + dir}
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	before, err := io.ReadAll(io.LimitReader(f, config.MaxFileSize+1))
	if err != nil {
		return false, err
	}
	if !bytes.Equal(before, text) {
		return false, &FileExists{path}
	}
	return true, nil
}
