// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import "testing"

func TestEveryChangeNeedsPermission(t *testing.T) {
	t.Parallel()
	for _, rt := range New(Options{Backend: &desk{}}).table {
		if looks := rt.method == "GET"; looks != (rt.access == look) {
			t.Errorf("%s %s is open to those with access %d", rt.method, rt.path, rt.access)
		}
	}
}
