// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "testing"

func TestThePolicyBreaksNoPromiseInARollout(t *testing.T) {
	t.Parallel()
	for _, sc := range Rolls() {
		r := ExploreRoll(t.Context(), sc, 0)
		t.Log(r)
		if r.Breach != nil {
			t.Fatalf("%s: %s: %s\n%s", sc.Name, r.Breach.Promise, r.Breach.Text, r.Breach.Story)
		}
		if !r.Complete {
			t.Errorf("%s: not explored to the end", sc.Name)
		}
	}
}
