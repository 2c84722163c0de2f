// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package packaging holds the contents of the deb and the rpm, and the tests of both. The packages promise:
//
//   - Builds from the same sources, version and SOURCE_DATE_EPOCH are identical.
//   - Install, upgrade, removal and purge do not affect a running etcd: its process stays the same, and no write fails.
//   - quorumd runs as its own user, without any capability. polkit lets it delay a shutdown and, if root installs a
//     further rule, reboot the machine. Processes of etcd's user access etcd's files.
//   - A root helper performs the actions that only root may perform. It accepts a few orders from quorumd, and reads
//     everything else from root's configuration. No process of root, including systemd, opens, follows, copies or runs
//     a file that quorumd can write.
//   - etcd starts at boot without quorumd, even after the package is removed.
//
// The directory build contains the program that builds the packages. The module in tools pins the programs that the
// build needs. The tests that boot a host have the build tag packages; `make test-packages` runs them, as root.
package packaging
