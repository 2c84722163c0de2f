// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package nextetcd checks whether the etcd binary of a planned upgrade accepts the settings of the running etcd. It
// runs the binary to find out, because no list of flags is complete: etcd's help omits some flags. The package
// promises:
//
//   - The binary only prints: it runs with --version and an empty environment, starts no server and opens no data.
//   - The number of settings, the output and the time are bounded. A binary that does not answer like etcd causes an
//     error.
package nextetcd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/execshim"
	"github.com/quorumd/quorumd/health/etcdflags"
)

// Result is what an etcd binary reports about its version and the settings.
type Result struct {
	Version  string   // such as 3.7.3
	Problems []string // the settings that the binary does not accept, each with what to do; empty if it accepts all
}

// maxNames bounds the number of settings that are checked.
const maxNames = 256

// notKnown begins the error that etcd prints for an unknown flag. The flag's name follows.
const notKnown = "flag provided but not defined"

// badValue is a value that no flag accepts, except flags that take any string. Such a flag has no effect with
// --version.
const badValue = "@@bad"

// prefix begins the names of flags for experimental features. Later versions of etcd remove these flags.
const prefix = "experimental-"

// Check determines the version of the binary at path, and which of these settings it does not accept. child is the
// command line of a child process that executes the binary, because the binary's disk may hang. Check may return long
// after the context has ended.
func Check(ctx context.Context, child []string, path string, names etcdflags.Names) (Result, error) {
	if n := len(names.Flags) + len(names.Variables) + len(names.Keys) + len(names.Gates); n > maxNames {
		return Result{}, fmt.Errorf("cannot check %s: etcd has %d settings, but at most %d can be checked", path, n,
			maxNames)
	}
	b := binary{child, path}
	out, err := b.print(ctx)
	if err != nil {
		return Result{}, err
	}
	found := Result{Version: execshim.EtcdVersion(out)}
	if found.Version == "" {
		return Result{}, fmt.Errorf("the output of %s --version is not etcd's", path)
	}
	for _, s := range settings(names) {
		known, err := b.hasFlag(ctx, s.flag)
		if err != nil {
			return Result{}, err
		}
		if known {
			continue
		}
		remedy, err := b.remedy(ctx, s)
		if err != nil {
			return Result{}, err
		}
		found.Problems = append(found.Problems, s.text+" ("+remedy+")")
	}
	for _, gate := range names.Gates {
		accepted, err := b.acceptsGate(ctx, gate)
		if err != nil {
			return Result{}, err
		}
		if !accepted {
			found.Problems = append(found.Problems, "does not start with the feature gate "+gate+" (remove it)")
		}
	}
	return found, nil
}

// setting is one setting of etcd: the flag that has the same meaning, and how an etcd without that flag reacts to the
// setting.
type setting struct {
	flag, text string
	// name converts the name of a flag to the form of this setting: flag, variable or configuration key.
	name func(flag string) string
}

func settings(names etcdflags.Names) []setting {
	var all []setting
	for _, name := range names.Flags {
		dashed := func(flag string) string { return "--" + flag }
		all = append(all, setting{name, "does not start with --" + name, dashed})
	}
	for _, name := range names.Variables {
		all = append(all, setting{flagOf(name), "ignores " + name, variableOf})
	}
	for _, name := range names.Keys {
		all = append(all, setting{name, "ignores " + name + " in its configuration file", strings.Clone})
	}
	slices.SortFunc(all, func(a, b setting) int { return strings.Compare(a.text, b.text) })
	return slices.CompactFunc(all, func(a, b setting) bool { return a.text == b.text })
}

// flagOf returns the name of the flag that an environment variable sets.
func flagOf(variable string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, "ETCD_"), "_", "-"))
}

// variableOf returns the name of the environment variable that sets a flag.
func variableOf(flag string) string {
	return "ETCD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// gates maps the name of an experimental flag, without prefix, to the feature gate that replaces the flag.
func gates() map[string]string {
	return map[string]string{
		"compact-hash-check-enabled":        "CompactHashCheck",
		"enable-lease-checkpoint":           "LeaseCheckpoint",
		"enable-lease-checkpoint-persist":   "LeaseCheckpointPersist",
		"initial-corrupt-check":             "InitialCorruptCheck",
		"stop-grpc-service-on-defrag":       "StopGRPCServiceOnDefrag",
		"txn-mode-write-with-shared-buffer": "TxnModeWriteWithSharedBuffer",
	}
}

// binary is an etcd binary on a disk that may hang.
type binary struct {
	child []string
	path  string
}

// remedy returns what to do about an unknown setting.
func (b binary) remedy(ctx context.Context, s setting) (string, error) {
	plain, experimental := strings.CutPrefix(s.flag, prefix)
	if !experimental {
		return "remove it", nil
	}
	if gate := gates()[plain]; gate != "" {
		return "add " + gate + "=<its value> to " + s.name("feature-gates"), nil
	}
	known, err := b.hasFlag(ctx, plain)
	switch {
	case err != nil:
		return "", err
	case known:
		return "use " + s.name(plain) + " instead", nil
	}
	return "remove it", nil
}

func (b binary) hasFlag(ctx context.Context, flag string) (bool, error) {
	if !isName(flag) {
		return false, nil
	}
	out, err := b.print(ctx, "--"+flag+"="+badValue)
	if err != nil {
		return false, err
	}
	return !strings.Contains(string(out), notKnown), nil
}

// notAccepted is part of the error that etcd prints for a feature gate that is unknown or has a fixed value.
const notAccepted = "for flag -feature-gates"

// acceptsGate reports whether the binary accepts a feature gate with its value, such as InitialCorruptCheck=true. A
// binary without feature gates counts as accepting it, because the flag feature-gates is already reported.
func (b binary) acceptsGate(ctx context.Context, gate string) (bool, error) {
	name, value, _ := strings.Cut(gate, "=")
	if !isBool(value) || !isName(strings.ToLower(name)) {
		return false, nil
	}
	out, err := b.print(ctx, "--feature-gates="+gate)
	if err != nil {
		return false, err
	}
	return !strings.Contains(string(out), notAccepted), nil
}

func isBool(s string) bool {
	_, err := strconv.ParseBool(s)
	return err == nil
}

// isName reports whether a string can be the name of a flag.
func isName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	return s != "" && len(s) <= 128 && s[0] != '-' && strings.Trim(s, letters) == ""
}

// printTimeout bounds one run of the binary.
const printTimeout = 5 * time.Second

// print runs the binary with these flags and --version, and returns its output.
func (b binary) print(ctx context.Context, flags ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, printTimeout)
	defer cancel()
	args := append([]string{b.path}, flags...)
	// ignore the status: if a flag is unknown, etcd exits with status 2
	out, _, err := execshim.Output(ctx, b.child, append(args, "--version")...)
	if err != nil {
		return nil, fmt.Errorf("cannot run %s: %w; check etcd.nextBinary", b.path, err)
	}
	return out, nil
}
