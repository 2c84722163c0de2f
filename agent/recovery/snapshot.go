// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// Snapshot identifies the snapshot to make a cluster from, instead of the survivor's data.
type Snapshot struct {
	Name    string          `json:"name,omitempty"` // name in the host's store; empty if File is set
	File    string          `json:"file,omitempty"` // path on the host; empty if Name is set
	Taken   time.Time       `json:"takenAt,omitzero"`
	Cluster record.MemberID `json:"clusterID,omitzero"` // ID of the saved cluster; 0 if unknown

	record.Contents

	Size   int64           `json:"size"`     // size of the database with its checksum, in bytes
	SHA256 string          `json:"sha256"`   // hash of the stored object, or of the file
	Origin string          `json:"origin"`   // text about whether this is the snapshot that was saved
	Member record.MemberID `json:"memberID"` // ID of the only member of the new cluster
}

// String returns the name or the path.
func (s Snapshot) String() string {
	if s.File != "" {
		return s.File
	}
	return s.Name
}

// maxPath bounds a path, in bytes, as the kernel does.
const maxPath = 4096

func (s Snapshot) check() error {
	sum, err := hex.DecodeString(s.SHA256)
	switch {
	case (s.Name == "") == (s.File == ""), len(s.Name) > maxPath, len(s.File) > maxPath:
		return errors.New("it names no snapshot or two of them, or the name is too long")
	case s.File != "" && !filepath.IsAbs(s.File):
		return errors.New("the path of its snapshot is not absolute")
	case err != nil || len(sum) != 32 || s.Size <= sha256.Size || s.Revision <= 0 || s.Member == 0:
		return errors.New("its snapshot is invalid")
	}
	return nil
}

// oldCluster returns the ID of the cluster that the new one replaces: from the hosts' data, from an agent's record, or
// from the snapshot; 0 if unknown.
func (s Snapshot) oldCluster(all []Facts) record.MemberID {
	if id := clusterOf(all); id != 0 {
		return id
	}
	for _, f := range all {
		if f.Known != 0 {
			return f.Known
		}
	}
	return s.Cluster
}
