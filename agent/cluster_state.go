// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
)

// ProbeNow waits until Status returns a state observed after the call, so that a caller finds the effect of its own
// change. It returns the context's error if no round ends in time.
func (a *Agent) ProbeNow(ctx context.Context) error {
	begun := a.begun.Load() // the current round may already have made its observations
	for {
		shown := a.publisher.Next()
		if r := a.publisher.Current(); r != nil && r.Number > begun && r.Looked() {
			return nil
		}
		a.Wake() // ask again, because a round that had already begun may have used up the first request
		select {
		case <-ctx.Done():
			return fmt.Errorf("no new view of the cluster yet: %w", ctx.Err())
		case <-shown:
		}
	}
}
