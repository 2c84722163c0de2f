// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"strings"
)

// product is a set of packages.
type product struct {
	name     string // name of the packages
	own      bool   // quorumd itself: it has shell completions, a journal catalog and a changelog
	dir      string // directory of the module in which its programs are built
	programs map[string]string
	pages    string // pattern of its manual pages
	recipe   string
	notice   string // text that precedes the licences of third parties
	news     string // where its changes are listed
}

// products returns all products by name. The etcd package is built from the same module as the etcd of the tests.
func products() map[string]product {
	return map[string]product{
		"quorumd": {
			name: "quorumd", own: true, dir: ".",
			programs: map[string]string{"quorumd": "./cmd/quorumd", "quorumctl": "./cmd/quorumctl"},
			pages:    "packaging/man/*.md", recipe: "packaging/nfpm.yaml",
			notice: "quorumd and quorumctl contain third-party code under the following licences.",
			news:   "The changes are listed in /usr/share/doc/quorumd/changelog.gz.",
		},
		"etcd": {
			name: "quorumd-etcd", dir: "contrib/etcd/v3.6",
			programs: map[string]string{
				"etcd": "go.etcd.io/etcd/server/v3", "etcdctl": "go.etcd.io/etcd/etcdctl/v3",
				"etcdutl": "go.etcd.io/etcd/etcdutl/v3",
			},
			pages: "packaging/etcd/*.md", recipe: "packaging/etcd/nfpm.yaml",
			notice: "etcd, etcdctl and etcdutl are built from these modules, under the following licences.",
			news:   "See https://github.com/etcd-io/etcd/tree/main/CHANGELOG.",
		},
	}
}

// pinned sets the version of the packages to the version of etcd's module.
func (j *job) pinned(ctx context.Context) error {
	c := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", j.product.programs["etcd"])
	c.Dir = j.product.dir
	version, err := output(c)
	if err != nil {
		return err
	}
	j.version = strings.TrimPrefix(strings.TrimSpace(string(version)), "v")
	return nil
}
