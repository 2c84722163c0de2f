// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcddb

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Forget removes the membership from a database: the members, and the position in their log. The keys stay. It returns
// an error if the database has no bucket "meta".
func Forget(tx *bbolt.Tx) error {
	for _, name := range []string{Members, MembersRemoved} {
		if tx.Bucket([]byte(name)) != nil {
			if err := tx.DeleteBucket([]byte(name)); err != nil {
				return err
			}
		}
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	meta := tx.Bucket([]byte(Meta))
	if meta == nil {
		return fmt.Errorf("it has no bucket %q", Meta)
	}
	return errors.Join(meta.Delete([]byte(ConsistentIndex)), meta.Delete([]byte(Term)), meta.Delete([]byte(ConfState)))
}

// FirstLog returns the log of a new cluster. Like the log that etcd creates, it has one entry, which adds the only
// member.
func FirstLog(member uint64, name, peerURL string) (*raftpb.HardState, *raftpb.Entry, error) {
	who, err := json.Marshal(struct { // etcd's format of a member
		ID       uint64   `json:"id"`
		PeerURLs []string `json:"peerURLs"`
		Name     string   `json:"name"`
	}{member, []string{peerURL}, name})
	if err != nil {
		return nil, nil, err
	}
	added, err := proto.Marshal(&raftpb.ConfChange{
		Type: raftpb.ConfChangeAddNode.Enum(), NodeId: &member, Context: who,
	})
	if err != nil {
		return nil, nil, err
	}
	return &raftpb.HardState{Term: new(uint64(1)), Vote: &member, Commit: new(uint64(1))}, &raftpb.Entry{
		Term: new(uint64(1)), Index: new(uint64(1)), Type: raftpb.EntryConfChange.Enum(), Data: added,
	}, nil
}
