// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"time"

	"github.com/quorumd/quorumd/health"
)

// hardwareEvery is the interval between two readings of the drives and the sensors.
const hardwareEvery = time.Minute

// askHardware reads drives and sensors in the background, and returns the last readings. Sensors are read separately: a
// hung drive may block its temperature sensor, and that is when the drive's other readings are needed.
func (j *judge) askHardware(ctx context.Context) health.HardwareReading {
	seen := j.askDrives(ctx)
	seen.Sensors = j.askChips(ctx)
	return seen
}

// askDrives returns the last readings of everything except the sensors.
func (j *judge) askDrives(ctx context.Context) health.HardwareReading {
	if j.opt.Hardware == nil {
		return health.HardwareReading{}
	}
	look := func(context.Context) health.HardwareReading { return j.opt.Hardware() }
	return lastReading(ctx, j, &j.hardware, hardwareEvery, look, "drive health data is out of date")
}

func (j *judge) askChips(ctx context.Context) health.Several[health.Sensor] {
	if j.opt.Chips == nil {
		return health.Several[health.Sensor]{}
	}
	look := func(context.Context) health.Several[health.Sensor] { return j.opt.Chips() }
	return lastReading(ctx, j, &j.chips, hardwareEvery, look, "sensor readings are out of date")
}
