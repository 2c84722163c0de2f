// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import "strconv"

// Permits returns the prefix of the permits to free space.
func (k Keys) Permits() string { return k.prefix + "space-permit/" }

// Permit returns the key of the nth permit to free space, counted from 1. An agent claims a permit by deleting its key,
// which etcd accepts even when a NOSPACE alarm makes it reject puts.
func (k Keys) Permit(n int) string { return k.Permits() + strconv.Itoa(n) }

// PermitUnclaimed is the value of a permit. Agents ignore the value: only the key matters.
const PermitUnclaimed = "unclaimed"
