// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder fills a Config from the nodes of a file and collects the problems. It walks the nodes itself, because the
// YAML library reports neither unknown keys nor positions if a type decodes itself.
type decoder struct {
	text
	setAt map[string]int  // key path -> line that sets it
	bad   map[string]bool // key paths with a problem; rules skip them
	errs  Errors
}

// key is one declared key: a field of a section.
type key struct {
	path  string // "timing.lockTTL"
	name  string // "lockTTL"
	field reflect.StructField
}

// keysOf lists the keys of a section type with the given path; "" is the top level.
func keysOf(section reflect.Type, path string) []key {
	var keys []key
	for field := range section.Fields() {
		name := field.Tag.Get("yaml")
		if name == "-" {
			continue
		}
		keys = append(keys, key{path: join(path, name), name: name, field: field})
	}
	return keys
}

// allKeys lists every key below a section type, including sections, in the order of declaration.
func allKeys(section reflect.Type, path string) []key {
	var keys []key
	for _, k := range keysOf(section, path) {
		keys = append(keys, k)
		if sub, ok := k.section(); ok {
			keys = append(keys, allKeys(sub, k.path)...)
		}
	}
	return keys
}

func join(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}

func (k key) tag(name string) string { return k.field.Tag.Get(name) }

// section returns the struct type of a key that is a section.
func (k key) section() (reflect.Type, bool) {
	t := k.field.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t, t.Kind() == reflect.Struct
}

// optional reports whether the key is a section that is nil if the file does not have it.
func (k key) optional() bool { return k.field.Type.Kind() == reflect.Pointer }

// add reports a problem of the key at path and marks its value as unusable.
func (d *decoder) add(path string, line int, message string) {
	d.bad[path] = true
	d.addRule(path, line, message)
}

// addRule reports a problem and keeps the value usable.
func (d *decoder) addRule(path string, line int, message string) {
	if !d.full() {
		d.errs = append(d.errs, Problem{File: d.name, Line: line, Key: path, Message: message, Source: d.source(line)})
	}
}

func (d *decoder) full() bool { return len(d.errs) > maxProblems }

// allErrors returns the collected problems. If there were too many, the last problem reports that.
func (d *decoder) allErrors() Errors {
	if !d.full() {
		return d.errs.sorted()
	}
	more := Problem{File: d.name, Message: fmt.Sprintf("more than %d problems; the others are not listed", maxProblems)}
	return append(d.errs[:maxProblems].sorted(), more)
}

// section reads a mapping into the struct v. A nil node is a section that is missing from the file.
func (d *decoder) section(n *yaml.Node, v reflect.Value, path string) {
	given := map[string]*yaml.Node{}
	if n != nil {
		given = d.pairs(n, v.Type(), path)
	}
	for _, k := range keysOf(v.Type(), path) {
		d.value(given[k.name], v.FieldByIndex(k.field.Index), k)
	}
}

// pairs returns the entries of a mapping by key, and reports unknown and duplicate keys.
func (d *decoder) pairs(n *yaml.Node, section reflect.Type, path string) map[string]*yaml.Node {
	keys := keysOf(section, path)
	given := map[string]*yaml.Node{}
	for name, value := range entries(n) {
		at := join(path, showKey(name))
		known := slices.ContainsFunc(keys, func(k key) bool { return k.name == name.Value })
		switch {
		case name.Kind != yaml.ScalarNode:
			d.add(at, name.Line, "a key must be a plain word")
		case !known && !d.full(): // no suggestion if there are too many problems: it costs time
			d.add(at, name.Line, "unknown key; "+suggest(name.Value, path))
		case !known:
		case given[name.Value] != nil:
			d.add(at, name.Line, fmt.Sprintf("given twice, first on line %d; remove one", d.setAt[at]))
		default:
			given[name.Value] = value
			d.setAt[at] = name.Line
		}
	}
	return given
}

