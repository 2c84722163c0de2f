// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package sim lives here.
package sim
