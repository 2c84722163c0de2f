// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const noAliases = "YAML anchors and aliases (&name, *name) are not accepted; write the value out, or quote it if it " +
	"begins with & or *"

// text is a configuration file as parsed YAML.
type text struct {
	name  string
	lines []string
	root  *yaml.Node // top-level mapping
}

// readText parses data as YAML. If that is impossible, it returns the problem.
func readText(name string, data []byte) (text, *Problem) {
	if len(data) > MaxFileSize {
		return text{}, &Problem{File: name, Message: "larger than 1 MiB; this is not a quorumd configuration"}
	}
	t := text{name: name, lines: strings.Split(string(data), "\n")}
	if p := t.checkCharacters(); p != nil {
		return t, p
	}
	p := t.parse(data)
	return t, p
}

// checkCharacters refuses characters that YAML would refuse without a position, and line breaks that only YAML
// recognizes, because they would make line numbers differ from an editor's.
func (t text) checkCharacters() *Problem {
	for i, line := range t.lines {
		line = strings.TrimSuffix(line, "\r")
		if !utf8.ValidString(line) {
			return t.problem(i+1, "not UTF-8 text; save the file as UTF-8")
		}
		bad := strings.IndexFunc(line, func(r rune) bool {
			return r != '\t' && unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
		})
		if bad >= 0 {
			r, _ := utf8.DecodeRuneInString(line[bad:])
			return t.problem(i+1,
				fmt.Sprintf("contains the control character %U; is this a text file? Remove the character", r))
		}
	}
	return nil
}

// parse sets t.root.
func (t *text) parse(data []byte) *Problem {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := decodeNode(decoder, &doc); {
	case errors.Is(err, io.EOF):
		return t.problem(0, noSettings())
	case err != nil:
		return t.syntaxProblem(err)
	}
	switch err := decodeNode(decoder, &second); {
	case err == nil:
		return t.problem(second.Line,
			"a second YAML document begins here; one file is one document, so remove the '---' line or what follows it")
	case !errors.Is(err, io.EOF):
		return t.syntaxProblem(err)
	}
	t.root = doc.Content[0]
	if p := t.checkPlain(t.root); p != nil {
		return p
	}
	switch {
	case isNull(t.root), t.root.Kind == yaml.MappingNode && len(t.root.Content) == 0:
		return t.problem(0, noSettings())
	case t.root.Kind != yaml.MappingNode:
		return t.problem(t.root.Line, "must be keys with values, such as \"mode: observe\", not "+describe(t.root))
	}
	return nil
}

// decodeNode reads the next document. The YAML parser panics if one of its own checks fails, and in some releases a
// file can cause that. A bad file must not stop an agent that reloads it.
func decodeNode(d *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: the parser gave up: %v", p)
		}
	}()
	return d.Decode(into)
}

// checkPlain refuses aliases, anchors and tags, because no configuration needs them, and one line of aliases can expand
// to a gigabyte.
func (t text) checkPlain(n *yaml.Node) *Problem {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return t.problem(n.Line, noAliases)
	case n.Style&yaml.TaggedStyle != 0:
		return t.problem(n.Line,
			"YAML tags (!name) are not accepted; remove the tag, or quote the value if it begins with !")
	}
	for _, child := range n.Content {
		if p := t.checkPlain(child); p != nil {
			return p
		}
	}
	return nil
}

// syntaxProblem converts an error of the YAML parser, which has the form "yaml: line 3: what". The parser counts lines
// from 0 in grammar errors ("did not find expected …"), from 1 in others, and omits the number of the first line.
func (t text) syntaxProblem(err error) *Problem {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if name, ok := strings.CutPrefix(message, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		return t.problem(t.lineWith("*"+name), noAliases)
	}
	line := 1
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, what, ok := strings.Cut(rest, ": "); ok {
			line, _ = strconv.Atoi(number)
			message = what
		}
	}
	if strings.HasPrefix(message, "did not find expected") {
		line = min(line+1, len(t.lines))
	}
	if tab := t.tabIndent(); tab > 0 && tab <= line+1 {
		return t.problem(tab, "indented with a tab; YAML allows only spaces, so replace the tab with spaces")
	}
	return t.problem(line, "not valid YAML from here on: "+message+"; check indentation, colons, quotes and brackets")
}

// lineWith returns the first line that contains s; 0 for none.
func (t text) lineWith(s string) int {
	return slices.IndexFunc(t.lines, func(line string) bool { return strings.Contains(line, s) }) + 1
}

// tabIndent returns the first line indented with a tab; 0 for none. Use it only to explain a syntax error, because YAML
// allows such lines in a few places.
func (t text) tabIndent() int {
	for i, line := range t.lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if strings.Contains(indent, "\t") && strings.TrimSpace(line) != "" {
			return i + 1
		}
	}
	return 0
}

func (t text) problem(line int, message string) *Problem {
	return &Problem{File: t.name, Line: line, Message: message, Source: t.source(line)}
}

// source returns a line of the file for an error; "" if there is no such line.
func (t text) source(line int) string {
	if line < 1 || line > len(t.lines) {
		return ""
	}
	return excerpt(t.lines[line-1])
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// describe names the type of a value, for messages.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a section"
	case isNull(n):
		return "an empty value"
	}
	return quote(n.Value)
}
