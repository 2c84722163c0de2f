// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quorumd/quorumd/disk/atomicfile"
)

// environmentHeader is the first line of every environment file that quorumd writes. It must not end in a backslash,
// because older systemd would then read the next line as part of the comment.
const environmentHeader = "# Written by quorumd. Changes made by hand are lost when it writes again.\n"

// maxAssignment is the maximum length of one NAME=value in bytes: the kernel's MAX_ARG_STRLEN, 32 pages, less the final
// NUL. A longer one makes every exec fail with "argument list too long".
const maxAssignment = 32*4096 - 1

// writeEnvironment replaces the content of the file at path with vars, unless the file already contains exactly these.
func writeEnvironment(path string, vars map[string]string) error {
	text, err := formatEnvironment(vars)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return atomicfile.Write(path, text, 0o644, true)
}

// readEnvironment reads the file at path. A missing file has no variables.
func readEnvironment(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	return parseEnvironment(string(text))
}

// formatEnvironment formats vars as systemd's EnvironmentFile= reads them, sorted, in double quotes. Inside the quotes,
// all versions of systemd treat a backslash before each of "\`$ as an escape and every other character literally.
func formatEnvironment(vars map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(environmentHeader)
	escape := strings.NewReplacer(`"`, `\"`, `\`, `\\`, "`", "\\`", `$`, `\$`)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if err := checkVariable(name, vars[name]); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s=\"%s\"\n", name, escape.Replace(vars[name]))
	}
	return b.Bytes(), nil
}

// checkVariable returns an error for a variable that systemd would ignore with only a log line, or that would make the
// exec fail. The error does not contain the value, which may be a secret.
func checkVariable(name, value string) error {
	if !validName(name) {
		return fmt.Errorf("environment variable %q has no valid name: "+
			"use letters, digits and underscores, with no digit first", name)
	}
	if len(name)+1+len(value) > maxAssignment {
		return fmt.Errorf("environment variable %s is too long: its value has %d bytes, but NAME=value may have at "+
			"most %d", name, len(value), maxAssignment)
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("environment variable %s is not valid UTF-8: systemd would refuse it", name)
	}
	control := func(r rune) bool { return r != '\t' && (r < ' ' || r == unicode.MaxASCII) }
	if i := strings.IndexFunc(value, control); i >= 0 {
		return fmt.Errorf("environment variable %s has a control character (%q, at byte %d): remove it", name,
			value[i], i)
	}
	return nil
}

func validName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		digit := '0' <= c && c <= '9'
		if !letter && (!digit || i == 0) {
			return false
		}
	}
	return name != ""
}

const (
	newlines = "\n\r"
	blanks   = " \t" + newlines
)

// parseEnvironment parses text by the rules of EnvironmentFile= in systemd.exec(5), including files written by hand:
// comments, quotes, values over several lines. Like systemd, it skips lines without "=" and variables without a valid
// name.
func parseEnvironment(text string) (map[string]string, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("the environment file is not valid UTF-8: rewrite it as UTF-8")
	}
	vars := map[string]string{}
	for {
		text = strings.TrimLeft(text, blanks)
		if text == "" {
			return vars, nil
		}
		line, _ := cutAny(text, newlines)
		name, _, isAssignment := strings.Cut(line, "=")
		if text[0] == '#' || text[0] == ';' || !isAssignment {
			text = text[len(line):]
			continue
		}
		var value string
		value, text = parseValue(text[len(name)+1:])
		if name = strings.TrimRight(name, blanks); validName(name) {
			vars[name] = value
		}
	}
}

// parseValue parses one value, which can consist of several quoted parts and an unquoted rest. It returns the value and
// the text after it.
func parseValue(text string) (value, rest string) {
	var b strings.Builder
	for {
		text = strings.TrimLeft(text, " \t")
		switch {
		case text == "" || strings.IndexByte(newlines, text[0]) >= 0:
			return b.String(), text
		case text[0] == '\'':
			var part string
			part, text = cutAny(text[1:], "'")
			text = strings.TrimPrefix(text, "'")
			b.WriteString(part)
		case text[0] == '"':
			text = parseQuoted(&b, text[1:])
		default:
			return b.String() + parsePlain(&text), text
		}
	}
}

// parseQuoted appends the text up to the closing double quote to b, and returns the text after that quote.
func parseQuoted(b *strings.Builder, text string) (rest string) {
	for {
		part, found := cutAny(text, `"\`)
		b.WriteString(part)
		if found == "" || found[0] == '"' {
			return strings.TrimPrefix(found, `"`)
		}
		if len(found) < 2 {
			return ""
		}
		switch c := found[1]; {
		case strings.IndexByte("\"\\`$", c) >= 0:
			b.WriteByte(c)
		case c != '\n': // a backslash at the end of a line joins it with the next
			b.WriteString(found[:2])
		}
		text = found[2:]
	}
}

// parsePlain parses an unquoted value up to the end of the line, drops trailing spaces, and advances text past the
// value. A backslash makes the next character literal, or joins two lines.
func parsePlain(text *string) string {
	var b strings.Builder
	keep := 0 // length of the result up to the last escaped character; trailing spaces are dropped only after it
	for {
		part, found := cutAny(*text, newlines+`\`)
		b.WriteString(part)
		*text = found
		if found == "" || found[0] != '\\' {
			break
		}
		*text = found[min(2, len(found)):]
		if len(found) > 1 && strings.IndexByte(newlines, found[1]) < 0 {
			b.WriteByte(found[1])
		}
		keep = b.Len()
	}
	s := b.String()
	return s[:keep] + strings.TrimRight(s[keep:], blanks)
}

// cutAny cuts text before the first character that is in chars. Without one, rest is empty.
func cutAny(text, chars string) (before, rest string) {
	if i := strings.IndexAny(text, chars); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}
