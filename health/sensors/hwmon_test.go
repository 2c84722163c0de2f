// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/health"
)

// chips returns the files of a machine with an NVMe and a SATA drive, a CPU, and a board.
func chips() map[string]string {
	return map[string]string{
		"sys/class/hwmon/hwmon0/name":                    "nvme\n",
		"sys/class/hwmon/hwmon0/temp1_input":             "49850\n",
		"sys/class/hwmon/hwmon0/temp1_max":               "69850\n",
		"sys/class/hwmon/hwmon0/temp1_crit":              "99850\n",
		"sys/class/hwmon/hwmon0/temp1_alarm":             "0\n",
		"sys/devices/nvme/nvme0/model":                   "M\n",
		"sys/class/hwmon/hwmon1/name":                    "drivetemp\n",
		"sys/class/hwmon/hwmon1/temp1_input":             "31000\n",
		"sys/class/hwmon/hwmon1/temp1_crit":              "60000\n",
		"sys/class/hwmon/hwmon1/device/block/sda/ro":     "0\n",
		"sys/class/hwmon/hwmon2/name":                    "coretemp\n",
		"sys/class/hwmon/hwmon2/temp1_crit_alarm":        "1\n",
		"sys/class/hwmon/hwmon2/temp1_label":             "Package id 0\n",
		"sys/class/hwmon/hwmon3/name":                    "nct6775\n",
		"sys/class/hwmon/hwmon3/fan1_alarm":              "0\n",
		"sys/class/hwmon/hwmon3/in0_alarm":               "1\n", // its limits are not configured
		"sys/class/hwmon/hwmon3/intrusion0_alarm":        "1\n",
		"sys/class/hwmon/hwmon3/fan2_fault":              "perhaps\n",
		"sys/class/hwmon/hwmon3/temp1_emergency_alarm":   "\x00",
		"sys/class/hwmon/hwmon3/power1_crit_alarm":       "0\n",
		"sys/class/hwmon/hwmon3/temp1_crit_alarm_enable": "1\n",
	}
}

func withChips(t *testing.T, files map[string]string) *Reader {
	t.Helper()
	r := tree(t, files)
	if err := os.Symlink("../../../devices/nvme/nvme0", filepath.Join(r.sys, hwmon, "hwmon0/device")); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTemperaturesOfDrivesAndAlarmsOfChipsAreRead(t *testing.T) {
	t.Parallel()
	want := health.Several[health.Sensor]{Known: true, All: []health.Sensor{
		{Of: "nvme0", Label: "temp1", Drive: true, Celsius: 49.85, Limit: 69.85},
		{Of: "sda", Label: "temp1", Drive: true, Celsius: 31, Limit: 60},
		{Of: "coretemp", Label: "Package id 0 crit alarm", Alarm: true},
		{Of: "nct6775", Label: "fan1 alarm"},
		{Of: "nct6775", Label: "power1 crit alarm"},
	}}
	if got := withChips(t, chips()).Sensors(); !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v, want\n%+v", got, want)
	}
}

func TestAnImpossibleTemperatureLimitIsIgnored(t *testing.T) {
	t.Parallel()
	files := chips()
	files["sys/class/hwmon/hwmon0/temp1_max"] = "65261850\n"
	files["sys/class/hwmon/hwmon0/temp1_crit"] = "-1\n"
	files["sys/class/hwmon/hwmon1/temp1_input"] = "hot\n"
	got := withChips(t, files).Sensors()
	if s := got.All[0]; s.Of != "nvme0" || s.Limit != 0 || s.Celsius != 49.85 {
		t.Errorf("read %+v", s)
	}
	if s := got.All[1]; s.Of != "coretemp" {
		t.Errorf("a thermometer without a temperature is %+v", s)
	}
}

func TestAMachineWithoutMonitorsIsReported(t *testing.T) {
	t.Parallel()
	if got := tree(t, nil).Sensors(); got.Known || !strings.Contains(got.Absent, "(hwmon)") {
		t.Errorf("read %+v", got)
	}
}

func FuzzSensors(f *testing.F) {
	for name, text := range chips() {
		f.Add(name, text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		files := chips()
		if _, known := files[name]; !known {
			return
		}
		files[name] = text
		for _, s := range withChips(t, files).Sensors().All {
			if math.IsNaN(s.Celsius) || s.Limit < 0 || s.Limit > highestLimit {
				t.Errorf("read %+v", s)
			}
		}
	})
}
