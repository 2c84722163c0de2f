//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/contrib/lab"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// TestMain sets these for all tests.
var (
	runDir string // directory of the lab, from lab.Enter
	rootFS string // root file system of the hosts
)

func TestMain(m *testing.M) { os.Exit(enter(m)) }

// enter runs the tests in their own namespaces, which end with "go test", even if it is killed.
func enter(m *testing.M) int {
	flag.Parse()
	cache, err := cacheDir()
	if !lab.Inside() && err == nil {
		err = prepareMachine(cache)
	}
	if list := flag.Lookup("test.list").Value.String(); err == nil && list != "" {
		return m.Run()
	}
	if err == nil && !lab.Inside() && *parallelTests > 0 {
		return runInParallel(cache)
	}
	if err == nil {
		rootFS, err = lab.Debian12.Root(context.Background(), cache)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return lab.Enter(cache, func(run string) int {
		runDir = run
		return m.Run()
	})
}

// prepareMachine installs what is missing, and makes this process end with its parent.
func prepareMachine(cache string) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0); err != nil {
		return err
	}
	if err := lab.Tools(context.Background()); err != nil {
		return err
	}
	if _, err := lab.Debian12.Root(context.Background(), cache); err != nil {
		return err
	}
	for release, test := range otherReleaseTests() { // the namespaces of the tests have no network
		if !isSelected(test) {
			continue
		}
		if _, err := release.Root(context.Background(), cache); err != nil {
			return err
		}
	}
	return nil
}

// isSelected reports whether -test.run and -test.skip select a test.
func isSelected(test string) bool {
	run, _, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	skip := flag.Lookup("test.skip").Value.String()
	wanted, err := regexp.MatchString(run, test)
	if err != nil || !wanted {
		return false
	}
	left, err := regexp.MatchString("^("+skip+")$", test)
	return err == nil && !left
}

func cacheDir() (string, error) {
	checkout, err := testbed.Root()
	return filepath.Join(checkout, ".cache", "lab"), err
}

// up boots hosts, and ends them with the test.
func up(t *testing.T, o lab.Options) *lab.Lab {
	t.Helper()
	o.Dir = runDir
	if o.Root == "" {
		o.Root = rootFS
	}
	l, err := lab.Up(t.Context(), o)
	if l != nil {
		t.Cleanup(func() {
			for _, h := range l.Hosts {
				if t.Failed() {
					t.Logf("the console of %s:\n%s", h.Name, h.Console())
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := l.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}
