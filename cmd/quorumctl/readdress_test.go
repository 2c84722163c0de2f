// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestReaddressStartsARolloutOfTheNamedHostsOrOfAll(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, scene(t, "rollout"))
	golden(t, "readdress.golden", transcript(t, socket, "readdress --all --dry-run --reason 'new subnet'",
		"readdress n3 --yes --reason 'new subnet'", "readdress n1 n2 n3 --yes --reason certificates"))
	d := scene(t, "rollout")
	socket, _ = serve(t, d)
	refusesArguments(t, d, socket, "readdress --yes --reason x", "readdress n3 --all --yes --reason x",
		"readdress n3 --reason x", "readdress n3 --yes --reason x --wait=-1s")
}
