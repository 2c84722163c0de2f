// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/quorumd/quorumd/agent/etcddb"
)

func TestTheEndOfASnapshotIsSentOnlyAfterAnErrorFreeRead(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("database", 100)
	var out bytes.Buffer
	if err := endLast(&out, iotest.OneByteReader(strings.NewReader(whole))); err != nil || out.String() != whole {
		t.Errorf("of one that is whole %d of %d bytes came: %v", out.Len(), len(whole), err)
	}
	out.Reset()
	if err := endLast(&out, strings.NewReader("short")); err != nil || out.String() != "short" {
		t.Errorf("of one that is shorter than its end came %q: %v", out.String(), err)
	}
	out.Reset()
	changed := errors.New("the SHA-256 of what is stored is not that of what was written")
	err := endLast(&out, io.MultiReader(strings.NewReader(whole), iotest.ErrReader(changed)))
	if !errors.Is(err, changed) || out.Len() != len(whole)-etcddb.SumBytes {
		t.Errorf("of one that was changed %d of %d bytes came: %v", out.Len(), len(whole), err)
	}
}
