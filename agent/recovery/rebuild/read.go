// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/quorumd/quorumd/agent/etcddb"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
)

// lockWait is how long to wait for a database that an etcd has open.
const lockWait = 100 * time.Millisecond

// maxMembers is the maximum number of members that a database may list.
const maxMembers = 64

// Read returns the content of a data directory, and changes nothing. While an etcd has the database open, the result
// lacks the revision and the members.
func Read(p Place) (recovery.Log, error) {
	if sizeOf(p.log(), ".wal") == 0 && !exists(p.database()) {
		return recovery.Log{Empty: true}, nil
	}
	l := recovery.Log{Database: sizeOf(p.snap(), "db"), Bytes: sizeOf(p.log(), ".wal")}
	db := unreadable()
	err := withDatabase(p.database(), false, func(tx *bolt.Tx) (err error) {
		db = appliedOf(tx)
		l.Revision = revisionOf(tx)
		l.Members, err = membersOf(tx)
		return err
	})
	if err != nil && !errors.Is(err, berrors.ErrTimeout) {
		return recovery.Log{}, fmt.Errorf("cannot read the database %s: %w", p.database(), err)
	}
	h, err := readLog(p, db)
	if err != nil {
		return recovery.Log{}, err
	}
	l.Cluster, l.Member, l.Commit = record.MemberID(h.cluster), record.MemberID(h.member), h.state.GetCommit()
	l.Term, l.Index = h.last()
	return l, nil
}

// revisionOf returns the newest revision of a database, from the last key of the bucket of revisions.
func revisionOf(tx *bolt.Tx) int64 {
	b := tx.Bucket([]byte(etcddb.Keys))
	if b == nil {
		return 0
	}
	key, _ := b.Cursor().Last()
	return etcddb.RevisionOf(key)
}

// membersOf returns the members that a database lists.
func membersOf(tx *bolt.Tx) ([]recovery.Member, error) {
	b := tx.Bucket([]byte(etcddb.Members))
	if b == nil {
		return nil, nil
	}
	var list []recovery.Member
	err := b.ForEach(func(_, value []byte) error {
		var m struct {
			ID       uint64   `json:"id"`
			PeerURLs []string `json:"peerURLs"`
			Learner  bool     `json:"isLearner"`
			Name     string   `json:"name"`
		}
		if err := json.Unmarshal(value, &m); err != nil {
			return err
		}
		if len(list) == maxMembers {
			return fmt.Errorf("it lists more than %d members", maxMembers)
		}
		member := recovery.Member{ID: record.MemberID(m.ID), Name: m.Name, Learner: m.Learner}
		if len(m.PeerURLs) > 0 {
			member.PeerURL = m.PeerURLs[0]
		}
		list = append(list, member)
		return nil
	})
	return list, err
}
