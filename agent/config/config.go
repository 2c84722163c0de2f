// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads quorumd's configuration file, which is YAML.
//
// It promises:
//   - Strict. An unknown key, a duplicate key, a value of the wrong type or out of range, and values that contradict
//     each other are errors. Nothing is guessed and nothing is ignored.
//   - All at once. One call reports every problem of a file, each with its line, its key, what is wrong and what to do.
//     No Go type is ever named.
//   - Complete. A Config that Parse returns has every default filled in, except that of host.id, which HostID returns.
//     Defaults exist only here.
//   - Declared once. A key exists because a field of the structs in the files keys*.go declares it,
//     with name, type, default, bounds and documentation. The default file is generated from them.
//   - Bounded. For any input, Parse returns in bounded time and memory, and never panics.
//   - No I/O beyond the file itself and the host name. Only the methods that check files look at the files that the
//     configuration names, so that a configuration can be checked on another machine.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
)

// MaxFileSize bounds a configuration file, in bytes. The default file has about 32 KiB.
const MaxFileSize = 1 << 20

// Load reads the configuration file at path. If the file was read and has problems, the error is Errors. Otherwise it
// wraps the cause, so that errors.Is(err, fs.ErrNotExist) works.
func Load(path string) (Config, error) {
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, fmt.Errorf("cannot read the configuration: %w → create one: quorumctl init", err)
	}
	if err != nil {
		return Config{}, fmt.Errorf("cannot read the configuration: %w; check the path and its permissions", err)
	}
	return Parse(path, data)
}

// Parse reads a configuration from data. name is the file's name in errors, as in name:12. The error is always Errors,
// sorted by line. With an error, the Config is empty.
func Parse(name string, data []byte) (Config, error) {
	return parse(name, data, os.Hostname)
}

// parse is Parse with a given source of the machine's host name.
func parse(name string, data []byte, hostname func() (string, error)) (Config, error) {
	text, problem := readText(name, data)
	if problem != nil {
		return Config{}, Errors{*problem}
	}
	var c Config
	d := &decoder{text: text, setAt: map[string]int{}, bad: map[string]bool{}}
	d.section(d.root, reflect.ValueOf(&c).Elem(), "")
	d.derive(&c, hostname)
	d.checkRules(&c)
	if len(d.errs) > 0 {
		return Config{}, d.allErrors()
	}
	c.Warnings = warnings(&c)
	return c, nil
}

// derive fills in the values whose default depends on another key or on the machine.
func (d *decoder) derive(c *Config, hostname func() (string, error)) {
	if c.Host.Name == "" && !d.bad["host.name"] {
		c.Host.Name = d.shortHostname(hostname)
	}
	if c.Etcd.ListenClientURL == "" && !d.bad["etcd.listenClientURL"] {
		c.Etcd.ListenClientURL = c.Etcd.ClientURL
	}
	if c.Etcd.ListenPeerURL == "" && !d.bad["etcd.listenPeerURL"] {
		c.Etcd.ListenPeerURL = c.Etcd.PeerURL
	}
	if t := c.Etcd.TLS; t != nil {
		t.PeerCA, t.PeerCert, t.PeerKey = cmp.Or(t.PeerCA, t.CA), cmp.Or(t.PeerCert, t.Cert), cmp.Or(t.PeerKey, t.Key)
	}
	if c.Bootstrap.Listen == "" && !d.bad["bootstrap.listen"] {
		c.Bootstrap.Listen = c.Bootstrap.defaultListen(c.Host.Name)
	}
	if c.Metrics.Listen == "" && !d.bad["metrics.listen"] {
		c.Metrics.Listen = c.Metrics.defaultListen()
	}
	if c.Disk.ProbeDir == "" && !d.bad["disk.probeDir"] {
		c.Disk.ProbeDir = c.Etcd.probeDir()
	}
	if c.Timing.OrphanGrace == 0 && !d.bad["timing.orphanGrace"] {
		c.Timing.OrphanGrace = 2*c.Timing.LockTTL + orphanElection
	}
}

// shortHostname returns the machine's host name up to the first dot, or reports why it cannot be host.name.
func (d *decoder) shortHostname(hostname func() (string, error)) string {
	full, err := hostname()
	if err != nil {
		d.add("host.name", d.setAt["host"], "not set, and the machine's host name cannot be read; set host.name")
		return ""
	}
	short, _, _ := strings.Cut(full, ".")
	if err := checkName(short); err != nil {
		d.add("host.name", d.setAt["host"],
			fmt.Sprintf("not set, and the machine's host name %s cannot be used: it %s; set host.name",
				quote(full), err))
	}
	return short
}

// readFile reads a regular file, but at most MaxFileSize+1 bytes of it; the extra byte shows the caller that the file
// is too large. Other types are refused, because opening or reading a pipe can block forever.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("is a directory")}
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New("is not a regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFileSize+1))
}
