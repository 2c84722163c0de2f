// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import "testing"

func TestOnlyGetRoutesAreOpenToAllUsers(t *testing.T) {
	t.Parallel()
	for _, rt := range New(Options{Backend: &fake{}}).table {
		if reads := rt.method == "GET"; reads != (rt.access == accessRead) {
			t.Errorf("%s %s has access %d", rt.method, rt.path, rt.access)
		}
	}
}
