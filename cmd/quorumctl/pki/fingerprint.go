// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"strings"
)

// fingerprint returns the SHA-256 of a certificate as openssl x509 -fingerprint -sha256 prints it. Any CA can have any
// name; the fingerprint lets operators verify that a host trusts the CA they created.
func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	pairs := make([]string, 0, len(sum))
	for _, b := range sum {
		pairs = append(pairs, strings.ToUpper(hex.EncodeToString([]byte{b})))
	}
	return strings.Join(pairs, ":")
}
