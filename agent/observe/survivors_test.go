// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"fmt"
	"net"
	"testing"
)

func TestTheEndpointThatGotFurthestIsReported(t *testing.T) {
	t.Parallel()
	closed := fmt.Errorf("cannot connect: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")})
	untrusted := errors.New("TLS: this host does not trust its certificate")
	refused := fmt.Errorf("TLS: %w", &net.OpError{Op: "remote error", Err: errors.New("bad certificate")})
	for name, c := range map[string]struct {
		whys []error
		want int
	}{
		"a certificate":                  {[]error{closed, untrusted, closed}, 1},
		"our certificate refused":        {[]error{closed, closed, refused}, 2},
		"none":                           {[]error{closed, closed, closed}, 0},
		"all closed or silent":           {[]error{closed, nil, closed}, 0},
		"some silent, one with a reason": {[]error{nil, nil, untrusted}, 2},
	} {
		if got := mostTelling(c.whys, 0); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
