// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// kind is the type constraint of Encode and Decode, which handle the extra fields of every record type alike.
type kind interface {
	Host | Lock | Op | Pause | Queue | Rollout | Release | Repairs | Recovered | Backup | Manifests | Saving |
		RestoreTest | Size | Retired |
		Line
}

// Encode returns the JSON of a record, with Version and its unknown fields. Texts for operators are shortened to their
// bound. A record that Decode would refuse is an error.
func Encode[T kind](r T) ([]byte, error) {
	if err := within(&r, false); err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", r, err)
	}
	version, extra := header(&r)
	*version = Version
	b, err := compact(r)
	if err == nil && len(*extra) > 0 {
		all := maps.Clone(*extra)
		if err = json.Unmarshal(b, &all); err == nil { // known fields replace extra ones
			b, err = compact(all)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", r, err)
	}
	if most := mostBytes(r); len(b) > most {
		return nil, fmt.Errorf("cannot encode %T: %d bytes; the limit is %d", r, len(b), most)
	}
	return b, nil
}

// Decode reads a record. Its error wraps ErrVersion if the version is unknown. Field names are case-sensitive: "KIND"
// is an unknown field. The result can be encoded.
func Decode[T kind](b []byte) (T, error) {
	var none T
	if most := mostBytes(none); len(b) > most {
		return none, fmt.Errorf("cannot read %T: %d bytes; the limit is %d", none, len(b), most)
	}
	if r, ok := decodeOwn[T](b); ok {
		return r, nil
	}
	r, err := decodeOther[T](b)
	if err == nil {
		if err = within(&r, true); err == nil {
			_, err = Encode(r) // the complete record may take more bytes than were read
		}
	}
	if err != nil {
		return none, fmt.Errorf("cannot read %T: %w", none, err)
	}
	return r, nil
}

// decodeOther reads a record whose JSON differs from what this agent would write.
func decodeOther[T kind](b []byte) (r T, err error) {
	if tooDeep(b) {
		return r, fmt.Errorf("lists and objects are nested more than %d deep", maxDepth)
	}
	rest := Extra{}
	if err := json.Unmarshal(b, &rest); err != nil {
		return r, err
	}
	known := takeFields(rest, fieldNames(r))
	if err := checkVersion(known["version"]); err != nil {
		return r, err
	}
	fields, err := json.Marshal(known)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(fields, &r); err != nil {
		return r, err
	}
	if len(rest) > 0 {
		_, extra := header(&r)
		*extra = rest
	}
	return r, nil
}

// decodeOwn reads a record whose JSON is exactly what this agent would write, which is the common case. Such a record
// needs no further checks.
func decodeOwn[T kind](b []byte) (r T, ok bool) {
	if err := json.Unmarshal(b, &r); err != nil {
		return r, false
	}
	again, err := Encode(r)
	return r, err == nil && bytes.Equal(again, b) && within(&r, true) == nil
}

// takeFields removes the named fields from all and returns them. Otherwise json.Unmarshal, which ignores case, would
// let a field "KIND" overwrite "kind".
func takeFields(all Extra, names []string) Extra {
	taken := Extra{}
	for _, name := range names {
		if value, ok := all[name]; ok {
			taken[name] = value
			delete(all, name)
		}
	}
	return taken
}

func checkVersion(field json.RawMessage) error {
	if field == nil {
		return errors.New("it has no version: it was not written by quorumd")
	}
	var version int
	if err := json.Unmarshal(field, &version); err != nil {
		return fmt.Errorf("its version: %w", err)
	}
	if version != Version {
		return fmt.Errorf("%w %d; this agent reads %d: upgrade quorumd on this host", ErrVersion, version, Version)
	}
	return nil
}

func header(r any) (version *int, extra *Extra) {
	switch r := r.(type) {
	case *Host:
		return &r.Version, &r.Extra
	case *Lock:
		return &r.Version, &r.Extra
	case *Op:
		return &r.Version, &r.Extra
	case *Pause:
		return &r.Version, &r.Extra
	case *Queue:
		return &r.Version, &r.Extra
	case *Rollout:
		return &r.Version, &r.Extra
	case *Release:
		return &r.Version, &r.Extra
	case *Repairs:
		return &r.Version, &r.Extra
	case *Recovered:
		return &r.Version, &r.Extra
	case *Backup:
		return &r.Version, &r.Extra
	case *Manifests:
		return &r.Version, &r.Extra
	case *Saving:
		return &r.Version, &r.Extra
	case *RestoreTest:
		return &r.Version, &r.Extra
	case *Size:
		return &r.Version, &r.Extra
	case *Retired:
		return &r.Version, &r.Extra
	case *Line:
		return &r.Version, &r.Extra
	}
	panic(fmt.Sprintf("%T is not a record", r)) // kind and this switch list the same types
}
