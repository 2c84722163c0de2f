// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestPiecewiseFileIsWholeAndAtMostTwoPiecesBehind(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, piece - 1, piece, piece + 1, 5*piece + 7} {
		for _, forget := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d bytes, forget %v", size, forget), func(t *testing.T) {
				t.Parallel()
				want := make([]byte, size)
				_, _ = rand.Read(want) // never fails
				path := filepath.Join(t.TempDir(), "file")
				file, err := os.Create(path)
				if err != nil {
					t.Fatal(err)
				}
				b := &writeBehind{file: file, forget: forget}
				for rest := want; len(rest) > 0; {
					n := min(len(rest), 100_000)
					if _, err := b.Write(rest[:n]); err != nil {
						t.Fatal(err)
					}
					if late := b.written - b.done; late > 2*piece+100_000 {
						t.Fatalf("%d bytes wait for the disk", late)
					}
					rest = rest[n:]
				}
				if err := b.sync(); err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(path)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes were read back, of %d: %v", len(got), len(want), err)
				}
				if err := file.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
