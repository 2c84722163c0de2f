// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// modulePath distinguishes this module's go.mod from those of the nested modules below it.
const modulePath = "github.com/quorumd/quorumd"

// Root returns the top directory of the checkout: the nearest directory with this module's go.mod, from the working
// directory upwards.
func Root() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the checkout: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module "+modulePath+"\n") {
			return dir, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("cannot find the checkout: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("cannot find the checkout: no go.mod of %s above %s; run this inside the checkout",
				modulePath, wd)
		}
	}
}

// Binary returns the path of the etcd of one minor version, such as "v3.6". The error ends with the command that builds
// it.
func Binary(version string) (string, error) {
	remedy := "make etcd-all"
	switch version {
	case DefaultVersion, Small:
		remedy = "make etcd"
	case "v3.4":
		remedy = "contrib/etcd/debian-3.4.sh"
	}
	return built(filepath.Join("etcd", version, "etcd"), "etcd "+version, remedy)
}

// DefaultVersion is the version that quorumd is tested with most.
const DefaultVersion = "v3.6"

// Small is DefaultVersion with smaller segments of its write-ahead log: a member takes 10 MB of disk instead of 128.
// Tests use it by default.
const Small = DefaultVersion + "/small"

// Etcd is like Binary, but fails the test if there is no such etcd.
func Etcd(t testing.TB, version string) string {
	t.Helper()
	path, err := Binary(version)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// EtcdVersion returns the version that the binary of Etcd reports, such as 3.6.16.
func EtcdVersion(t testing.TB, version string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), Etcd(t, version), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(first, "etcd Version: ")
}

// FaultfsBinary returns the path of the fault-injecting file system. The error ends with the command that builds it.
func FaultfsBinary() (string, error) { return built("faultfs", "faultfs", "make faultfs") }

// built returns the path of a program below .cache of the checkout.
func built(path, what, remedy string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path = filepath.Join(root, ".cache", path)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return "", fmt.Errorf("cannot find %s: run `%s`", what, remedy)
	}
	return path, nil
}
