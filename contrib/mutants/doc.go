// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants asks how much the tests of a package would notice. It changes one operator, constant, condition, row
// of a table or statement of it at a time, and runs the tests on the changed source, which is never written into the
// tree (go test -overlay). One test binary holds all of them. A change that no test notices lives.
//
// A mutant that lives rightly, because it does the same as the source, is listed in the file of -known with the reason.
// The command fails when more than one in twenty of the others live.
package main
