// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package recovery

import "context"

// Rebuilder makes a cluster with a single member from the survivor's data, or from a snapshot. Read and Swap may hang
// with the disk; the other methods never block.
type Rebuilder interface {
	// Read returns the content of this host's data directory.
	Read(ctx context.Context) (Log, error)
	// Copy starts a copy in the background, unless one is running.
	Copy(w Work)
	// State returns the progress of the copy.
	State() Copy
	// Abandon stops a running copy.
	Abandon()
	// Swap moves the old data aside and puts the copy in its place. It returns the new names of the old data.
	Swap(ctx context.Context, w Work) ([]string, error)
}
