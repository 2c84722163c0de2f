// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxBytes bounds a record, and MaxRolloutBytes a rollout, which lists its hosts. A host record takes 0.5 to 1 KiB. No
// agent writes a value above its bound.
const (
	MaxBytes        = 64 << 10
	MaxRolloutBytes = 128 << 10
)

// The bounds of a record's content. A record with every field at its bound is smaller than MaxBytes, except for a
// rollout's hosts: see Rollout.Room. The bounds apply to the JSON form of strings, in which one byte may take six.
const (
	maxName    = 512       // bytes of a name, an ID, a URL or a code
	maxText    = 4 << 10   // bytes of a text for operators; Encode shortens longer ones
	maxExtra   = 16 << 10  // bytes of all fields that this agent does not know
	maxFields  = 64        // number of fields that this agent does not know
	maxDepth   = 32        // depth of nested lists and objects
	maxList    = 32        // number of names in a list
	maxWord    = 32        // bytes of one of quorumd's keywords
	maxSeconds = 1e9       // maximum duration, in seconds
	cutMark    = "…"       // appended to a shortened text
	textTag    = "text"    // marks a field as a text for operators: `bound:"text"`
	wordTag    = "word"    // marks a field as a keyword
	hundredths = 100.0     // units per second to which durations are rounded
	daySeconds = 24 * 3600 // every time zone is closer to UTC than a day
)

// MaxReachability bounds the members that a host record reports on.
const MaxReachability = 16

// MaxHosts bounds the hosts of a rollout.
const MaxHosts = 1000

// within applies the bounds to a record. If strictly is set, as for reading, it refuses values out of bounds. Otherwise
// it shortens texts and limits durations instead of refusing them, because every event must be recorded. Either way, it
// converts times to UTC.
func within(record any, strictly bool) error {
	v := reflect.ValueOf(record).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if err := fieldWithin(v.Field(i), field.Tag.Get("bound"), strictly); err != nil {
			return fmt.Errorf("its %s: %w", name, err)
		}
	}
	if r, is := record.(*Size); is {
		return r.check()
	}
	return nil
}

func fieldWithin(v reflect.Value, bound string, strictly bool) error {
	switch value := v.Interface().(type) {
	case time.Time:
		at, err := inUTC(value)
		if err == nil {
			v.Set(reflect.ValueOf(at))
		}
		return err
	case string:
		return stringWithin(v, value, bound, strictly)
	case PortState:
		return stringWithin(v, string(value), bound, strictly)
	case float64:
		return secondsWithin(v, value, strictly)
	case []string:
		if len(value) > maxList {
			return fmt.Errorf("%d names; the limit is %d", len(value), maxList)
		}
		for i := range value {
			if err := nameWithin(value[i]); err != nil {
				return err
			}
		}
	case []Reachability:
		return reachabilityWithin(v, value, strictly)
	case []Repair:
		return repairsWithin(v, value, strictly)
	case []Manifest:
		return manifestsWithin(v, value, strictly)
	case []RolloutHost:
		return hostsWithin(v, value, strictly)
	case Extra:
		return value.within()
	}
	return nil
}

// inUTC returns the time in UTC, in a form that JSON can represent. It refuses an impossible time zone because another
// reader may be unable to write it back.
func inUTC(at time.Time) (time.Time, error) {
	if _, offset := at.Zone(); offset <= -daySeconds || offset >= daySeconds {
		return at, errors.New("no time zone is a day or more from UTC")
	}
	if at = at.UTC(); at.Year() < 0 || at.Year() > 9999 {
		return at, fmt.Errorf("the year %d is out of bounds", at.Year())
	}
	return at, nil
}

func stringWithin(v reflect.Value, s, bound string, strictly bool) error {
	if bound == wordTag && longer(s, maxWord) {
		return fmt.Errorf("%d bytes; the limit is %d", len(s), maxWord)
	}
	if bound != textTag {
		return nameWithin(s)
	}
	if longer(s, maxText) {
		if strictly {
			return fmt.Errorf("text of %d bytes; the limit is %d", len(s), maxText)
		}
		v.SetString(Shorten(s, maxText))
	}
	return nil
}

func nameWithin(s string) error {
	if longer(s, maxName) {
		return fmt.Errorf("%d bytes; the limit is %d", len(s), maxName)
	}
	return nil
}

