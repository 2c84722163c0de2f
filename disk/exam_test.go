// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
)

// exam returns the options of an examination.
func exam(t *testing.T) Options {
	t.Helper()
	return examIn(t.TempDir())
}

func examIn(dir string) Options {
	return Options{Command: command(asChild), Dir: filepath.Join(dir, "probe"), Target: dir, Exam: true}
}

func TestAnExaminationWritesWithoutRestAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	o := exam(t)
	f := follow(t, o)
	var good []Sample
	f.until("two hundred writes", func() bool {
		good = f.good(LaneWAL)
		return len(good) >= 200
	})
	var rests []time.Duration
	for i := 1; i < len(good); i++ {
		rests = append(rests, good[i].End-good[i].Latency-good[i-1].End)
	}
	slices.Sort(rests)
	if rest := rests[0]; rest > 10*time.Millisecond { // a burst would never rest for less than 18 ms
		t.Errorf("it rests for %s between two writes", rest)
	}
	if n := len(f.good(LaneDirect)); n != 0 || f.last.Device == 0 || f.last.Failure != nil {
		t.Errorf("%d samples of the other lane; %+v", n, f.last)
	}
	f.Close()
	if !f.Tidy() {
		t.Error("the child did not end by itself")
	}
	if entries, err := os.ReadDir(o.Target); err != nil || len(entries) != 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

func TestAnExaminationWhoseParentIsGoneLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	o := exam(t)
	set, err := o.settings()
	if err != nil {
		t.Fatal(err)
	}
	memory, page, err := createPage()
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	defer page.unmap()
	c, err := spawn(o.Command, set.args(), memory, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a write", func() bool { return page.head.Load() > 0 }, func() string { return "" })
	c.stdin.Close() // as the end of the parent does
	if !c.gone(examPatience) || c.err != nil {
		t.Fatalf("the child stays: %v", c.err)
	}
	if entries, err := os.ReadDir(o.Target); err != nil || len(entries) != 0 {
		t.Errorf("%v is left, %v", entries, err)
	}
}

func TestAnExaminationRefusesLinksAndForeignDirectories(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"link":      func(path string) error { return os.Symlink(filepath.Dir(path), path) },
		"file":      func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"for all":   func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777)) },
		"dangling":  func(path string) error { return os.Symlink(path+"-none", path) },
		"its group": func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o750)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := exam(t)
			if err := put(o.Dir); err != nil {
				t.Fatal(err)
			}
			f := follow(t, o)
			f.until("the failure", func() bool { return f.failedWith(OpOpen, syscall.EEXIST) })
			f.Close()
			if len(f.samples) != 0 {
				t.Errorf("%d writes", len(f.samples))
			}
		})
	}
}

func TestAnExaminationByRootRunsAsTheOwnerOfTheDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // without root it runs as its own user
	}
	o := examIn(tempdir.New(t))
	if err := os.Chown(o.Target, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	f := follow(t, o)
	f.until("a write", func() bool { return len(f.good(LaneWAL)) > 0 })
	info, err := os.Stat(o.Dir)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != 65534 {
		t.Errorf("%v, %v", info, err)
	}
	f.Close()
	if entries, err := os.ReadDir(o.Target); err != nil || len(entries) != 0 || !f.Tidy() {
		t.Errorf("%v is left, %v", entries, err)
	}
}

func TestAnExaminationReportsAMissingDirectory(t *testing.T) {
	t.Parallel()
	o := exam(t)
	o.Dir = filepath.Join(o.Target, "none", "probe")
	f := follow(t, o)
	f.until("the failure", func() bool { return f.failedWith(OpOpen, syscall.ENOENT) })
	if !errors.Is(f.last.Failure, syscall.ENOENT) {
		t.Error(f.last.Failure)
	}
	f.Close()
	if !f.Tidy() {
		t.Error("the child did not end by itself")
	}
}
