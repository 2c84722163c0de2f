// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

func TestManifestsAreBoundedAndTheFirstEntryIsKept(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	one := func(i int) record.Manifest {
		return record.Manifest{
			Name: fmt.Sprintf("%019d-%s", i, strings.Repeat("x", 300)), SHA256: fmt.Sprintf("%064x", i),
			Saved: noon.Add(time.Duration(i) * time.Hour), Host: strings.Repeat("h", 200),
		}
	}
	var all record.Manifests
	for i := range 500 {
		all = all.Add(one(i))
	}
	n := len(all.Saved)
	if n < 20 || n > record.MaxManifests || all.Saved[n-1] != one(499) || all.Saved[0] != one(500-n) {
		t.Errorf("%d are remembered, from %.19s", n, all.Saved[0].Name)
	}
	text, err := record.Encode(all)
	if err != nil || len(text) > record.MaxBytes {
		t.Errorf("%d bytes: %v", len(text), err)
	}
	forged := one(499)
	forged.SHA256 = fmt.Sprintf("%064x", 1)
	if got := all.Add(forged); len(got.Saved) != n || got.Saved[n-1] != one(499) {
		t.Errorf("the first entry was overwritten: %+v", got.Saved[n-1])
	}
	if got := all.Add(record.Manifest{Name: "a", SHA256: "none"}); len(got.Saved) != n {
		t.Error("a manifest without a hash is recorded")
	}
	for _, bad := range []string{
		`{"version":1,"saved":[{"name":"a","sha256":"00"}]}`, `{"version":1,"saved":[{"sha256":"` +
			strings.Repeat("0", 64) + `"}]}`,
	} {
		if _, err := record.Decode[record.Manifests]([]byte(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
