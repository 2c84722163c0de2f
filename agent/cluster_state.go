// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
)

// ProbeNow waits until Status returns a state observed after the call, so that a caller finds its own change there. It
// returns the context's error if the loop does not observe in time.
func (a *Agent) ProbeNow(ctx context.Context) error {
	begun := a.begun.Load() // this round may have observed already
	for {
		shown := a.publisher.Next()
		if r := a.publisher.Current(); r != nil && r.Number > begun && r.Looked() {
			return nil
		}
		a.Wake() // again: the round that took the first request may have begun before
		select {
		case <-ctx.Done():
			return fmt.Errorf("no new view of the cluster yet: %w", ctx.Err())
		case <-shown:
		}
	}
}
