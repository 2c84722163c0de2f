// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package qualify examines a machine before it is to carry etcd: how long its disk takes to make a write durable, alone
// and under several writers at once, and what etcd's guidance says of that.
//
// It promises that it needs neither etcd nor quorumd; that only children touch the disk, so that one which hangs is
// told and not waited for; that nothing stays on the disk, however the examination ends, unless it says so; and that
// too few writes to prove anything are [Undecided], not passed.
package qualify
