// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

// DriveThrottled is the code of the check of the time that drives spent above their temperature limits.
const DriveThrottled Code = "DRIVE_THROTTLED"

// checkThrottled is the check of the time that the drives under etcd's data spent above their temperature limits.
// Unlike checkHeat it also detects heat between two readings. The minutes at the first reading are ignored.
var checkThrottled = advice{
	name: "drive-throttling", component: Machine, behind: []string{"smart"},
	source: "warning and critical temperature time of NVMe drives, from " + smartSource,
	limit:  Limit{Of: "minutes above the drive's own temperature limits", Unit: "a day"},
	code:   DriveThrottled,
	title:  "A drive under etcd's data was too hot.",
	meaning: "Above its warning temperature a drive may throttle itself, which makes writes slower. Above its " +
		"critical temperature it may also shut down.",
	remedy: "check fans, filters, the air inlet and the heat sink of the drive; 'sensors' lists all temperatures",
	measure: errorCounts(counters{
		span: day,
		over: "a day",
		bad:  "a drive under etcd's data was too hot",
		well: "no drive under etcd's data was too hot",
		missing: func(in Input) string {
			_, why := reporting(etcdDrives, Drive.timesHeat,
				"no drive under etcd's data reports for how long it was too hot")(in)
			return why
		},
		look: func(in Input) (all []counter) {
			drives, _ := etcdDrives(in)
			for _, d := range drives {
				if d.Absent == "" && d.timesHeat() {
					all = append(all, counter{
						key: d.Name + "/" + d.Serial, title: d.title(), of: "minutes above its temperature limits",
						value: float64(*d.HotMinutes),
					})
				}
			}
			return all
		},
	}),
}

func (d Drive) timesHeat() bool { return d.HotMinutes != nil }
