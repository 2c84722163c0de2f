// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package packaging holds the contents of the deb and the rpm, and the tests of both. The packages promise:
//
//   - The same sources, version and SOURCE_DATE_EPOCH give the same bytes.
//   - Install, upgrade, removal and purge leave a running etcd alone: the same process, no failed write.
//   - quorumd runs as a user of its own without a single capability. polkit lets it delay a shutdown and,
//     by a rule that root installs, reboot the machine, and nothing else; etcd's user accesses etcd's files.
//   - A root helper does what only root may do, on few orders of quorumd's and by root's configuration. Neither
//     systemd nor anything else of root's opens, follows, copies or runs what quorumd can write.
//   - etcd starts after a boot without quorumd, and also once the package is gone.
//
// build makes the packages, tools pins what it needs. The tests that boot a host have the build tag packages and run by
// `make test-packages`, as root.
package packaging
