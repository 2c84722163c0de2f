// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"path/filepath"

	"github.com/quorumd/quorumd/disk/smart"
	"github.com/quorumd/quorumd/health"
	"github.com/quorumd/quorumd/health/sensors"
	"github.com/quorumd/quorumd/systemd/rootfile"
)

// hardware tells what drives and sensors say.
func hardware() health.HardwareReading {
	return health.HardwareReading{
		Drives:  smart.Read(rootfile.Root(), filepath.Join(smart.Dir, smart.File), smart.Monotonic()),
		Sensors: sensors.New().Sensors(),
	}
}