// secondsWithin applies the bound of a duration to a number.
func secondsWithin(v reflect.Value, seconds float64, strictly bool) error {
	if seconds >= 0 && seconds <= maxSeconds {
		return nil
	}
	if strictly {
		return fmt.Errorf("%g is out of bounds", seconds)
	}
	v.SetFloat(min(max(seconds, 0), maxSeconds))
	if math.IsNaN(seconds) {
		v.SetFloat(0)
	}
	return nil
}

// hostsWithin applies the bounds to a copy of the list. It refuses a host that is listed twice: only one entry would be
// marked done, and the host would be taken down again and again for the other entry.
func hostsWithin(v reflect.Value, hosts []RolloutHost, strictly bool) error {
	if len(hosts) > MaxHosts {
		return fmt.Errorf("%d hosts; the limit is %d", len(hosts), MaxHosts)
	}
	held := append([]RolloutHost(nil), hosts...)
	seen := make(map[string]bool, len(held))
	for i := range held {
		if seen[held[i].ID] {
			return fmt.Errorf("host %d: it is in the list already", i)
		}
		seen[held[i].ID] = true
		if err := within(&held[i], strictly); err != nil {
			return fmt.Errorf("host %d: %w", i, err)
		}
		held[i].Seconds, held[i].Turn = rounded(held[i].Seconds), rounded(held[i].Turn)
	}
	if hosts != nil && held == nil {
		held = []RolloutHost{}
	}
	v.Set(reflect.ValueOf(held))
	return nil
}

// reachabilityWithin applies the bounds to a copy of the list.
func reachabilityWithin(v reflect.Value, list []Reachability, strictly bool) error {
	if len(list) > MaxReachability {
		return fmt.Errorf("%d members; the limit is %d", len(list), MaxReachability)
	}
	held := slices.Clone(list)
	for i := range held {
		if err := within(&held[i], strictly); err != nil {
			return fmt.Errorf("member %d: %w", i, err)
		}
	}
	v.Set(reflect.ValueOf(held))
	return nil
}

// repairsWithin applies the bounds to a copy of the list.
func repairsWithin(v reflect.Value, repairs []Repair, strictly bool) error {
	if len(repairs) > MaxRepairs {
		return fmt.Errorf("%d repairs; the limit is %d", len(repairs), MaxRepairs)
	}
	held := slices.Clone(repairs)
	for i := range held {
		if err := within(&held[i], strictly); err != nil {
			return fmt.Errorf("repair %d: %w", i, err)
		}
	}
	v.Set(reflect.ValueOf(held))
	return nil
}

func rounded(seconds float64) float64 { return math.Round(seconds*hundredths) / hundredths }

func (e Extra) within() error {
	if len(e) > maxFields {
		return fmt.Errorf("%d fields unknown to this agent; the limit is %d", len(e), maxFields)
	}
	size := 0
	for name, value := range e {
		size += jsonLen(name) + len(value) + len(`"":,`)
	}
	if size > maxExtra {
		return fmt.Errorf("%d bytes of fields unknown to this agent; the limit is %d", size, maxExtra)
	}
	return nil
}

// longer reports whether a string takes more than bound bytes in JSON.
func longer(s string, bound int) bool {
	return len(s) > bound || (len(s) > bound/6 && jsonLen(s) > bound)
}

// jsonLen returns the number of bytes of a string in JSON, without its quotes.
func jsonLen(s string) int {
	b, err := compact(s)
	if err != nil { // cannot happen: every string can be encoded
		return math.MaxInt
	}
	return len(b) - len(`""`)
}

// Shorten cuts a text so that it takes at most bound bytes in JSON, including the mark that shows the cut.
func Shorten(s string, bound int) string {
	if !longer(s, bound) {
		return s
	}
	s = strings.ToValidUTF8(s, "?")
	left := bound - len(cutMark)
	for i, r := range s {
		size := utf8.RuneLen(r)
		if r < ' ' || r == '"' || r == '\\' || r == '\u2028' || r == '\u2029' {
			size = len(`\u0000`) // the most that JSON uses for such a rune
		}
		if left -= size; left < 0 {
			return s[:i] + cutMark
		}
	}
	return s
}

// compact returns JSON on one line, without the HTML escapes of encoding/json, which turn one byte into six.
func compact(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// tooDeep reports whether lists and objects are nested more than maxDepth deep. Its run time is linear for any input.
func tooDeep(b []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

func mostBytes(r any) int {
	if _, is := r.(Rollout); is {
		return MaxRolloutBytes
	}
	return MaxBytes
}
