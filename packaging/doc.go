// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package packaging holds the contents of the deb and the rpm, and the tests of both. The packages promise:
//
//   - The same sources, version and SOURCE_DATE_EPOCH give the same bytes.
//   - Install, upgrade, removal and purge leave a running etcd alone: the same process, no failed write.
//   - quorumd runs as its own user, without any capability. polkit lets it delay a shutdown and,
//     by a rule that root installs, reboot the machine, and nothing else. Processes of etcd's user access etcd's files.
//   - A root helper does what only root may do. It accepts a few orders from quorumd, and takes everything else from
//     root's configuration. No process of root, including systemd, opens, follows, copies or runs a file that
//     quorumd can write.
//   - etcd starts at boot without quorumd, even after the package is removed.
//
// build makes the packages, and tools pins the programs that it needs. The tests that boot a host have the build tag
// packages; `make test-packages` runs them, as root.
package packaging
