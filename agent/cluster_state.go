// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
)

// ProbeNow waits until Status gives what was seen after the call, so that whoever has just changed something finds it
// there. It ends with the context's error when the loop does not come to it before.
func (a *Agent) ProbeNow(ctx context.Context) error {
	begun := a.begun.Load() // this round may have looked already
	for {
		shown := a.told.Next()
		if r := a.told.Current(); r != nil && r.Number > begun && r.Looked() {
			return nil
		}
		a.Wake() // again: the round that took the wish in may have begun before
		select {
		case <-ctx.Done():
			return fmt.Errorf("no new picture yet: %w", ctx.Err())
		case <-shown:
		}
	}
}
