// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// YAML returns the configuration as a file with every key, including defaults, but without optional sections that are
// not set. Parse returns an equal Config for it.
func (c Config) YAML() ([]byte, error) {
	data, err := yaml.Marshal(sectionNode(reflect.ValueOf(c)))
	if err != nil {
		return nil, fmt.Errorf("cannot write the configuration as YAML: %w", err)
	}
	return data, nil
}

func sectionNode(v reflect.Value) *yaml.Node {
	section := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range keysOf(v.Type(), "") {
		value := v.FieldByIndex(k.field.Index)
		if k.optional() {
			if value.IsNil() {
				continue
			}
			value = value.Elem()
		}
		if value.Kind() == reflect.Struct {
			section.Content = append(section.Content, textNode(k.name), sectionNode(value))
			continue
		}
		section.Content = append(section.Content, textNode(k.name), valueNode(value))
	}
	return section
}

func valueNode(v reflect.Value) *yaml.Node {
	switch value := v.Interface().(type) {
	case time.Duration:
		return plainNode(durationfmt.Parseable(value))
	case Size:
		return plainNode(value.String())
	case []string:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, entry := range value {
			list.Content = append(list.Content, textNode(entry))
		}
		return list
	case map[string]string:
		variables := &yaml.Node{Kind: yaml.MappingNode}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			variables.Content = append(variables.Content, textNode(name), textNode(value[name]))
		}
		return variables
	}
	if v.Kind() == reflect.String {
		return textNode(v.String())
	}
	return plainNode(fmt.Sprint(v.Interface()))
}

// textNode returns a text node, quoted if YAML would read it as a different type.
func textNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// plainNode returns a node for a value written as is.
func plainNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: s}
}
