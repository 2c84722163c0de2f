// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/execshim"
	"github.com/quorumd/quorumd/agent/policy"
)

// Found describes this host. Unknown values are empty. Warnings are for the operator to check.
type Found struct {
	Address   string `json:"address"`
	Interface string `json:"interface,omitempty"` // network interface with that address
	DataDir   string `json:"dataDir"`
	Disk      string `json:"disk,omitempty"` // file system of the data directory and its device
	FreeBytes uint64 `json:"freeBytes,omitempty"`
	Binary    string `json:"binary,omitempty"`
	Version   string `json:"version,omitempty"`
	Unit      string `json:"unit"`
	UnitState string `json:"unitState,omitempty"` // enabled, disabled, …; empty if systemd cannot load the unit
	// Running are the settings of a running etcd, by flag name.
	Running  map[string]string `json:"running,omitempty"`
	Warnings []string          `json:"warnings"`
}

const (
	askTimeout = 5 * time.Second
	maxText    = 256 << 10 // bytes read from a program or the kernel
	lowSpace   = 8 << 30   // bytes
)

// Find inspects this host.
func Find(ctx context.Context, a Answers) (Found, error) {
	here, _, err := a.here()
	if err != nil {
		return Found{}, err
	}
	f := Found{Address: here.Address, DataDir: a.DataDir, Unit: "etcd.service", Warnings: []string{}}
	if f.DataDir == "" {
		f.DataDir = "/var/lib/etcd/default"
	}
	f.findInterface(here)
	f.findDisk()
	unit := show(ctx, f.Unit)
	if unit["LoadState"] == "loaded" {
		f.UnitState = unit["UnitFileState"]
	} else {
		f.warn("systemd cannot load %s: install the package quorumd-etcd (make etcd-package), or write or unmask the "+
			"unit", f.Unit)
	}
	f.findBinary(ctx, a.Binary, unit["ExecStart"])
	if unit["ActiveState"] == "active" {
		f.findRunning(unit["MainPID"])
	}
	return f, nil
}

func (f *Found) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// findInterface finds the interface with the address at which the other hosts reach this one.
func (f *Found) findInterface(here Host) {
	want, err := netip.ParseAddr(here.Address)
	if err != nil {
		return // a DNS name, which every host resolves by itself
	}
	all, _ := net.Interfaces() // on an error, the list is empty
	for _, i := range all {
		nets, _ := i.Addrs()
		for _, n := range nets {
			if prefix, err := netip.ParsePrefix(n.String()); err == nil && prefix.Addr().Unmap() == want.Unmap() {
				f.Interface = i.Name
				return
			}
		}
	}
	f.warn("no interface of this host has %s: is this host %s?", here.Address, here.Name)
}

// findDisk inspects the file system of the data directory or its nearest existing parent.
func (f *Found) findDisk() {
	dir := f.DataDir
	for dir != "/" {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		f.warn("cannot inspect the file system of %s: %v", f.DataDir, err)
		return
	}
	f.FreeBytes = s.Bavail * uint64(s.Bsize)
	if f.FreeBytes < lowSpace {
		f.warn("%s has %.1f GiB free, but etcd's database may grow to 8 GiB", f.DataDir, float64(f.FreeBytes)/(1<<30))
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return
	}
	defer mounts.Close()
	f.Disk = diskOf(mounts, dir)
}

// diskOf returns the file system that contains a directory, such as "ext4 on /dev/sda1". mounts has the format of
// mountinfo. Two consecutive spaces in it mean that a mount has no source.
func diskOf(mounts io.Reader, dir string) string {
	best, disk := "", ""
	for lines := bufio.NewScanner(io.LimitReader(mounts, maxText)); lines.Scan(); {
		left, right, ok := strings.Cut(lines.Text(), " - ")
		where, what := strings.Fields(left), strings.Split(right, " ")
		if !ok || len(where) < 5 || len(what) < 2 {
			continue
		}
		if at := where[4]; len(at) >= len(best) && (at == "/" || dir == at || strings.HasPrefix(dir, at+"/")) {
			best, disk = at, what[0]
			if what[1] != "" {
				disk += " on " + what[1]
			}
		}
	}
	return disk
}

