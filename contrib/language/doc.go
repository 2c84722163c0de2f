// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package language has a test that counts banned words in packages and documents, and fails when a count rises. The
// test contains the list of words, and counts.txt contains the counts. CONTRIBUTING.md, the glossary and this package
// are not counted. No program imports the package.
package language
