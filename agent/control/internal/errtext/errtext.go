// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package errtext describes untrusted input in error messages, for both ends of the control socket.
package errtext

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// JSON returns why a document could not be decoded, without Go's type names.
func JSON(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return fmt.Sprintf("it is a JSON %s, not an object", e.Value)
		}
		return fmt.Sprintf("%s: a JSON %s is not accepted here", Shorten(e.Field), e.Value)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("it is not JSON: error at byte %d: %s", e.Offset, e.Error())
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "the JSON ends too early"
	}
	return Shorten(strings.TrimPrefix(err.Error(), "json: "))
}

// Shorten cuts a text after 80 characters, so that a message cannot repeat a megabyte of input.
func Shorten(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
