// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "strconv"

// Rights returns the prefix of the rights to free space.
func (k Keys) Rights() string { return k.prefix + "space-right/" }

// Right returns the key of the nth right to free space, counted from 1. An agent claims a right by deleting its key,
// which etcd accepts even when a NOSPACE alarm makes it reject all other writes.
func (k Keys) Right(n int) string { return k.Rights() + strconv.Itoa(n) }

// RightUnclaimed is the value of such a key. Only the key matters.
const RightUnclaimed = "unclaimed"
