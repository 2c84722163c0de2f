// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Command small is etcd with WAL segments of 4 MiB. etcd preallocates two segments of 64 MB for every member; tests run
// two dozen members at once, and have to fit into a gigabyte of disk space.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

func main() {
	wal.SegmentSizeBytes = 4 << 20
	etcdmain.Main(os.Args)
}
