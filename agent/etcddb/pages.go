// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package etcddb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// The format of bbolt's file (go.etcd.io/bbolt/internal/common).
const (
	headerBytes   = 16 // header of a page: its ID, flags, number of elements, and number of following pages
	elementBytes  = 16
	bucketBytes   = 16 // header of a bucket's value: its root page, and a sequence number
	metaBytes     = 56 // bytes that the checksum of a meta page covers
	boltMagic     = 0xED0CDAED
	boltVersion   = 2
	branchPage    = 0x01
	leafPage      = 0x02
	freelistPage  = 0x10
	bucketElement = 0x01
	noFreelist    = ^uint64(0)
	manyFree      = 0xFFFF // if the header has this count, the first entry is the number of free pages
	minPageSize   = 512
	maxPageSize   = 16 << 20
	// maxDepth exceeds the depth of every valid database, because each branch has at least two elements.
	maxDepth = 64
)

// pages checks the pages of a database.
type pages struct {
	file     io.ReaderAt
	pageSize int64
	high     uint64   // ID of the first page after the last one in use
	seen     []uint64 // one bit per page, set once the page was reached
	next     []uint64 // children of the pages checked so far in the current level
}

// CheckPages returns an error if a page is reached twice, or if its header or elements are invalid. bbolt does not
// check references: if a page were its own child, bbolt would exhaust the memory. CheckPages reads each page once, and
// the pages of a level in the order of the file. In any other order, a database of some GiB would take hours on a
// rotating disk.
func CheckPages(file io.ReaderAt, size int64, pageSize int) error {
	if _, err := InUse(file, size, pageSize); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// InUse checks the same as CheckPages, and returns the size of the pages in use, in bytes. Its errors are not
// [ErrDamaged], whose text is about a snapshot.
func InUse(file io.ReaderAt, size int64, pageSize int) (int64, error) {
	if pageSize < minPageSize || pageSize > maxPageSize || pageSize&(pageSize-1) != 0 {
		return 0, fmt.Errorf("invalid page size of %d bytes", pageSize)
	}
	p := &pages{file: file, pageSize: int64(pageSize)}
	root, free, err := p.meta(size)
	if err != nil {
		return 0, err
	}
	p.seen = make([]uint64, p.high/64+1)
	if free != noFreelist {
		if err := p.freelist(free); err != nil {
			return 0, err
		}
	}
	for level, depth := []uint64{root}, 1; len(level) > 0; level, depth = p.next, depth+1 {
		if depth > maxDepth {
			return 0, fmt.Errorf("page %d is %d pages from the root", level[0], depth)
		}
		slices.Sort(level)
		p.next = nil
		for _, id := range level {
			if err := p.visit(id); err != nil {
				return 0, err
			}
		}
	}
	used := 2 // the two meta pages
	for _, word := range p.seen {
		used += bits.OnesCount64(word)
	}
	return int64(used) * p.pageSize, nil
}

// meta returns the root page and the freelist page of the newest valid meta page, which bbolt uses, and sets p.high.
func (p *pages) meta(size int64) (root, free uint64, err error) {
	var newest uint64
	err = errors.New("no valid meta page")
	for i := range int64(2) {
		m := make([]byte, metaBytes+8)
		if _, failed := p.file.ReadAt(m, i*p.pageSize+headerBytes); failed != nil {
			return 0, 0, failed
		}
		sum := fnv.New64a()
		sum.Write(m[:metaBytes])
		if le32(m) != boltMagic || le32(m[4:]) != boltVersion || le64(m[metaBytes:]) != sum.Sum64() {
			continue
		}
		if at := le64(m[48:]); err != nil || at > newest {
			newest, root, free, p.high, err = at, le64(m[16:]), le64(m[32:]), le64(m[40:]), nil
		}
	}
	if err == nil && p.high > uint64(size/p.pageSize) { //nolint:gosec // both are positive
		err = fmt.Errorf("its meta page counts %d pages, more than fit in its %d bytes", p.high, size)
	}
	return root, free, err
}

// page returns a page's header and size, and marks the page as reached. It is an error to reach a page twice.
func (p *pages) page(id uint64) (head []byte, size int64, err error) {
	if id < 2 || id >= p.high {
		return nil, 0, fmt.Errorf("page %d is out of range: there are %d pages", id, p.high)
	}
	head = make([]byte, headerBytes)
	if err := p.read(head, id, 0); err != nil {
		return nil, 0, err
	}
	over := uint64(le32(head[12:]))
	if le64(head) != id || over >= p.high-id {
		return nil, 0, fmt.Errorf("page %d has the ID %d and %d following pages", id, le64(head), over)
	}
	for i := id; i <= id+over; i++ {
		if p.seen[i/64]&(1<<(i%64)) != 0 {
			return nil, 0, fmt.Errorf("page %d is reached twice", i)
		}
		p.seen[i/64] |= 1 << (i % 64)
	}
	return head, int64(over+1) * p.pageSize, nil //nolint:gosec // it is less than the file
}

// freelist checks that the list of free pages fits into its page.
func (p *pages) freelist(id uint64) error {
	head, size, err := p.page(id)
	if err != nil {
		return err
	}
	count, most := uint64(le16(head[10:])), uint64(size-headerBytes)/8 //nolint:gosec // a page is larger
	if count == manyFree {
		first := make([]byte, 8)
		if err := p.read(first, id, headerBytes); err != nil {
			return err
		}
		count, most = le64(first), most-1
	}
	if le16(head[8:]) != freelistPage || count > most {
		return fmt.Errorf("page %d lists %d free pages, but has room for %d", id, count, most)
	}
	return nil
}

// visit checks a page of a tree, and records its children.
func (p *pages) visit(at uint64) error {
	head, size, err := p.page(at)
	if err != nil {
		return err
	}
	kind, count := le16(head[8:]), int(le16(head[10:]))
	if kind != branchPage && kind != leafPage || kind == branchPage && count == 0 {
		return fmt.Errorf("page %d is neither a leaf nor a branch with elements", at)
	}
	if headerBytes+elementBytes*int64(count) > size {
		return fmt.Errorf("page %d claims %d elements, which do not fit into its %d bytes", at, count, size)
	}
	elements := make([]byte, elementBytes*count)
	if err := p.read(elements, at, headerBytes); err != nil {
		return err
	}
	if kind == branchPage {
		return p.branch(at, elements, size)
	}
	buckets, err := leaf(elements, size)
	if err != nil {
		return fmt.Errorf("page %d: %w", at, err)
	}
	for _, b := range buckets {
		if err := p.bucket(at, b); err != nil {
			return fmt.Errorf("page %d: %w", at, err)
		}
	}
	return nil
}

// branch checks the keys of a branch page, and records its children.
func (p *pages) branch(at uint64, elements []byte, size int64) error {
	for i := 0; i < len(elements); i += elementBytes {
		e := elements[i:]
		if headerBytes+int64(i)+int64(le32(e))+int64(le32(e[4:])) > size {
			return fmt.Errorf("page %d: a key ends beyond the page", at)
		}
		if err := p.child(at, le64(e[8:])); err != nil {
			return err
		}
	}
	return nil
}

// child records a page to check in the next level.
func (p *pages) child(of uint64, id uint64) error {
	if uint64(len(p.next)) >= p.high {
		return fmt.Errorf("page %d: it has more children than there are pages", of)
	}
	p.next = append(p.next, id)
	return nil
}

// value is the position and size of a bucket's value in its page.
type value struct{ from, size int64 }

// leaf checks the elements of a leaf page, or of an inline page in a bucket's value, and returns the buckets.
func leaf(elements []byte, size int64) (buckets []value, err error) {
	var sum int64
	for i := 0; i < len(elements); i += elementBytes {
		e := elements[i:]
		key, length := int64(le32(e[8:])), int64(le32(e[12:]))
		from := headerBytes + int64(i) + int64(le32(e[4:])) + key
		if sum += key + length; from+length > size || sum > size {
			return nil, errors.New("a key or value ends beyond the page, or keys and values overlap")
		}
		if le32(e)&bucketElement != 0 {
			buckets = append(buckets, value{from, length})
		}
	}
	return buckets, nil
}

// bucket records the root of a bucket. If the bucket is inline, it checks the bucket's only page, which is in its
// value.
func (p *pages) bucket(at uint64, v value) error {
	head := make([]byte, bucketBytes+headerBytes)
	if v.size < bucketBytes {
		return errors.New("a bucket has no root")
	}
	head = head[:min(v.size, int64(len(head)))]
	if err := p.read(head, at, v.from); err != nil {
		return err
	}
	if root := le64(head); root != 0 {
		return p.child(at, root)
	}
	if len(head) < bucketBytes+headerBytes || le16(head[bucketBytes+8:]) != leafPage {
		return errors.New("an inline bucket has no page")
	}
	size := v.size - bucketBytes
	elements := make([]byte, elementBytes*int(le16(head[bucketBytes+10:])))
	if headerBytes+int64(len(elements)) > size {
		return errors.New("an inline bucket has more elements than fit into its value")
	}
	if err := p.read(elements, at, v.from+bucketBytes+headerBytes); err != nil {
		return err
	}
	inner, err := leaf(elements, size)
	if err == nil && len(inner) > 0 {
		err = errors.New("an inline bucket has sub-buckets")
	}
	return err
}

// read reads from a page that is known to be in the file.
func (p *pages) read(into []byte, id uint64, from int64) error {
	_, err := p.file.ReadAt(into, int64(id)*p.pageSize+from) //nolint:gosec // the page is in the file
	return err
}

func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// Open opens a database that no etcd has open, after a check of its pages.
func Open(path string, o bbolt.Options) (*bbolt.DB, error) {
	readOnly := o
	readOnly.ReadOnly = true // when read-only, bbolt reads only the meta pages on opening
	db, err := bbolt.Open(path, 0, &readOnly)
	if err != nil {
		return nil, err
	}
	if err := checkOpen(path, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if o.ReadOnly {
		return db, nil
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return bbolt.Open(path, 0, &o)
}

func checkOpen(path string, db *bbolt.DB) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() // an error does not matter: the file was only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return CheckPages(file, info.Size(), db.Info().PageSize)
}
