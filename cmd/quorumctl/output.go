// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"
)

// format is the value of --output.
type format string

const (
	formatTable format = "table"
	formatWide  format = "wide"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

// colour is the value of --color.
type colour string

const (
	colourAuto   colour = "auto"
	colourAlways colour = "always"
	colourNever  colour = "never"
)

func formats() []string { return []string{"table", "wide", "json", "yaml"} }
func colours() []string { return []string{"auto", "always", "never"} }

// Set, String and Type implement pflag.Value.
func (f *format) Set(s string) error { return choose((*string)(f), s, formats()) }
func (f *format) String() string     { return string(*f) }
func (*format) Type() string         { return "FORMAT" }
func (c *colour) Set(s string) error { return choose((*string)(c), s, colours()) }
func (c *colour) String() string     { return string(*c) }
func (*colour) Type() string         { return "WHEN" }

func choose(into *string, s string, from []string) error {
	if !slices.Contains(from, s) {
		return fmt.Errorf("use one of %s", strings.Join(from, ", "))
	}
	*into = s
	return nil
}

// emit writes a document as text, JSON or YAML.
func (a *app) emit(doc any, text func(*page)) error {
	b, err := a.render(doc, text)
	if err != nil {
		return err
	}
	return a.write(b)
}

// emitResult writes the document of a completed request, or returns the error of the request. action names the request
// in the error.
func (a *app) emitResult(action string, err error, doc any, text func(*page)) error {
	if err != nil {
		return cannot(action, err)
	}
	return a.emit(doc, text)
}

func (a *app) render(doc any, text func(*page)) (b []byte, err error) {
	switch a.format {
	case formatJSON:
		b, err = asJSON(doc)
	case formatYAML:
		b, err = asYAML(doc)
	default:
		p := &page{
			coloured: a.coloured(), wide: a.format == formatWide, blocks: isTerminal(a.out), maxWidth: a.columns,
			piped: a.piped, noHeaders: a.noHeaders,
		}
		text(p)
		b = []byte(p.String())
	}
	if err != nil {
		return nil, cannot("encode the output", err)
	}
	return b, nil
}

func (a *app) write(b []byte) error {
	if _, err := a.out.Write(b); err != nil {
		return cannot("write the output", err)
	}
	return nil
}

func asJSON(doc any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(doc)
	return escape(b.Bytes(), func(r rune) string {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	}), err
}

// asYAML returns a document as YAML, with the field names and the field order of its JSON. JSON is valid YAML, so only
// the style changes.
func asYAML(doc any) ([]byte, error) {
	var b bytes.Buffer
	in := json.NewEncoder(&b)
	in.SetEscapeHTML(false)
	if err := in.Encode(doc); err != nil {
		return nil, err
	}
	inYAML := func(r rune) string { return fmt.Sprintf(`\U%08x`, r) }
	var node yaml.Node
	if err := yaml.Unmarshal(escape(b.Bytes(), inYAML), &node); err != nil {
		return nil, err
	}
	blockStyle(&node)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return nil, err
	}
	return escape(out.Bytes(), inYAML), enc.Close()
}

// blockStyle selects YAML's block style instead of JSON's braces and quotes. Strings with unprintable characters stay
// in double quotes, because only those allow escapes.
func blockStyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && strings.ContainsFunc(n.Value, unprintable) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		blockStyle(child)
	}
}

// escape replaces unprintable characters other than newlines with the result of as. They occur only in quoted strings.
func escape(b []byte, as func(rune) string) []byte {
	var out bytes.Buffer
	for _, r := range string(b) {
		if r != '\n' && unprintable(r) {
			out.WriteString(as(r))
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// supportsANSI reports whether the output goes to a terminal with colours and cursor movement. It ignores NO_COLOR,
// which disables only colours.
func supportsANSI(w io.Writer) bool {
	term := os.Getenv("TERM")
	return isTerminal(w) && term != "" && term != "dumb"
}

// isTerminal reports whether an input or output is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
