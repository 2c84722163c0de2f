// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package kernellog

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/quorumd/quorumd/health"
)

// name matches the kernel's name of a block device.
const name = `([0-9A-Za-z][0-9A-Za-z!_.-]{0,31})`

// kind is a type of kernel message. Each such message increments one counter of a device.
type kind struct {
	name  string
	count func(*health.LoggedErrors)
	lines []string // regular expressions, each with one group for the device
}

// kinds lists the kernel messages to count, taken from the kernel's source: block/blk-mq.c, fs/buffer.c, fs/ext4,
// fs/jbd2, fs/xfs, drivers/nvme/host, drivers/ata, drivers/scsi, drivers/md. Each expression is anchored to the start
// of the line, so that the name of a device, a file or a volume cannot imitate a message.
func kinds() []kind {
	return []kind{
		{
			"error", func(e *health.LoggedErrors) { e.Errors++ }, []string{
				`(?:blk_update_request: |end_request: )?(?:I/O|timeout|critical medium|critical target|` +
					`recoverable transport|protection|device offline) error, dev ` + name + `, sector `,
				`Buffer I/O error on dev(?:ice)? ` + name + `, `,
				`md/raid[0-9]*:[^ :]+: Disk failure on ` + name + `, `,
				`md/raid[0-9]*:[^ :]+: read error (?:corrected|not correctable) \(.* on ` + name + `\)`,
				`md/raid[0-9]*:` + name + `: (?:[^ ]+ )?unrecoverable I/O `,
			},
		},
		{
			"reset", func(e *health.LoggedErrors) { e.Resets++ }, []string{
				`nvme (nvme[0-9]{1,9}): (?:I/O .*timeout|controller is down|Device not ready|` +
					`Removing after probe failure|Disabling device after reset failure)`,
				`(ata[0-9]{1,9})(?:\.[0-9]{1,9})?: (?:failed command: |hard resetting link|SATA link down)`,
				`sd [0-9:]+ \[` + name + `\] .*timing out command`,
			},
		},
		{
			"file system", func(e *health.LoggedErrors) { e.FileSystem++ }, []string{
				`EXT[234]-fs error \(device ` + name + `\)`,
				`EXT4-fs \(` + name + `\): I/O error `,
				`Aborting journal on device ` + name + `-[0-9]+\.`,
				`XFS \(` + name + `\): (?:metadata I/O error|log I/O error|writeback error|Internal error|` +
					`Metadata (?:CRC error|corruption) detected|Corruption (?:detected|of )|` +
					`Filesystem has been shut down)`,
			},
		},
	}
}

// hang matches the kernel's line about a task that has waited for minutes (kernel/hung_task.c). By default the kernel
// logs at most ten such lines, so the count is a lower bound.
const hang = `^INFO: task .{1,64}:[0-9]{1,10} (?:is )?blocked (?:[^ ]+ ){0,8}for more than [0-9]{1,10} seconds`

// unwanted returns the marks of optional requests that many devices refuse. Their failure loses no written data.
func unwanted() []string { return []string{":(DISCARD)", ":(SECURE_ERASE)", ":(WRITE_ZEROES)"} }

// reader parses lines of the kernel log.
type reader struct {
	kinds []kind
	on    [][]*regexp.Regexp
	hang  *regexp.Regexp
}

func newReader() reader {
	r := reader{kinds: kinds(), hang: regexp.MustCompile(hang)}
	for _, k := range r.kinds {
		var on []*regexp.Regexp
		for _, line := range k.lines {
			on = append(on, regexp.MustCompile(`^`+line))
		}
		r.on = append(r.on, on)
	}
	return r
}

// line is the first line of a log record.
type line struct {
	number uint64
	kernel bool // written by the kernel itself, not by a program
	text   string
}

// parseRecord parses a record of /dev/kmsg: "priority,number,microseconds,flags;text".
func parseRecord(record []byte) (line, bool) {
	const kernel = 8 // priorities below 8 have facility 0, which only the kernel can use
	head, text, both := strings.Cut(string(record), ";")
	fields := strings.Split(head, ",")
	if !both || len(fields) < 4 {
		return line{}, false
	}
	priority, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil {
		return line{}, false
	}
	number, err := strconv.ParseUint(fields[1], 10, 63)
	if err != nil {
		return line{}, false
	}
	text, _, _ = strings.Cut(text, "\n")
	return line{number, priority < kernel, text}, true
}

// hangs reports whether a line is about a hung task.
func (r reader) hangs(l line) bool { return l.kernel && r.hang.MatchString(l.text) }

// deviceError returns the device that a line is about, and the kind of its error.
func (r reader) deviceError(l line) (device string, of kind, does bool) {
	if !l.kernel {
		return "", kind{}, false
	}
	for _, request := range unwanted() {
		if strings.Contains(l.text, request) {
			return "", kind{}, false
		}
	}
	for i, on := range r.on {
		for _, e := range on {
			if found := e.FindStringSubmatch(l.text); found != nil {
				return found[1], r.kinds[i], true
			}
		}
	}
	return "", kind{}, false
}
