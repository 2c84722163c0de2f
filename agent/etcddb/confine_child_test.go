// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package etcddb

import "testing"

// The race detector alone allocates more than the limit, so a confined process could not start a child.
func TestChildOfAConfinedProcessCanLiftTheLimits(t *testing.T) {
	t.Parallel()
	_, out, err := confinedChild(t, "child")
	if err != nil || out != "false false\ntrue true\n" {
		t.Errorf("%v: the limits of the child, and of its parent: %s", err, out)
	}
}
