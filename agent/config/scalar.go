// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxDuration bounds every duration, so that sums and multiples cannot overflow.
const maxDuration = 365 * 24 * time.Hour

// Size is a number of bytes.
type Size uint64

// String returns the size as it is written in the file, such as "1GiB", in the largest unit that yields a whole number.
func (s Size) String() string {
	for _, u := range sizeUnits() {
		if s >= Size(u.bytes) && uint64(s)%u.bytes == 0 {
			return strconv.FormatUint(uint64(s)/u.bytes, 10) + u.name
		}
	}
	return "0B"
}

type sizeUnit struct {
	name  string
	bytes uint64
}

// sizeUnits lists the units of a Size, the largest first.
func sizeUnits() []sizeUnit {
	return []sizeUnit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
}

// setScalar sets v to the value of n, or reports what is wrong with it.
func setScalar(v reflect.Value, k key, n *yaml.Node) error {
	if err := checkNotation(v, k, n); err != nil {
		return err
	}
	switch v.Interface().(type) {
	case time.Duration:
		value, err := parseDuration(n.Value, k.tag("min") != "")
		v.SetInt(int64(value))
		return err
	case Grace:
		if n.Value == graceOff {
			return nil
		}
		value, err := parseDuration(n.Value, false)
		v.SetInt(int64(value))
		return err
	case Size:
		value, err := parseSize(n.Value)
		v.SetUint(uint64(value))
		return err
	case int:
		value, err := parseInt(n.Value, k)
		v.SetInt(int64(value))
		return err
	case bool:
		v.SetBool(n.Value == "true")
		if n.Value != "true" && n.Value != "false" {
			return fmt.Errorf("must be true or false, not %s", quote(n.Value))
		}
		return nil
	}
	return setText(v, k, n.Value)
}

// checkNotation refuses an empty value if the key is not a text, quotes around a number or a boolean, and a value that
// oneOf does not allow. Durations and sizes may be quoted, as is common for values that are not plain numbers.
func checkNotation(v reflect.Value, k key, n *yaml.Node) error {
	quoted := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0
	bare := v.Kind() == reflect.Int || v.Kind() == reflect.Bool
	allowed := strings.Fields(k.tag("oneOf"))
	switch {
	case n.Value == "" && v.Kind() != reflect.String:
		return errors.New("must be " + k.kind() + ", not an empty value")
	case quoted && bare:
		return fmt.Errorf("must be %s, not the text %s; remove the quotes", k.kind(), quote(n.Value))
	case len(allowed) == 0 || slices.Contains(allowed, n.Value):
		return nil
	}
	message := "must be " + orList(allowed) + ", not " + quote(n.Value)
	if hint := k.tag("hint"); hint != "" {
		message += ": " + hint
	}
	return errors.New(message)
}

// setText sets v to a text in the format that the key declares.
func setText(v reflect.Value, k key, value string) error {
	if value == "" {
		if _, ok := k.field.Tag.Lookup("default"); ok && k.tag("default") == "" || k.tag("derived") != "" {
			return nil
		}
		return errors.New("must not be empty; write " + k.format().kind)
	}
	if err := checkPrintable(value); err != nil {
		return err
	}
	value, err := k.format().parse(value)
	v.SetString(value)
	return err
}

func parseDuration(s string, zeroAllowed bool) (time.Duration, error) {
	value, err := ParseDuration(s)
	if err != nil && s != "" && strings.Trim(s, "0123456789.") == "" {
		return 0, fmt.Errorf("%s lacks a unit; for seconds write %ss", quote(s), shorten(s, 20))
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s is not a duration; write numbers with the units ms, s, m, h or d, such as 300ms, 2s, "+
			"1h30m or 2d", quote(s))
	case value == 0 && zeroAllowed:
		return 0, nil
	case value <= 0:
		return 0, fmt.Errorf("must be longer than 0s, not %s", quote(s))
	case value > maxDuration:
		return 0, fmt.Errorf("must be at most a year (8760h), not %s", quote(s))
	}
	return value, nil
}

func parseSize(s string) (Size, error) {
	digits := strings.TrimRightFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	suffix := strings.TrimSpace(s[len(digits):])
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not a size; write a whole number with a unit, such as 512MiB or 1GiB", quote(s))
	}
	for _, u := range sizeUnits() {
		switch {
		case suffix == u.name && number == 0:
			return 0, fmt.Errorf("must be more than 0B, not %s", quote(s))
		case suffix == u.name && number > math.MaxInt64/u.bytes:
			return 0, fmt.Errorf("%s is too large", quote(s))
		case suffix == u.name:
			return Size(number * u.bytes), nil
		case suffix != "" && strings.EqualFold(strings.TrimSuffix(suffix, "B"), u.name[:1]) && u.bytes > 1:
			return 0, fmt.Errorf("%s has an unknown unit; write %s%s", quote(s), digits, u.name)
		}
	}
	return 0, fmt.Errorf("%s needs one of the units B, KiB, MiB, GiB, TiB, for example 512MiB", quote(s))
}

func parseInt(s string, k key) (int, error) {
	value, err := strconv.Atoi(s)
	if err != nil || strconv.Itoa(value) != s {
		return 0, fmt.Errorf("must be a whole number, not %s", quote(s))
	}
	low, err := strconv.Atoi(k.tag("min"))
	if err != nil { // the key has no bounds
		return value, nil //nolint:nilerr // the tag is missing, the value is valid
	}
	high, err := strconv.Atoi(k.tag("max"))
	if err != nil || value < low || value > high {
		return 0, fmt.Errorf("must be a number from %s to %s, not %d", k.tag("min"), k.tag("max"), value)
	}
	return value, nil
}

// orList returns "a, b or c".
func orList(items []string) string {
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:last], ", ") + " or " + items[last]
}
