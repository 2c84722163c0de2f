// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package smart

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"unicode"

	"github.com/quorumd/quorumd/health"
)

// output is the part of smartctl's JSON output that is used.
type output struct {
	Smartctl struct {
		Messages []struct {
			String   string `json:"string"`
			Severity string `json:"severity"`
		} `json:"messages"`
	} `json:"smartctl"`
	Model    string `json:"model_name"`
	SCSI     string `json:"scsi_model_name"`
	Serial   string `json:"serial_number"`
	Firmware string `json:"firmware_version"`
	Revision string `json:"scsi_revision"`
	On       struct {
		Hours *int `json:"hours"`
	} `json:"power_on_time"`
	Status *struct {
		Passed *bool `json:"passed"`
	} `json:"smart_status"`
	NVMe *struct {
		Warnings   *uint8  `json:"critical_warning"`
		Spare      *int    `json:"available_spare"`
		SpareLimit *int    `json:"available_spare_threshold"`
		Used       *int    `json:"percentage_used"`
		Errors     *uint64 `json:"media_errors"`
		Warm       *int    `json:"warning_temp_time"`
		Hot        *int    `json:"critical_comp_time"`
	} `json:"nvme_smart_health_information_log"`
	ATA *struct {
		Table []struct {
			ID        int    `json:"id"`
			Name      string `json:"name"`
			Value     *int   `json:"value"`
			Threshold *int   `json:"thresh"`
			Raw       struct {
				Value *uint64 `json:"value"`
			} `json:"raw"`
		} `json:"table"`
	} `json:"ata_smart_attributes"`
	Grown  *uint64 `json:"scsi_grown_defect_list"`
	Errors map[string]struct {
		Uncorrected *uint64 `json:"total_uncorrected_errors"`
	} `json:"scsi_error_counter_log"`
	Used      *int `json:"scsi_percentage_used_endurance_indicator"`
	Endurance struct {
		Used *int `json:"current_percent"`
	} `json:"endurance_used"` // of any drive, since smartctl 7.5
}

// attribute returns what an ATA drive's attribute counts if it counts errors of the medium, otherwise "". Most other
// attributes are vendor-specific.
func attribute(id int) string {
	switch id {
	case 5:
		return "reallocated sectors"
	case 187, 198:
		return "uncorrectable errors"
	case 197:
		return "unreadable sectors"
	}
	return ""
}

// parseDrive parses smartctl's output on a drive.
func parseDrive(name string, said []byte) health.Drive {
	d := health.Drive{Name: name}
	var o output
	if err := json.Unmarshal(said, &o); err != nil {
		d.Absent = "cannot parse the output of smartctl: " + reason(err)
		return d
	}
	d.Model, d.Serial = cmp.Or(o.Model, o.SCSI), o.Serial
	d.Firmware, d.Hours = cmp.Or(o.Firmware, o.Revision), o.On.Hours
	judged := o.Status != nil && o.Status.Passed != nil
	if d.Warns = o.NVMe != nil && o.NVMe.Warnings != nil; !judged && !d.Warns {
		d.Absent = refusal(o)
		tidy(&d)
		return d
	}
	d.Failed = judged && !*o.Status.Passed
	if d.Warns {
		d.Warnings = *o.NVMe.Warnings
	}
	if n := o.NVMe; n != nil {
		d.Spare, d.SpareLimit, d.Used = n.Spare, n.SpareLimit, n.Used
		add(&d, "media errors", n.Errors)
		if n.Warm != nil || n.Hot != nil {
			minutes := value(n.Warm) + value(n.Hot)
			d.HotMinutes = &minutes
		}
	}
	d.Used = cmp.Or(d.Used, o.Used, o.Endurance.Used)
	if o.ATA != nil {
		for _, a := range o.ATA.Table {
			if of := attribute(a.ID); of != "" {
				add(&d, of, a.Raw.Value)
			}
			// Vendors use attribute 175 for other values, too: only this name, from smartctl's database, identifies the
			// test.
			if a.ID == 175 && a.Name == "Power_Loss_Cap_Test" && a.Value != nil && a.Threshold != nil {
				d.Capacitor = &health.CapacitorTest{Value: *a.Value, Threshold: *a.Threshold}
			}
		}
	}
	add(&d, "grown defects", o.Grown)
	for _, of := range []string{"read", "write", "verify"} {
		if c, counted := o.Errors[of]; counted {
			add(&d, "uncorrectable errors", c.Uncorrected)
		}
	}
	tidy(&d)
	return d
}

func value(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// reason returns a JSON error without its offset, which changes.
func reason(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return kind.Field + " is not of type " + kind.Type.String()
	}
	return "not JSON"
}

// refusal returns why a drive has no self-assessment.
func refusal(o output) string {
	for _, m := range o.Smartctl.Messages {
		if m.String != "" && m.Severity == "error" {
			return m.String
		}
	}
	return "no SMART support"
}

// add adds a counter of errors; counters with the same name are added up.
func add(d *health.Drive, of string, n *uint64) {
	const most = 1 << 48 // an ATA drive's counter has six bytes
	if n == nil || *n > most {
		return
	}
	for i := range d.Errors {
		if d.Errors[i].Of == of {
			d.Errors[i].N += *n
			return
		}
	}
	if len(d.Errors) < mostErrors {
		d.Errors = append(d.Errors, health.DriveErrors{Of: of, N: *n})
	}
}

// tidy shortens the texts, which come from the maker of the drive, and drops impossible numbers.
func tidy(d *health.Drive) {
	for _, text := range []*string{&d.Name, &d.Model, &d.Serial, &d.Firmware, &d.Absent} {
		*text = strings.TrimSpace(strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return -1
			}
			return r
		}, strings.ToValidUTF8(*text, "")))
		if r := []rune(*text); len(r) > longest {
			*text = string(r[:longest])
		}
	}
	for i := range d.Errors {
		if of := []rune(d.Errors[i].Of); len(of) > longest {
			d.Errors[i].Of = string(of[:longest])
		}
	}
	for _, percent := range []**int{&d.Spare, &d.SpareLimit, &d.Used} {
		if p := *percent; p != nil && (*p < 0 || *p > 255) { // the log stores the percentage in one byte
			*percent = nil
		}
	}
	const century = 100 * 366 * 24
	if h := d.Hours; h != nil && (*h < 0 || *h > century) {
		d.Hours = nil
	}
	if m := d.HotMinutes; m != nil && (*m < 0 || *m > century*60) {
		d.HotMinutes = nil
	}
	// An attribute is one byte, 1 to 253 if it is valid. Threshold 0 means that it never counts as failed.
	if c := d.Capacitor; c != nil && (c.Value < 1 || c.Value > 253 || c.Threshold < 1 || c.Threshold > 253) {
		d.Capacitor = nil
	}
}
