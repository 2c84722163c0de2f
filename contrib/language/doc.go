// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package language holds the project's texts to the vocabulary of .github/CONTRIBUTING.md. Its test counts the banned
// words of every package and of every document, and fails when a count rises: counts.txt records how many are left. It
// promises nothing at run time; no program imports it.
package language
