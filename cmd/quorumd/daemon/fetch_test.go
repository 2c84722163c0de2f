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
	err := copyChecksumLast(&out, iotest.OneByteReader(strings.NewReader(whole)))
	if err != nil || out.String() != whole {
		t.Errorf("complete snapshot: %d of %d bytes copied: %v", out.Len(), len(whole), err)
	}
	out.Reset()
	if err := copyChecksumLast(&out, strings.NewReader("short")); err != nil || out.String() != "short" {
		t.Errorf("snapshot shorter than a checksum: %q copied: %v", out.String(), err)
	}
	out.Reset()
	changed := errors.New("wrong SHA-256")
	err = copyChecksumLast(&out, io.MultiReader(strings.NewReader(whole), iotest.ErrReader(changed)))
	if !errors.Is(err, changed) || out.Len() != len(whole)-etcddb.SumBytes {
		t.Errorf("changed snapshot: %d of %d bytes copied: %v", out.Len(), len(whole), err)
	}
}
