// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Command mutants measures what share of small changes the tests of a package detect. It changes one operator,
// constant, condition, table row or statement at a time, and runs the tests on the changed source, which is never
// written into the tree (go test -overlay). One test binary contains all mutants. A mutant that no test detects
// survives.
//
// A mutant that behaves like the original source is listed in the file of -known, with the reason. The command fails if
// more than one in twenty of the others survive.
package main
