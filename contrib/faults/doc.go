// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package faults injects faults into hosts that run the shipped quorumd, and records how it detects each one: the time
// until the finding appears, the health state, the code and the message. rows/ has one file of results for each
// component; FAULTS.md is generated from them.
//
//	make fault-table    inject all faults, record the results, and generate the table (needs root)
//	make vm             the same in a virtual machine, for faults that need their own kernel (needs qemu too)
//	make test-faults    inject the faults that take seconds, and check them against the same limits
//
// A fault that is not detected in time, or that is reported under a different code, fails its test.
package faults
