// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "testing"

func TestAPermanentLearnerKeepsItsPromises(t *testing.T) {
	t.Parallel()
	for _, sc := range smallLearners() {
		checkResult(t, sc.Name, Explore(t.Context(), sc, 2))
	}
}
