// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package packaging holds what the deb and the rpm are made of, and the tests of both. The packages promise:
//
//   - The same sources, version and SOURCE_DATE_EPOCH give the same bytes.
//   - Install, upgrade, removal and purge leave a running etcd alone: the same process, no failed write.
//   - quorumd runs as a user of its own without a single capability. polkit lets it start and stop etcd's unit,
//     start its hooks, delay a shutdown and reboot the machine, and no more; what touches etcd's files is etcd's user.
//   - etcd starts after a boot without quorumd, and also once the package is gone.
//
// build makes the packages, tools pins what it needs. The tests that boot a host have the build tag packages and
// run by `make test-packages`, as root.
package packaging
