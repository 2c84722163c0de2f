// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package control is the API of a running quorumd: HTTP and JSON on a unix socket, the Go client for it, and the
// documents that both sides exchange.
//
// It promises:
//
//   - Everyone on the host may read. Only root, the daemon's own user and the members of one group may change
//     anything; the kernel identifies the caller.
//   - The status is answered from memory, at once, whatever etcd or the disks are doing.
//   - Every refusal is one document, {"error": {"code", "message", "hint"}}, and the hint is the remedy.
//   - No caller can exhaust it: sizes, times, connections and requests are bounded, and users who may only read
//     leave places for the group, as the group does for root.
//   - A socket that a live daemon serves is never taken from it.
//
// It decides nothing: it passes requests to a Backend and returns the answers.
//
// With curl:
//
//	curl --unix-socket /run/quorumd/control.sock http://quorumd/v1/status
package control

// APIVersion is the version of the documents here. Fields may be added under the same version; no field is removed or
// changes its meaning.
const APIVersion = "v1"

// DefaultSocket is where quorumd listens unless configured otherwise.
const DefaultSocket = "/run/quorumd/control.sock"
