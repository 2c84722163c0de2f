// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestUpgradeShowsItsStepsAndGoesBackToTheOldestVersion(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "rollout"))
	golden(t, "upgrade.golden", transcript(t, socket, "upgrade plan 3.7.3 --command upgrade-etcd",
		"upgrade start 3.7.3 --command upgrade-etcd --reason 'etcd 3.7' --yes", "upgrade status", "upgrade resume",
		"upgrade abort --dry-run", "upgrade abort --command reinstall-etcd --reason slow --dry-run",
		"upgrade abort", "upgrade abort --command reinstall-etcd --reason slow",
		"upgrade downgrade 3.6.16 --command reinstall-etcd --reason slow --dry-run",
		"upgrade downgrade 3.6.16 --command reinstall-etcd --reason slow --yes"))
	d := scene(t, "rollout")
	socket, _ = serve(t, d)
	refusesArguments(t, d, socket, "upgrade plan --command upgrade-etcd", "upgrade plan 3.7.3",
		"upgrade start 3.7.3 --yes --reason x", "upgrade start 3.7.3 --command up --reason x",
		"upgrade downgrade 3.6.16 --command down --reason x", "upgrade downgrade --command down --reason x --yes",
		"upgrade downgrade 3.6.16 --reason x --yes",
		"upgrade start 3.7.3 --command up --yes --reason x --wait=-1s", "upgrade abort --command up",
		"upgrade resume n3")
}
