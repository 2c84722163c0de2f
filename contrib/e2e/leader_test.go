// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import "context"

// memberID returns the member ID of a host.
func (w *world) memberID(h *host) uint64 {
	for _, m := range w.members() {
		if m.PeerURLs[0] == h.Options.PeerURL {
			return m.ID
		}
	}
	return 0
}

// leader returns the member ID of the leader, as reported by this host's etcd; 0 if there is none.
func (w *world) leader(h *host) uint64 {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	status, err := h.etcd.Status(ctx, h.etcd.Endpoints()[0])
	if err != nil {
		return 0
	}
	return status.Leader
}

// lead transfers leadership to a voter.
func (w *world) lead(h *host) {
	w.t.Helper()
	w.eventually(h.Options.Name+" leads", func() bool {
		for _, other := range w.hosts {
			ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
			_, _ = other.etcd.MoveLeader(ctx, w.memberID(h)) // only the leader can do it
			cancel()
		}
		return w.leader(h) == w.memberID(h)
	})
}
