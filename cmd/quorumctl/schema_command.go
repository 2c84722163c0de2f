// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/config"
)

// The schemas are generated from the Go types and their comments: go test ./cmd/quorumctl -run Schema -update.
//
//go:embed schema/*.json
var schemas embed.FS

// printed declares a JSON document that a command writes with -o json.
type printed struct {
	name    string // name of its schema
	of      any    // a zero value of its Go type
	with    string // the argument, in capitals, or the flag with which the command writes it
	instead string // what the command writes if it ignores -o json
	command *cobra.Command
}

// prints declares what a command writes with -o json.
func (a *app) prints(command *cobra.Command, declared ...printed) *cobra.Command {
	for _, p := range declared {
		p.command = command
		a.printed = append(a.printed, p)
	}
	return command
}

// usage returns the command and its argument or flag.
func (p printed) usage() string {
	path := strings.TrimPrefix(p.command.CommandPath(), "quorumctl ")
	return strings.TrimSpace(path + " " + p.with)
}

// document describes a JSON document that commands write with -o json.
type document struct {
	name     string
	of       any
	commands []string // commands that write the document; arguments are in capitals
}

// documents returns all documents that the commands declare.
func (a *app) documents() []document {
	var all []document
	for _, p := range a.printed {
		if p.instead != "" {
			continue
		}
		i := slices.IndexFunc(all, func(d document) bool { return d.name == p.name })
		if i < 0 {
			i = len(all)
			all = append(all, document{name: p.name, of: p.of})
		}
		all[i].commands = append(all[i].commands, p.usage())
	}
	return all
}

// schemaName is an entry of the list of schemas.
type schemaName struct {
	Name     string   `json:"name"`
	Commands []string `json:"commands"` // commands that write documents of that schema with -o json
}

func (a *app) schemaNames() []string {
	var names []string
	for _, d := range a.documents() {
		names = append(names, d.name)
	}
	return names
}

func (a *app) schemaCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:     "schema [NAME]",
		GroupID: groupService,
		Short:   "List the documents of -o json, or print a JSON Schema",
		Long: "List the documents that commands write with -o json, or print the JSON Schema of one. Within an\n" +
			"apiVersion, fields keep their type and meaning, and new ones may be added: ignore unknown fields.\n" +
			"This does not contact quorumd. To extract fields, use jq.",
		Example: examples("quorumctl schema", "quorumctl schema status > status.schema.json",
			"quorumctl status -o json | jq -r '.hosts[].name'"),
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return a.schemaNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.printSchema(args[0])
			}
			var list []schemaName
			for _, d := range a.documents() {
				list = append(list, schemaName{d.name, d.commands})
			}
			return a.emit(list, func(p *page) {
				t := table{head: []string{"NAME", "WRITTEN WITH -o json BY"}}
				for _, s := range list {
					t.add(cells(s.Name, strings.Join(s.Commands, ", "))...)
				}
				p.table(t)
			})
		},
	}, printed{name: "schemas", of: []schemaName{}}, printed{instead: "a JSON Schema", with: "NAME"})
}

// printSchema writes a schema as JSON, or as YAML with -o yaml.
func (a *app) printSchema(name string) error {
	if !slices.Contains(a.schemaNames(), name) {
		hint := "quorumctl schema lists all documents"
		if near := config.Nearest(name, a.schemaNames()); near != "" {
			hint = "did you mean " + near + "?"
		}
		return usage(hint, "cannot print the schema %q: no such document", name)
	}
	text, err := schemas.ReadFile("schema/" + name + ".json")
	if err == nil && a.format == formatYAML {
		text, err = asYAML(json.RawMessage(text))
	}
	if err != nil {
		return cannot("print the schema", err)
	}
	return a.write(text)
}