// findBinary finds the etcd binary: at the configured path, the path in the unit, or the usual paths.
func (f *Found) findBinary(ctx context.Context, said, execStart string) {
	paths := []string{said}
	if m := regexp.MustCompile(`path=(\S+) ;`).FindStringSubmatch(execStart); m != nil {
		paths = append(paths, m[1])
	}
	for _, path := range append(paths, "/usr/bin/etcd", "/usr/local/bin/etcd") {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && filepath.Base(path) == "etcd" {
			f.Binary = path
			break
		}
	}
	if f.Binary == "" {
		f.warn("there is no etcd on this host: install the package quorumd-etcd (make etcd-package), or the upstream " +
			"program as /usr/bin/etcd")
		return
	}
	out, err := ask(ctx, f.Binary, "--version")
	if err != nil {
		f.warn("cannot determine the version of %s: %v", f.Binary, err)
		return
	}
	if f.Version = execshim.EtcdVersion(out); f.Version == "" {
		f.warn("cannot determine the version of %s: its output is not etcd's", f.Binary)
		return
	}
	switch v := policy.ParseVersion(f.Version); {
	case v.Known() && !v.Tested():
		f.warn(
			"etcd %s is newer than the versions that quorumd is tested with, so no host joins with it; install a "+
				"newer quorumd, or an older etcd (make etcd-package)",
			f.Version,
		)
	case v.Known() && !v.Safe():
		f.warn("etcd %s is too old for safe membership changes: install the package quorumd-etcd "+
			"(make etcd-package)", f.Version)
	}
}

// show returns properties of a unit; none without systemd.
func show(ctx context.Context, unit string) map[string]string {
	const properties = "--property=LoadState,UnitFileState,ActiveState,MainPID,ExecStart"
	out, _ := ask(ctx, "systemctl", "show", properties, "--", unit)
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			all[key] = value
		}
	}
	return all
}

// ask runs a program with PATH as its only environment variable, and returns its output.
func ask(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Env, c.WaitDelay = []string{"PATH=" + os.Getenv("PATH")}, time.Second
	r, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	out, readErr := io.ReadAll(io.LimitReader(r, maxText))
	return out, errors.Join(readErr, c.Wait())
}

// findRunning reads the settings of the running etcd from its command line and, for missing flags, from its
// environment.
func (f *Found) findRunning(pid string) {
	flags := []string{
		"name", "data-dir", "advertise-client-urls", "initial-advertise-peer-urls", "cert-file", "peer-cert-file",
		"trusted-ca-file", "peer-trusted-ca-file",
	}
	line, err := readProc(pid, "cmdline")
	if err != nil {
		f.warn("etcd is running, but its flags cannot be read: %v; run this command as root", err)
		return
	}
	environment, err := readProc(pid, "environ")
	if err != nil {
		f.warn("etcd is running, but its environment cannot be read: %v; run this command as root", err)
	}
	f.Running = map[string]string{}
	for _, name := range flags {
		if value, ok := valueOf(line, environment, name); ok {
			f.Running[name] = value
		}
	}
}

// valueOf returns the value of an etcd flag.
func valueOf(line, environment []string, name string) (string, bool) {
	for i, arg := range line {
		flag, value, ok := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case flag != name || !strings.HasPrefix(arg, "-"):
		case ok:
			return value, true
		case i+1 < len(line):
			return line[i+1], true
		}
	}
	variable := "ETCD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "="
	i := slices.IndexFunc(environment, func(s string) bool { return strings.HasPrefix(s, variable) })
	if i < 0 {
		return "", false
	}
	return environment[i][len(variable):], true
}

func readProc(pid, name string) ([]string, error) {
	f, err := os.Open(filepath.Join("/proc", filepath.Base(pid), name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText))
	return strings.Split(string(bytes.TrimRight(text, "\x00")), "\x00"), err
}

// Differs returns the settings in which a running etcd differs from the configuration. After the next start of etcd,
// quorumd would not recognize this host's member, would not find its data, or would configure different certificates.
func (f Found) Differs(c config.Config) []string {
	type setting struct{ flag, key, wanted string }
	settings := []setting{
		{"name", "host.name", c.Host.Name},
		{"data-dir", "etcd.dataDir", c.Etcd.DataDir},
		{"advertise-client-urls", "etcd.clientURL", c.Etcd.ClientURL},
		{"initial-advertise-peer-urls", "etcd.peerURL", c.Etcd.PeerURL},
	}
	if t := c.Etcd.TLS; t != nil { // if etcd uses TLS and the configuration does not, the URLs differ
		settings = append(settings, setting{"cert-file", "etcd.tls.cert", t.Cert},
			setting{"trusted-ca-file", "etcd.tls.ca", t.CA}, setting{"peer-cert-file", "etcd.tls.peerCert", t.PeerCert},
			setting{"peer-trusted-ca-file", "etcd.tls.peerCA", t.PeerCA})
	}
	var said []string
	for _, s := range settings {
		if value, ok := f.Running[s.flag]; ok && !slices.Contains(strings.Split(value, ","), s.wanted) {
			said = append(said,
				fmt.Sprintf("etcd on this host runs with --%s=%s, but %s is %s", s.flag, value, s.key, s.wanted))
		}
	}
	return said
}
