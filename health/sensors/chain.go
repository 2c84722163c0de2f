// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package sensors

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/health"
)

const (
	mostDevices = 64  // maximum number of devices in a chain
	longestWord = 128 // maximum length of a text from a device, in bytes

	noBlockDevice = absence("no block device is known for the file system of etcd's data")
)

// chain returns the device with the given number and all devices below it, each once and with its directory, from top
// to bottom.
func (r *Reader) chain(number uint64) (dirs []string, chain []health.Device, err error) {
	top := filepath.Join(r.sys, "dev", "block", fmt.Sprintf("%d:%d", unix.Major(number), unix.Minor(number)))
	dir, err := filepath.EvalSymlinks(top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, noBlockDevice
	}
	if err != nil {
		return nil, nil, absence("cannot resolve " + top)
	}
	dirs = []string{dir}
	for i := 0; i < len(dirs); i++ {
		below, err := devicesBelow(dirs[i])
		if err != nil {
			return nil, nil, err
		}
		d := describe(dirs[i])
		for _, dir := range below {
			d.On = append(d.On, filepath.Base(dir))
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
		if len(dirs) > mostDevices {
			return nil, nil, absence(fmt.Sprintf("etcd's data is on more than %d devices", mostDevices))
		}
		if d.Leaf() {
			identify(dirs[i], &d)
		}
		chain = append(chain, d)
	}
	return dirs, chain, nil
}

// devicesBelow returns the directories of the devices directly below the one in dir: the disk for a partition, the
// component devices for others.
func devicesBelow(dir string) ([]string, error) {
	if exists(dir, "partition") {
		return []string{filepath.Dir(dir)}, nil
	}
	slaves := filepath.Join(dir, "slaves")
	names, err := list(slaves)
	if err != nil {
		return nil, absence("cannot read " + slaves)
	}
	var below []string
	for _, name := range names {
		part, err := filepath.EvalSymlinks(filepath.Join(slaves, name))
		if err != nil {
			return nil, absence("cannot resolve " + filepath.Join(slaves, name))
		}
		below = append(below, part)
	}
	return below, nil
}

// describe reads the properties of a device.
func describe(dir string) health.Device {
	d := health.Device{Name: word(filepath.Base(dir)), Kind: "disk"}
	switch {
	case exists(dir, "partition"):
		d.Kind = "partition"
	case exists(dir, "md"):
		d.Kind = "raid"
	case exists(dir, "loop"):
		d.Kind = "loop"
	case strings.HasPrefix(d.Name, "ram") || strings.HasPrefix(d.Name, "zram"):
		d.Kind = "memory"
	case exists(dir, "dm"):
		d.Kind, d.Label, d.Suspended = "dm", attribute(dir, "dm/name"), attribute(dir, "dm/suspended") == "1"
		creator, _, _ := strings.Cut(attribute(dir, "dm/uuid"), "-")
		switch creator {
		case "LVM":
			d.Kind = "lvm"
		case "CRYPT":
			d.Kind = "crypt"
		case "mpath":
			d.Kind = "multipath"
		}
	}
	return d
}

// identify reads the identity of a leaf's hardware, and how it caches writes.
func identify(dir string, d *health.Device) {
	d.Model = attribute(dir, "device/model")
	d.Serial = cmp.Or(attribute(dir, "device/serial"), attribute(dir, "serial"), serialPage(dir))
	d.WWID = cmp.Or(attribute(dir, "wwid"), attribute(dir, "device/wwid"))
	d.AttachedTo = attachedTo(dir)
	switch attribute(dir, "queue/rotational") {
	case "0":
		d.Medium = "solid"
	case "1":
		d.Medium = "rotating"
	}
	if cache := attribute(dir, "queue/write_cache"); cache == "write back" || cache == "write through" {
		d.Cache = cache
	}
	if names, err := list(filepath.Join(dir, "device/scsi_disk")); err == nil && len(names) == 1 {
		d.OwnCache = attribute(dir, filepath.Join("device/scsi_disk", names[0], "cache_type"))
	}
}

// serialPage returns the serial number of a SCSI device from its VPD page 0x80. The kernel keeps the page as the device
// sent it: four bytes (the second is the number of the page, the last two are the length), then the serial number.
func serialPage(dir string) string {
	const header, page = 4, 0x80
	text, err := read(filepath.Join(dir, "device/vpd_pg80"))
	if err != nil || len(text) < header || text[1] != page {
		return ""
	}
	length := int(text[2])<<8 | int(text[3])
	return word(text[header:min(header+length, len(text))])
}

// attachedTo returns the NVMe controllers, or the ATA port, above a device.
func attachedTo(dir string) (names []string) {
	for above := filepath.Dir(dir); above != filepath.Dir(above); above = filepath.Dir(above) {
		name := filepath.Base(above)
		if numbered(name, "nvme") || numbered(name, "ata") {
			names = append(names, name)
		}
		if numbered(name, "nvme-subsys") { // the drive has several controllers
			all, err := list(above)
			if err != nil {
				return nil
			}
			for _, name := range all {
				if numbered(name, "nvme") {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// numbered reports whether a name consists of the given word and a number.
func numbered(name, of string) bool {
	number, is := strings.CutPrefix(name, of)
	_, err := strconv.ParseUint(number, 10, 32)
	return is && err == nil
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// attribute reads a short text of the kernel; empty if there is none.
func attribute(dir, name string) string {
	text, err := read(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return word(text)
}

// word returns a text from a device as one short line without terminal control characters.
func word(text string) string {
	text = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) || c == unicode.ReplacementChar {
			return ' '
		}
		return c
	}, text[:min(len(text), longestWord)])
	return strings.Join(strings.Fields(text), " ")
}

// list returns the names in a directory, at most mostDevices+1, sorted; none if the directory is missing.
func list(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(mostDevices + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.Sort(names)
	return names, err
}
