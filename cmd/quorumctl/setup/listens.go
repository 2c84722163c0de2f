// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Listens returns the URLs on which a unit's etcd listens, from its command line and environment; none if the unit is
// not active. It returns an error if the URLs of a running etcd cannot be determined.
func Listens(ctx context.Context, unit string) ([]string, error) {
	u := show(ctx, unit)
	if u["ActiveState"] != "active" {
		return nil, nil
	}
	return listens(u["MainPID"])
}

func listens(pid string) (urls []string, err error) {
	line, err := readProc(pid, "cmdline")
	environment, envErr := readProc(pid, "environ")
	if err = errors.Join(err, envErr); err != nil {
		return nil, fmt.Errorf("cannot read its settings: %w; run this command as root", err)
	}
	// With a configuration file, etcd ignores all other settings.
	if file, ok := valueOf(line, environment, "config-file"); ok && file != "" {
		return nil, fmt.Errorf("its settings are in %s; look for listen-client-urls there", file)
	}
	// Another program, such as a container runtime or a script, may start etcd with different settings.
	if program := filepath.Base(line[0]); program != "etcd" {
		return nil, fmt.Errorf("the unit's process is %s, not etcd; check how it starts etcd", program)
	}
	for _, flag := range []struct{ name, otherwise string }{
		{"listen-client-urls", "http://localhost:2379"},
		{"listen-client-http-urls", ""},
		{"listen-peer-urls", "http://localhost:2380"},
		{"listen-metrics-urls", ""},
	} {
		value, _ := valueOf(line, environment, flag.name)
		for url := range strings.SplitSeq(cmp.Or(value, flag.otherwise), ",") { // etcd ignores an empty variable
			if url = strings.TrimSpace(url); url != "" {
				urls = append(urls, url)
			}
		}
	}
	return urls, nil
}
