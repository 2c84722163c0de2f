// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"syscall"
)

// blockSize is the number of bytes that LaneDirect writes at once. It is a multiple of the sector size of every disk
// etcd runs on, as O_DIRECT requires, and equals the usual page size.
const blockSize = 4096

// fillBlock fills a block with content that no disk can compress or deduplicate: the sequence number, random bytes, and
// CRC-32C over both.
func fillBlock(b []byte, seq uint64) {
	binary.LittleEndian.PutUint64(b, seq)
	fillRandom(b[8 : blockSize-4])
	binary.LittleEndian.PutUint32(b[blockSize-4:], checksum(b))
}

// checkBlock returns EBADMSG for a block that is not the one written with seq: damaged, or an older one because an
// acknowledged write never arrived.
func checkBlock(b []byte, seq uint64) error {
	if binary.LittleEndian.Uint64(b) != seq || binary.LittleEndian.Uint32(b[blockSize-4:]) != checksum(b) {
		return syscall.EBADMSG
	}
	return nil
}

func checksum(b []byte) uint32 {
	return crc32.Checksum(b[:blockSize-4], crc32.MakeTable(crc32.Castagnoli))
}

func fillRandom(b []byte) {
	var word [8]byte
	for len(b) > 0 {
		binary.LittleEndian.PutUint64(word[:], rand.Uint64())
		b = b[copy(b, word[:]):]
	}
}
