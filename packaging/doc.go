// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package packaging holds what the deb and the rpm are made of, and the tests of both. The packages promise:
//
//   - The same sources, version and SOURCE_DATE_EPOCH give the same bytes.
//   - Install, upgrade, removal and purge leave a running etcd alone: the same process, no failed write.
//   - quorumd runs as a user of its own without a single capability. polkit lets it delay a shutdown and,
//     by a rule that root installs, reboot the machine, and no more; what touches etcd's files is etcd's user.
//   - What only root may do a helper of root's does, at a few words of quorumd's and from root's configuration. Neither
//     systemd nor anything else of root's opens, follows, copies or runs what quorumd can write.
//   - etcd starts after a boot without quorumd, and also once the package is gone.
//
// build makes the packages, tools pins what it needs. The tests that boot a host have the build tag packages and
// run by `make test-packages`, as root.
package packaging
