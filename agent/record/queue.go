// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "slices"

// Calls reports whether the queue, which may be nil, names the host with the given ID.
func (q *Queue) Calls(id string) bool {
	return q != nil && (slices.Contains(q.Next, id) || slices.Contains(q.Down, id))
}
