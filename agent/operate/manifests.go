// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/hoststate"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/round"
)

// RememberSnapshots copies the hashes of manifests recorded in etcd to this host's disk, in the background. If etcd's
// data is lost, these hashes prove which snapshots were saved.
func (o *Operator) RememberSnapshots(ctx context.Context, r *round.Round) {
	b := r.Backup
	if b == nil || b.ManifestSHA256 == "" || r.View.Cluster.Foreign() ||
		slices.ContainsFunc(o.opt.Files.Manifests(), func(m record.Manifest) bool { return m.Name == b.Name }) {
		return
	}
	last := record.Manifest{Name: b.Name, SHA256: b.ManifestSHA256, Saved: b.Saved, Host: b.Host}
	o.remember.Refresh(ctx, o.opt.Now, dueEvery, reportTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, o.saveManifests(ctx, last)
	})
}

// saveManifests saves the manifest hashes recorded in etcd, and those in more, on this host.
func (o *Operator) saveManifests(ctx context.Context, more ...record.Manifest) error {
	recorded, _, err := o.manifests(ctx)
	if err == nil {
		more = append(recorded.Saved, more...)
	}
	err = errors.Join(err, hoststate.Within(ctx, func() error { return o.opt.Files.NoteManifests(more...) }))
	if err != nil {
		o.opt.Logger.Warn("cannot save the manifest hashes on this host", "error", err)
	}
	return err
}

// refreshManifests saves the recorded hashes on this host before a job compares a snapshot with them. Without a quorum,
// the job uses the hashes saved earlier.
func (o *Operator) refreshManifests(ctx context.Context) {
	if r := o.opt.Rounds.Current(); r == nil || !r.View.Cluster.Reachable || r.View.Cluster.Foreign() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, o.opt.Config.Timing.CallTimeout)
	defer cancel()
	_ = o.saveManifests(ctx) // saveManifests logs errors
}

// manifests returns the hashes recorded in etcd, and the revision of that record.
func (o *Operator) manifests(ctx context.Context) (record.Manifests, int64, error) {
	found, err := o.opt.Etcd.Read(ctx, cluster.Span{Start: o.keys.Manifests()})
	if err != nil || len(found.Pairs) != 1 {
		return record.Manifests{}, 0, err
	}
	at := found.Pairs[0].ModRevision
	m, err := record.Decode[record.Manifests](found.Pairs[0].Value)
	if err != nil && !errors.Is(err, record.ErrVersion) {
		return record.Manifests{}, at, nil // no agent wrote this record, so it will be overwritten
	}
	return m, at, err
}

// addManifest returns the conditions and operations that add a manifest to those in etcd, for the transaction that
// records its snapshot.
func (o *Operator) addManifest(one record.Manifest) extraWrites {
	return func(ctx context.Context) ([]clientv3.Cmp, []clientv3.Op, error) {
		all, at, err := o.manifests(ctx)
		if err != nil {
			return nil, nil, err
		}
		value, err := record.Encode(all.Add(one))
		if err != nil {
			return nil, nil, err
		}
		key := o.keys.Manifests()
		return []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", at)},
			[]clientv3.Op{clientv3.OpPut(key, string(value))}, nil
	}
}
