// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// groupRoots returns the directories in which a host gets its own control group: one in systemd's hierarchy and one in
// the unified hierarchy, or one in the only hierarchy that exists. Without its own group, each host's systemd would try
// to manage the same one.
func groupRoots() []string {
	const top = "/sys/fs/cgroup"
	var roots []string
	for _, name := range []string{"systemd", "unified"} {
		if _, err := os.Stat(filepath.Join(top, name, "cgroup.procs")); err == nil {
			roots = append(roots, filepath.Join(top, name))
		}
	}
	if len(roots) == 0 {
		roots = append(roots, top)
	}
	return roots
}

// makeGroups makes the control groups of a host and returns their directories.
func makeGroups(lab, host string) ([]string, error) {
	var dirs []string
	for _, root := range groupRoots() {
		dir := filepath.Join(root, groupName(lab), host)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("cannot create a control group for %s: %w", host, err)
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

func groupName(lab string) string { return "quorumd-lab-" + lab }

// removeGroups removes the control groups of a lab whose processes have ended.
func removeGroups(lab string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	for _, root := range groupRoots() {
		top := filepath.Join(root, groupName(lab))
		errs = append(errs, until(ctx, top+" is empty", func() bool { return removeTree(top) == nil }))
	}
	return errors.Join(errs...)
}

// removeTree removes the directories of a control group, the deepest first; the kernel removes the files in them.
func removeTree(top string) error {
	var dirs []string
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // the group may have been removed already
	})
	for _, dir := range slices.Backward(dirs) {
		if removeErr := os.Remove(dir); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	return err
}
