// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "testing"

// The full exploration includes the long scopes as well.
func TestWorkIsCalledOffOnlyWhenTheClusterNeedsTheHost(t *testing.T) {
	t.Parallel()
	for _, sc := range recalls() {
		if sc.Long {
			continue
		}
		r := Explore(t.Context(), sc, 2)
		t.Log(r)
		if r.Breach != nil {
			t.Fatalf("%s: %s: %s\n%s", sc.Name, r.Breach.Promise, r.Breach.Text, r.Breach.Trace)
		}
		if !r.Complete {
			t.Errorf("%s: the exploration is incomplete", sc.Name)
		}
	}
}
