// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
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

// askDrives returns all but the sensors.
func (j *judge) askDrives(ctx context.Context) health.HardwareReading {
	if j.opt.Hardware == nil {
		return health.HardwareReading{}
	}
	look := func(context.Context) health.HardwareReading { return j.opt.Hardware() }
	return lately(ctx, j, &j.hardware, hardwareEvery, look, health.SilentHardware,
		"what drives say could not be read for a while")
}

func (j *judge) askChips(ctx context.Context) health.Several[health.Sensor] {
	if j.opt.Chips == nil {
		return health.Several[health.Sensor]{}
	}
	look := func(context.Context) health.Several[health.Sensor] { return j.opt.Chips() }
	return lately(ctx, j, &j.chips, hardwareEvery, look,
		func(why string) health.Several[health.Sensor] { return health.Several[health.Sensor]{Absent: why} },
		"the sensors have not answered for a while")
}
