// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package control is the door to a running quorumd: an HTTP/JSON API on a unix socket, the Go
// client for it, and the documents both sides speak.
//
// What it promises:
//
//   - Everyone on the host may look. Only root, the daemon's own user and the members of one
//     group may change anything; the kernel says who is calling.
//   - The status is answered from memory, at once, whatever etcd or the disks are doing.
//   - Every refusal is one document, {"error": {"code", "message", "hint"}}, and the hint says
//     what to do.
//   - No caller can take all of it: sizes, times, connections and requests have bounds, and those who may only
//     look leave places for the group, as the group does for root.
//   - A socket that a live daemon serves is never taken away from it.
//
// It knows nothing of how things are decided. It asks a Backend and passes on the answer.
//
// With curl:
//
//	curl --unix-socket /run/quorumd/control.sock http://quorumd/v1/status
package control

// APIVersion is the version of the documents here. Fields may be added under the same version;
// none changes its meaning or goes away.
const APIVersion = "v1"

// DefaultSocket is where quorumd listens unless its configuration says otherwise.
const DefaultSocket = "/run/quorumd/control.sock"
