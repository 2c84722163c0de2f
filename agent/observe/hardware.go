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

// askHardware asks drives and sensors, beside the loop, and gives what they said last. One that does not answer keeps
// nothing but this waiting.
func (j *judge) askHardware(ctx context.Context) health.HardwareReading {
	if j.opt.Hardware == nil {
		return health.HardwareReading{}
	}
	look := func(context.Context) health.HardwareReading { return j.opt.Hardware() }
	return lately(ctx, j, &j.hardware, hardwareEvery, look, health.SilentHardware,
		"drives and sensors have not answered for a while")
}
