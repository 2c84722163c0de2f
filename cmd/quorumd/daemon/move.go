// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/local"
	"github.com/quorumd/quorumd/systemd"
	"github.com/quorumd/quorumd/systemd/rootfile"
	"github.com/quorumd/quorumd/systemd/steward"
)

const (
	// moveCommand takes over what earlier versions wrote for etcd's unit; the packages' scripts run it, as root.
	moveCommand = "move-environment"
	// formerState is where they wrote it, and where the agent may write to this day.
	formerState    = "/var/lib/quorumd"
	maxEnvironment = 256 << 10
	mainUnit       = "etcd.service" // which the packages' drop-in is for
)

// move takes over an environment and a hold from a directory that the agent owns. Nothing of it is believed but three
// variables, which are checked as if the agent had said them to the helper; where they do not hold, the environment
// says that this host belongs to a cluster that exists, with which etcd starts from its data and never makes a new one.
func (s steering) move(from string) error {
	dir, err := os.OpenFile(from, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot take over etcd's environment: %w", err)
	}
	defer dir.Close()
	text, wrote, err := suspect(dir, "etcd.env")
	if err != nil {
		return fmt.Errorf("cannot take over etcd's environment: %w", err)
	}
	_, held, err := suspect(dir, "etcd.hold")
	if err != nil || !wrote && !held {
		return err
	}
	conf, err := trustedConfig(s.files, s.configs, mainAgent)
	if err != nil {
		if held { // better no etcd than one that makes a cluster of its own
			err = errors.Join(err, s.files.Write(s.defaultHold, []byte(local.HoldText), 0o644))
		}
		return fmt.Errorf("cannot take over etcd's environment: %w", err)
	}
	if wrote {
		_, err := s.files.Read(conf.Etcd.EnvironmentFile, maxEnvironment)
		if errors.Is(err, fs.ErrNotExist) {
			err = s.writeEnvironment(conf, believed(conf.Environment, conf.Alone(), text))
		}
		if err != nil {
			return fmt.Errorf("cannot take over etcd's environment: %w", err)
		}
	}
	if held {
		if err := s.files.Write(conf.Etcd.HoldFile(), []byte(local.HoldText), 0o644); err != nil {
			return err
		}
	}
	if reader := s.readerOf(filepath.Join(from, "etcd.")); reader != "" || conf.Etcd.Unit != mainUnit {
		fmt.Fprintf(os.Stderr,
			"quorumd: the files in %s stay, because %s may read them: put %s and %s into its drop-in, then remove "+
				"them\n",
			from, cmp.Or(reader, conf.Etcd.Unit), conf.Etcd.EnvironmentFile, conf.Etcd.HoldFile())
		return nil
	}
	for name, was := range map[string]bool{"etcd.env": wrote, "etcd.hold": held} {
		if !was {
			continue
		}
		// Whoever owns the directory may have put another thing there since: it is nothing to us.
		if err := unix.Unlinkat(int(dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) &&
			!errors.Is(err, unix.EISDIR) {
			return fmt.Errorf("cannot remove %s: %w", filepath.Join(from, name), err)
		}
	}
	return nil
}

// readerOf gives root's drop-in that names such a path; "" for none.
func (s steering) readerOf(path string) string {
	files, err := filepath.Glob(filepath.Join(s.dropIns, "*.d", "*.conf"))
	if err != nil {
		return ""
	}
	for _, name := range files {
		text, err := s.files.Read(name, maxEnvironment)
		if err == nil && strings.Contains(string(text), path) {
			return name
		}
	}
	return ""
}

// believed gives the environment with what can be believed of an old one.
func believed(environment func(cluster, token string) map[string]string, alone, text string) map[string]string {
	old, _ := systemd.ParseEnvironment(text)
	i := steward.InitialOf(old)
	vars := environment(i.Cluster, i.Token)
	i.Digest = steward.Digest(vars)
	o := steward.Order{Word: steward.SetEnvironment, Agent: mainAgent, Initial: &i}
	if o.Check() != nil || !i.Names(alone) {
		return environment(alone, "")
	}
	return vars
}

// suspect reads a file in a directory of somebody who is not trusted: it follows no link, waits for nothing, and is
// bounded. What is no regular file of that somebody's or of root's, as of a quorumd that ran as root, is none.
func suspect(dir *os.File, name string) (text string, is bool, err error) {
	fd, err := unix.Openat(int(dir.Fd()), name,
		unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO),
		errors.Is(err, unix.ENODEV):
		return "", false, nil
	case err != nil:
		return "", false, &fs.PathError{Op: "open", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var here, its unix.Stat_t
	if err := errors.Join(unix.Fstat(int(dir.Fd()), &here), unix.Fstat(fd, &its)); err != nil {
		return "", false, err
	}
	if its.Mode&unix.S_IFMT != unix.S_IFREG || its.Uid != here.Uid && its.Uid != 0 || its.Nlink != 1 {
		return "", false, nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxEnvironment))
	return string(data), err == nil, err
}

func moveEnvironment() error {
	hold := config.Etcd{EnvironmentFile: config.DefaultEnvironmentFile}.HoldFile()
	return steering{
		files: rootfile.Root(), configs: configs, dropIns: "/etc/systemd/system",
		defaultHold: hold,
	}.move(formerState)
}
