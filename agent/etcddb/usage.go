// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcddb

import (
	"bytes"
	"cmp"
	"context"
	"hash/maphash"
	"os"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// Usage is what fills a database. Sizes are in bytes.
type Usage struct {
	Size int64 `json:"size"` // the size of the database, which etcd compares with its quota
	Free int64 `json:"free"` // what a defragmentation would free now
	// Live is the size of the newest values with their keys, and History that of older and deleted ones. A
	// compaction with a defragmentation would free most of the history.
	Live    int64 `json:"live"`
	History int64 `json:"history"`
	// Prefixes are the prefixes of keys with the most bytes, largest first, and Omitted is what the others add up
	// to. Its Prefix is empty.
	Prefixes []PrefixUsage `json:"prefixes"`
	Omitted  PrefixUsage   `json:"omitted"`
}

// PrefixUsage is what the keys with one prefix add to a database. Sizes are in bytes.
type PrefixUsage struct {
	Prefix  string `json:"prefix"`  // invalid UTF-8 is replaced
	Keys    int64  `json:"keys"`    // keys that exist
	Changes int64  `json:"changes"` // revisions of these keys that are stored, the newest ones included
	Live    int64  `json:"live"`
	History int64  `json:"history"`
}

func (p *PrefixUsage) add(o PrefixUsage) {
	p.Keys, p.Changes, p.Live, p.History = p.Keys+o.Keys, p.Changes+o.Changes, p.Live+o.Live, p.History+o.History
}

const (
	prefixesShown = 20 // maximum number of prefixes in a Usage
	// prefixesCounted is the maximum number of prefixes that are counted separately. They need about 300 MB of memory.
	prefixesCounted = 1 << 20
	prefixBytes     = 128 // longer prefixes are cut
)

// UsageOf opens a database as Inspect does, and returns what fills it. A prefix consists of the first depth parts of a
// key's name, each with the separator "/" after it; depth must be positive.
func UsageOf(ctx context.Context, file *os.File, depth int) (u Usage, err error) {
	err = view(file, func(tx *bbolt.Tx, used int64) (err error) {
		u, err = usage(ctx, tx, depth, prefixesCounted)
		u.Size, u.Free = tx.Size(), tx.Size()-used
		return err
	})
	return u, err
}

// usage is like UsageOf. most is the maximum number of prefixes that it counts separately.
func usage(ctx context.Context, tx *bbolt.Tx, depth, most int) (u Usage, err error) {
	keys, _, err := buckets(tx)
	if err != nil {
		return u, err
	}
	newest := map[uint64]change{}
	seed, none := maphash.MakeSeed(), func(int64) {}
	if err := each(ctx, keys, seed, none, func(at change, _, _ []byte) { newest[at.key] = at }); err != nil {
		return u, err
	}
	by := map[string]*PrefixUsage{}
	err = each(ctx, keys, seed, none, func(at change, k, v []byte) {
		name, _ := nameOfKey(v) // each has checked the value; an entry that only raises the revision has no name
		prefix := prefixOf(name, depth)
		to := by[prefix]
		if to == nil && len(by) < most {
			to = &PrefixUsage{Prefix: prefix}
			by[prefix] = to
		}
		one := PrefixUsage{Changes: 1, History: int64(len(k) + len(v))}
		if newest[at.key] == at && !at.tombstone {
			one.Keys, one.Live, one.History = 1, one.History, 0
		}
		if at.unnamed { // it only raises the revision
			one.Keys = 0
		}
		u.Live, u.History = u.Live+one.Live, u.History+one.History
		if to == nil {
			to = &u.Omitted
		}
		to.add(one)
	})
	for _, p := range by {
		u.Prefixes = append(u.Prefixes, *p)
	}
	slices.SortFunc(u.Prefixes, func(a, b PrefixUsage) int {
		return cmp.Or(cmp.Compare(b.Live+b.History, a.Live+a.History), cmp.Compare(a.Prefix, b.Prefix))
	})
	for i := prefixesShown; i < len(u.Prefixes); i++ {
		u.Omitted.add(u.Prefixes[i])
	}
	u.Prefixes = u.Prefixes[:min(len(u.Prefixes), prefixesShown)]
	return u, err
}

// prefixOf returns the first parts of a key's name, with the separator after them: of "/registry/pods/default/a" at
// depth 2 "/registry/pods/". A name with fewer parts has a shorter prefix.
func prefixOf(name []byte, depth int) string {
	end := 0
	for range depth {
		from := end
		if end == 0 && bytes.HasPrefix(name, []byte("/")) {
			from = 1
		}
		i := bytes.IndexByte(name[from:], '/')
		if i < 0 {
			break
		}
		end = from + i + 1
	}
	if end == 0 && bytes.HasPrefix(name, []byte("/")) {
		end = 1
	}
	return strings.ToValidUTF8(string(name[:min(end, prefixBytes)]), "\uFFFD")
}
