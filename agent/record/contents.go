// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

// Contents summarize an etcd database. Snapshot manifests and recovery plans record them.
type Contents struct {
	Revision        int64 `json:"revision"`
	CompactRevision int64 `json:"compactRevision"` // -1 if nothing was ever compacted
	// Hash is the result of etcd's HashKV at Revision, after the compaction at CompactRevision.
	Hash uint32 `json:"hash"`
	// Keys is the number of keys at Revision.
	Keys int64 `json:"keys"`
}
