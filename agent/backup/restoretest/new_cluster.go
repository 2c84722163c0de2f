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
	memberName = "restoreTest"
	// nowhere is the member's advertised address. No process dials it, because the member is alone.
	nowhere = "http://127.0.0.1:1"
)

// newCluster turns a database into the data directory of a new cluster of one member. Besides the database, etcd finds
// only a log with one entry, which adds that member.
func newCluster(dir, file string) error {
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

// id returns an ID that no other cluster or member has.
func id() uint64 {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return binary.BigEndian.Uint64(b)
}

// forget removes the original cluster's membership from a database, and turns authentication off: the password may have
// changed since the snapshot.
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
