// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/proto"
)

const (
	headSize    = 1 << 20 // bytes read of a WAL file; checksum and metadata take less than 200
	headRecords = 4       // each file begins with a checksum and the metadata
)

// walMetadata returns the member and cluster ID in a WAL file.
func walMetadata(path string) (member, cluster uint64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the write-ahead log: %w", err)
	}
	defer file.Close() // an error does not matter: the file was only read
	info, err := file.Stat()
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the write-ahead log: %w", err)
	}
	member, cluster, err = metadata(wal.NewDecoder(head{io.LimitReader(file, headSize), headInfo{info}}))
	if err != nil {
		return 0, 0, fmt.Errorf("cannot read the write-ahead log %s: %w", path, err)
	}
	return member, cluster, nil
}

func metadata(records wal.Decoder) (member, cluster uint64, err error) {
	for range headRecords {
		var record walpb.Record
		if err := records.Decode(&record); err != nil {
			return 0, 0, err
		}
		switch record.GetType() {
		case wal.CrcType:
			records.UpdateCRC(record.GetCrc())
		case wal.MetadataType:
			return parseMetadata(record.GetData())
		}
	}
	return 0, 0, errors.New("not a write-ahead log")
}

// parseMetadata returns the IDs in a metadata record.
func parseMetadata(data []byte) (member, cluster uint64, err error) {
	var who etcdserverpb.Metadata
	if err := proto.Unmarshal(data, &who); err != nil {
		return 0, 0, err
	}
	if who.GetNodeID() == 0 || who.GetClusterID() == 0 {
		return 0, 0, errors.New("it contains no member ID or no cluster ID")
	}
	return who.GetNodeID(), who.GetClusterID(), nil
}

// head is the beginning of a WAL file. It reports the size of that beginning instead of the file's size, because etcd's
// decoder may allocate as much memory for one record as the file is large.
type head struct {
	io.Reader
	info fs.FileInfo
}

func (h head) FileInfo() (fs.FileInfo, error) { return h.info, nil }

// headInfo is a file's metadata, with the size of its beginning only.
type headInfo struct{ fs.FileInfo }

func (i headInfo) Size() int64 { return min(i.FileInfo.Size(), headSize) }
