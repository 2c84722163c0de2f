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
		checkResult(t, sc.Name, Explore(t.Context(), sc, 2))
	}
}
