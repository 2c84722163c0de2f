// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package model explores the real policy.Decide exhaustively: in a world of two to five hosts,
// every order of events that the model allows is walked through, breadth first and without
// chance, until there is no state more. It promises:
//
//   - What breaks a promise of the design within a scope is found, with the shortest story that
//     leads to it.
//   - From every state the agents come to rest at their target when the faults are healed, and
//     free the operation also when they are not.
//   - The exploration can fail: each of a table of seeded mistakes in the policy and in the
//     protocol of the lock is found, as the breach of the promise that it breaks.
//   - Every step and every reason of the policy is listed in known.go with how it is modelled.
//
// A world (world.go) is a few bytes per host, with its agent, its unit, its data and its calls
// that are on their way, and a few for etcd: the lock, the operation, what time has passed. An
// agent's turn is cut where something may come between: it looks and decides; it confirms its
// lock and sends; the call lands and is answered, or lands late, or never. A write of the record
// is one transaction, so only its answer can be missing; a change of membership cannot be fenced,
// so it may land at any later time, with none but the checks that etcd makes when it applies it.
//
// What a host sees is a sight (sight.go), from which alone its View is made; the decision for a
// sight is asked of the policy once and remembered. Every duration in a View is either 0 or longer
// than every limit: which of the two is an event of its own. The one rule about time is that of
// the lock: its lease does not end at the server before the holder's validity has ended.
//
// Hosts are interchangeable. Where hosts rank alike it is left open who goes first, so that
// worlds which differ only in which host is which are explored once.
package model
