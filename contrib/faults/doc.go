// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package faults does harm to hosts on which quorumd runs as it is built, and holds what quorumd made of it: what was
// wrong, how long it took to be seen, the verdict, its code and its words. What was measured lies in rows/, one file
// for each place where harm can be done; FAULTS.md is made of it and holds nothing else.
//
//	make fault-table    provoke all, write what was measured, and make the table of it (needs root)
//	make vm             the same in a virtual machine, for what needs a kernel of its own (needs qemu too)
//	make test-faults    provoke what takes seconds, and hold it against the same limits
//
// A fault that is not found in time, or for which another one is blamed, fails its test.
package faults
