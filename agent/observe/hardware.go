// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"math"
	"time"

	"github.com/quorumd/quorumd/health"
)

// hardwareEvery is how often sensors are asked, and the answers of the drives are read.
const hardwareEvery = time.Minute

// askHardware asks drives and sensors, beside the loop, and gives what they said last. One that does not answer keeps
// nothing but this waiting.
func (j *judge) askHardware(ctx context.Context) health.HardwareReading {
	if j.opt.Hardware == nil {
		return health.HardwareReading{}
	}
	j.hardware.Refresh(ctx, j.opt.Now, hardwareEvery, lookTimeout,
		func(context.Context) (health.HardwareReading, error) { return j.opt.Hardware(), nil })
	now := j.opt.Now()
	seen, _, fresh := j.hardware.Get(now, maxAge*hardwareEvery)
	if !fresh && j.hardware.Age(now) < math.MaxInt64 {
		return health.SilentHardware("drives and sensors have not answered for a while")
	}
	return seen
}
