// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import "time"

// hung returns how many background reads are long overdue, including those that start a program. Each type of read
// counts at most once.
func (o *Observer) hung() (n int) {
	j := o.judge
	for _, l := range []interface{ Hung(now time.Duration) bool }{
		&o.clock, &o.binary, &o.next, &o.data, &o.spool, &o.renewed, &o.limit, &o.process,
		&o.files, &o.peers, &o.hashes.look,
		&j.shown, &j.etcd, &j.asks.look,
	} {
		if l.Hung(o.opt.Now()) {
			n++
		}
	}
	for _, source := range o.opt.Readings {
		if source.hung(o.opt.Now()) {
			n++
		}
	}
	return n
}
