// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package control is the API of a running quorumd: the documents that it exchanges over its local socket, and a client.
// The API is HTTP with JSON on a unix socket; package server is the other end.
//
// With curl:
//
//	curl --unix-socket /run/quorumd/control.sock http://quorumd/v1/status
//
// Other programs may import this package: it depends on neither the server nor etcd's packages.
package control

// APIVersion is the version of the documents here. Fields may be added under the same version; no field is removed or
// changes its meaning.
const APIVersion = "v1"

// DefaultSocket is where quorumd listens unless configured otherwise.
const DefaultSocket = "/run/quorumd/control.sock"

// MaxAnswer is the largest answer, in bytes. A status lists at most 2 MiB of hosts, and a history 1000 lines.
const MaxAnswer = 16 << 20
