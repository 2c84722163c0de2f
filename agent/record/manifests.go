// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Manifests are the hashes of the manifests of the last snapshots. A store cannot prove that a snapshot is the
// one that was saved: anyone with write access to the store can replace it. This record has no lease.
type Manifests struct {
	Version int        `json:"version"`
	Saved   []Manifest `json:"saved"` // oldest first
	Extra   Extra      `json:"-"`
}

// Manifest is the hash of a snapshot's manifest, recorded when the snapshot is saved.
type Manifest struct {
	Name   string    `json:"name"`   // name of the snapshot
	SHA256 string    `json:"sha256"` // hash of the stored manifest, in hexadecimal
	Saved  time.Time `json:"saved"`
	Host   string    `json:"host"` // the name of the host whose agent saved the snapshot
}

// Bounds of the recorded manifests.
const (
	MaxManifests     = 200
	maxManifestBytes = 48 << 10
	manifestBytes    = 160 // bytes of one entry without its names
)

// Manifests returns the key of the manifests' hashes. It sorts before the keys that are read in every round.
func (k Keys) Manifests() string { return k.prefix + "backup-manifests" }

// Add returns the manifests with more added, oldest first. It skips invalid entries. If a snapshot has several entries,
// the first one is kept. If there are too many entries, the oldest are dropped.
func (m Manifests) Add(more ...Manifest) Manifests {
	all := slices.Clone(m.Saved)
	for _, one := range more {
		if one.check() == nil && !slices.ContainsFunc(all, func(had Manifest) bool { return had.Name == one.Name }) {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b Manifest) int { return a.Saved.Compare(b.Saved) })
	kept, left := len(all), maxManifestBytes
	for kept > 0 && len(all)-kept < MaxManifests {
		if left -= all[kept-1].bytes(); left < 0 {
			break
		}
		kept--
	}
	m.Saved = all[kept:]
	return m
}

// bytes returns the maximum size of an entry in JSON.
func (m Manifest) bytes() int { return manifestBytes + jsonLen(m.Name) + jsonLen(m.Host) }

// check returns an error if the manifest is one that no agent would have recorded.
func (m Manifest) check() error {
	sum, err := hex.DecodeString(m.SHA256)
	if m.Name == "" || err != nil || len(sum) != 32 {
		return errors.New("it lacks a snapshot name or a valid SHA-256")
	}
	return nil
}

// manifestsWithin applies the bounds to a copy of the list.
func manifestsWithin(v reflect.Value, manifests []Manifest, strictly bool) error {
	if len(manifests) > MaxManifests {
		return fmt.Errorf("%d manifests; the limit is %d", len(manifests), MaxManifests)
	}
	held := slices.Clone(manifests)
	for i := range held {
		err := within(&held[i], strictly)
		if err == nil {
			err = held[i].check()
		}
		if err != nil {
			return fmt.Errorf("manifest %d: %w", i, err)
		}
	}
	v.Set(reflect.ValueOf(held))
	return nil
}
