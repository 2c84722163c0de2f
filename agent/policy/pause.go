// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "fmt"

// Pause is a pause of the whole cluster.
type Pause struct {
	By, Reason string
}

// paused returns the reason for a pause.
func paused(p *Pause) Reason { return Reason{Paused, fmt.Sprintf("by %s: %s", p.By, p.Reason)} }

// comesBack reports whether a step starts an etcd that this agent has stopped. A pause does not prevent that step.
func comesBack(v View, s Step) bool {
	return s.Kind == StepStartUnit && v.Asked != nil && v.Asked.Stopped
}
