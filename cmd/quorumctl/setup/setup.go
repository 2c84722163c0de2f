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
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
