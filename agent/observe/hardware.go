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

// askHardware asks drives, sensors and the rest, beside the loop, and gives what they said last. Sensors are asked by
// themselves: a drive that hangs may keep its thermometer from answering, and what the others say of it is wanted then.
func (j *judge) askHardware(ctx context.Context) health.HardwareReading {
	seen := j.askDrives(ctx)
	seen.Sensors = j.askChips(ctx)
	return seen
}

// askDrives gives all but the sensors.
func (j *judge) askDrives(ctx context.Context) health.HardwareReading {
	if j.opt.Hardware == nil {
		return health.HardwareReading{}
	}
	j.hardware.Refresh(ctx, j.opt.Now, hardwareEvery, lookTimeout,
		func(context.Context) (health.HardwareReading, error) { return j.opt.Hardware(), nil })
	now := j.opt.Now()
	seen, _, fresh := j.hardware.Get(now, maxAge*hardwareEvery)
	if !fresh && j.hardware.Age(now) < math.MaxInt64 {
		return health.SilentHardware("what drives say could not be read for a while")
	}
	return seen
}

func (j *judge) askChips(ctx context.Context) health.Several[health.Sensor] {
	if j.opt.Chips == nil {
		return health.Several[health.Sensor]{}
	}
	j.chips.Refresh(ctx, j.opt.Now, hardwareEvery, lookTimeout,
		func(context.Context) (health.Several[health.Sensor], error) { return j.opt.Chips(), nil })
	now := j.opt.Now()
	seen, _, fresh := j.chips.Get(now, maxAge*hardwareEvery)
	if !fresh && j.chips.Age(now) < math.MaxInt64 {
		return health.Several[health.Sensor]{Absent: "the sensors have not answered for a while"}
	}
	return seen
}
