// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package server serves the API of package control on a unix socket. It promises:
//
//   - Every user of the host may read. Only root, the daemon's own user and the members of one group may change
//     anything; the kernel identifies the caller.
//   - A request for the status is answered from memory, at once, whatever etcd or the disks are doing.
//   - Every refusal is one document, {"error": {"code", "message", "hint"}}, and the hint is the remedy.
//   - No caller can exhaust the server, because sizes, times, connections and requests are bounded. Some capacity is
//     reserved for the group, and some for root.
//   - The server never takes a socket from a live process that serves it.
//
// The server decides nothing. It passes requests to a Backend and returns the answers.
package server
