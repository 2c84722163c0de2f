// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package restoretest

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/quorumd/quorumd/agent/etcddb"
)

const (
	memberName = "drill"
	// nowhere is what the member calls its address. Nobody dials it: it is alone.
	nowhere = "http://127.0.0.1:1"
)

// found makes of a database the data directory of a cluster of one member that is to start for the first time: all that
// etcd finds beside the keys is a log whose one entry adds that member.
func found(dir, file string) error {
	if err := forget(file); err != nil {
		return err
	}
	cluster, member := id(), id()
	state, added, err := etcddb.FirstLog(member, memberName, nowhere)
	if err != nil {
		return err
	}
	metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: &member, ClusterID: &cluster})
	if err != nil {
		return err
	}
	log, err := wal.Create(zap.NewNop(), filepath.Join(dir, "member", "wal"), metadata)
	if err != nil {
		return err
	}
	return errors.Join(log.Save(state, []*raftpb.Entry{added}), log.Close())
}

// id gives one that no other cluster or member has.
func id() uint64 {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return binary.BigEndian.Uint64(b)
}

// forget takes out of a database what is of the cluster of which it was taken, and that a password is needed: that of
// today may be another.
func forget(file string) error {
	db, err := etcddb.Open(file, bolt.Options{NoSync: true, NoFreelistSync: true})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		if auth := tx.Bucket([]byte(etcddb.Auth)); auth != nil {
			if err := auth.Put([]byte(etcddb.AuthEnabled), []byte{0}); err != nil {
				return err
			}
		}
		return etcddb.Forget(tx)
	})
	return errors.Join(err, db.Close())
}
