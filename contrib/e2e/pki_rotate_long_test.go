// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build long

package e2e

import "testing"

func TestFiveVotersRotateTheCAUnderWrites(t *testing.T) {
	t.Parallel()
	rotateCA(t, 5)
}