// entries iterates over the keys and values of a mapping.
func entries(n *yaml.Node) func(yield func(name, value *yaml.Node) bool) {
	return func(yield func(name, value *yaml.Node) bool) {
		for pair := range slices.Chunk(n.Content, 2) {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}
}

// showKey formats a key for a path; it is quoted if it is not a plain word.
func showKey(n *yaml.Node) string {
	plain := n.Value != "" && len(n.Value) <= 60 && !strings.ContainsFunc(n.Value, func(r rune) bool {
		return !isAlphanumeric(r) && r != '_' && r != '-'
	})
	switch {
	case n.Kind != yaml.ScalarNode:
		return "?"
	case plain:
		return n.Value
	}
	return quote(n.Value)
}

// value reads one key. A nil node is a key that is missing from the file.
func (d *decoder) value(n *yaml.Node, v reflect.Value, k key) {
	if sub, ok := k.section(); ok {
		d.subsection(n, v, k, sub)
		return
	}
	switch {
	case n == nil && k.tag("required") != "":
		section := strings.TrimSuffix(k.path, "."+k.name)
		d.add(k.path, d.setAt[section], "missing; set it, for example "+k.example())
	case n == nil:
		d.setDefault(v, k)
	case isNull(n):
		d.add(k.path, n.Line, "has no value; give it one, or remove the key")
	case v.Kind() == reflect.Slice:
		d.list(n, v, k)
	case v.Kind() == reflect.Map:
		d.environment(n, v, k)
	case n.Kind != yaml.ScalarNode:
		d.add(k.path, n.Line, "must be "+k.kind()+", not "+describe(n))
	default:
		d.report(k.path, n, setScalar(v, k, n))
	}
}

// subsection reads a key that is a section. A key without a value, such as one followed only by comments, counts as
// missing.
func (d *decoder) subsection(n *yaml.Node, v reflect.Value, k key, section reflect.Type) {
	switch {
	case n == nil || isNull(n):
		if !k.optional() {
			d.section(nil, v, k.path)
		}
		return
	case n.Kind != yaml.MappingNode:
		d.add(k.path, n.Line, "must be a section with keys of its own, not "+describe(n))
		for _, below := range allKeys(section, k.path) {
			d.bad[below.path] = true
		}
		return
	}
	if k.optional() {
		v.Set(reflect.New(section))
		v = v.Elem()
	}
	d.section(n, v, k.path)
}

// setDefault sets v to the declared default. The test of the default file checks that every default is valid.
func (d *decoder) setDefault(v reflect.Value, k key) {
	if v.Kind() == reflect.Slice {
		for _, entry := range listOf(k.tag("default")) {
			v.Set(reflect.Append(v, reflect.ValueOf(entry)))
		}
		return
	}
	if text := k.tag("default"); text != "" && v.Kind() != reflect.Map {
		d.report(k.path, &yaml.Node{}, setScalar(v, k, &yaml.Node{Kind: yaml.ScalarNode, Value: text}))
	}
}

func (d *decoder) report(path string, n *yaml.Node, err error) {
	if err != nil {
		d.add(path, n.Line, err.Error())
	}
}

// list reads a list of texts without duplicates. It may be empty only if it has a default.
func (d *decoder) list(n *yaml.Node, v reflect.Value, k key) {
	_, optional := k.field.Tag.Lookup("default")
	switch {
	case n.Kind != yaml.SequenceNode:
		d.add(k.path, n.Line, "must be "+k.kind()+", not "+describe(n)+"; write "+k.example())
		return
	case len(n.Content) == 0 && !optional:
		d.add(k.path, n.Line, "must have at least one entry; write "+k.example())
		return
	}
	first := map[string]int{}
	for i, entry := range n.Content {
		path := fmt.Sprintf("%s[%d]", k.path, i)
		element := reflect.New(v.Type().Elem()).Elem()
		if entry.Kind != yaml.ScalarNode || isNull(entry) {
			d.add(path, entry.Line, "must be "+k.format().kind+", not "+describe(entry))
		} else if err := setScalar(element, k, entry); err != nil {
			d.add(path, entry.Line, err.Error())
		} else if line := first[element.String()]; line > 0 {
			d.add(path, entry.Line, fmt.Sprintf("%s is listed twice, first on line %d; remove one",
				quote(element.String()), line))
		} else {
			first[element.String()] = entry.Line
			d.setAt[path] = entry.Line
			v.Set(reflect.Append(v, element))
			continue
		}
		d.bad[k.path] = true
	}
}

// environment reads a mapping of variables. Values are taken as written, so that numbers need no quotes.
func (d *decoder) environment(n *yaml.Node, v reflect.Value, k key) {
	if n.Kind != yaml.MappingNode {
		d.add(k.path, n.Line, "must be variables and values, such as \"ETCD_LOG_LEVEL: warn\", not "+describe(n))
		return
	}
	if len(n.Content) > 0 {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for name, value := range entries(n) {
		path := join(k.path, showKey(name))
		if err := checkVariable(name.Value); err != nil {
			d.add(path, name.Line, err.Error())
		} else if line := d.setAt[path]; line > 0 {
			d.add(path, name.Line, fmt.Sprintf("given twice, first on line %d; remove one", line))
		} else if value.Kind != yaml.ScalarNode || isNull(value) {
			d.add(path, value.Line, "must be text, not "+describe(value))
		} else if err := checkPrintable(value.Value); err != nil {
			d.add(path, value.Line, err.Error())
		} else {
			v.SetMapIndex(reflect.ValueOf(name.Value), reflect.ValueOf(value.Value))
		}
		d.setAt[path] = name.Line
	}
}
