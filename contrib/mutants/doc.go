// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants measures what share of small changes the tests of a package detect. It changes one operator,
// constant, condition, table row or statement at a time, and runs the tests on the changed source. It never writes into
// the source tree (go test -overlay). The test binary of each tested package contains almost all mutants; the others
// are built one by one. A mutant survives if no test fails.
//
// The file of -known lists mutants that behave like the original source, each with the reason. The command fails if
// more than one in twenty of the others survive.
package main
