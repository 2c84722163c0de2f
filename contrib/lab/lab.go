// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
)

// Options describe a lab.
type Options struct {
	Dir   string // directory for everything that the lab writes; Enter creates it
	Root  string // the hosts' root file system; Release.Root creates it
	Hosts int    // n1, n2, …
	// Faultfs is the path of the program of contrib/faultfs. It runs below every host's disk, for Disk.Slow and
	// Disk.Hang. Without a path, those two fail.
	Faultfs string
	// From is the path of a directory that Lab.Save has written with the same number of hosts: they boot with those
	// files. Without a path, the hosts are bare.
	From string
	// Prepare may change a host's files before its first boot. It may be nil.
	Prepare func(h *Host) error
}

// Lab is a group of hosts on a network. The namespaces that Enter creates can hold one lab at a time.
type Lab struct {
	Hosts   []*Host // n1, n2, …
	options Options
	closed  bool
}

// Up boots hosts and waits until they are up.
func Up(ctx context.Context, o Options) (*Lab, error) {
	l := &Lab{options: o}
	for i := 1; i <= o.Hosts; i++ {
		name := fmt.Sprintf("n%d", i)
		l.Hosts = append(l.Hosts, &Host{
			Name: name, Address: fmt.Sprintf("%s%d", subnet, i), number: i, lab: l, dir: filepath.Join(o.Dir, name),
		})
	}
	if err := makeNetwork(ctx); err != nil {
		return nil, err
	}
	return l, l.Each(func(h *Host) error {
		if err := h.prepare(ctx); err != nil {
			return err
		}
		if o.Prepare != nil {
			if err := o.Prepare(h); err != nil {
				return err
			}
		}
		if err := h.PowerOn(ctx); err != nil {
			return err
		}
		return h.Booted(ctx)
	})
}

// Save ends the lab cleanly, and moves what its hosts have written to a directory for Options.From. That directory must
// be on the file system of Options.Dir.
func (l *Lab) Save(ctx context.Context, dir string) error {
	err := l.Each(func(h *Host) error {
		if err := h.ShutDown(ctx); err != nil {
			return err
		}
		return h.save(ctx, filepath.Join(dir, h.Name))
	})
	return errors.Join(err, l.Close(ctx))
}

// Close ends all hosts at once, and removes everything that the lab has created. If ctx ends first, it returns an
// error.
func (l *Lab) Close(ctx context.Context) error {
	if l.closed {
		return nil
	}
	l.closed = true
	err := l.Each(func(h *Host) error {
		var err error
		for _, d := range h.disks() {
			err = errors.Join(err, d.release())
		}
		if h.on() {
			err = errors.Join(err, h.PowerLoss(ctx))
		}
		return errors.Join(err, h.discard(ctx))
	})
	_, linkErr := machine(ctx, "", "ip", "link", "del", bridge)
	_, ruleErr := machine(ctx, "", "nft", "delete", "table", "bridge", "lab")
	return errors.Join(err, linkErr, ruleErr, removeGroups(l.name()))
}

// Closed reports whether Close or Save has ended the lab.
func (l *Lab) Closed() bool { return l.closed }

// name returns the name of the directory that Enter created. The lab's control groups have the same name.
func (l *Lab) name() string { return filepath.Base(l.options.Dir) }

// Each calls do for all hosts concurrently.
func (l *Lab) Each(do func(h *Host) error) error {
	errs := make([]error, len(l.Hosts))
	var all sync.WaitGroup
	for i, h := range l.Hosts {
		all.Go(func() {
			if err := do(h); err != nil {
				errs[i] = fmt.Errorf("%s: %w", h.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
