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
	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
	"github.com/quorumd/quorumd/cmd/quorumctl/qualify"
	"github.com/quorumd/quorumd/health"
)

// The schemas are generated from the Go types and their comments: go test ./cmd/quorumctl -run Schema -update.
//
//go:embed schema/*.json
var schemas embed.FS

// document describes a JSON document that commands write with -o json.
type document struct {
	name     string   // of its schema
	of       any      // a zero value of its Go type
	commands []string // that write it; arguments are in capitals
}

// documents returns all documents. withoutDocument returns the commands that write none.
func documents() []document {
	return []document{
		{"status", control.Status{}, []string{"status", "wait", "bootstrap"}},
		{"explanation", explanation{}, []string{"explain"}},
		{"code", code{}, []string{"explain CODE"}},
		{"host", control.HostRecord{}, []string{"explain HOST"}},
		{"codes", []code{}, []string{"codes"}},
		{"health", control.Health{}, []string{"health"}},
		{"finding", finding{}, []string{"health CODE"}},
		{"mute", health.Mute{}, []string{"health mute"}},
		{"network", networkDocument{}, []string{"network"}},
		{"history", control.History{}, []string{"history"}},
		{"qualification", qualify.Report{}, []string{"qualify"}},
		{"members", members{}, []string{"member list"}},
		{"removal", control.Removal{}, []string{"member remove --no-wait"}},
		{"removal-end", control.RemovalEnd{}, []string{"member remove"}},
		{"resize", control.Resize{}, []string{"cluster resize"}},
		{"operation", operation{}, []string{"operation show"}},
		{"pause", control.Pause{}, []string{"pause"}},
		{"done", control.Done{}, []string{"resume", "operation release", "health unmute", "bootstrap --yes"}},
		{"maintenance", maintenance{}, []string{"maintenance on", "maintenance off", "maintenance status", "cycle"}},
		{"rollout", rollout{}, []string{
			"rollout start", "rollout status", "rollout pause", "rollout resume", "rollout abort",
		}},
		{"snapshot", control.SnapshotJob{}, []string{
			"snapshot save", "snapshot list", "snapshot verify", "snapshot prune", "snapshot test-restore",
		}},
		{"recovery-facts", recovery.Facts{}, []string{"recover collect"}},
		{"recovery", control.Recovery{}, []string{"recover apply", "recover give-up"}},
		{"recovery-status", recoveryState{}, []string{"recover status"}},
		{"config-check", configCheck{}, []string{"config check"}},
		{"init", initResult{}, []string{"init"}},
		{"ca", caDocument{}, []string{"pki init"}},
		{"bundles", bundleList{}, []string{"pki host", "pki renew"}},
		{"certificates", []pki.Certificate{}, []string{"pki status"}},
		{"installed", pki.Installed{}, []string{"pki install"}},
		{"trusted", pki.Trusted{}, []string{"pki trust"}},
		{"rotation", pki.Rotation{}, []string{
			"pki rotate begin", "pki rotate next", "pki rotate undo", "pki rotate status",
		}},
		{"versions", versions{}, []string{"version"}},
		{"schemas", []schemaName{}, []string{"schema"}},
	}
}

// withoutDocument returns the commands that ignore -o json.
func withoutDocument() []string {
	return []string{
		"check",                                            // the format of Nagios plugins
		"config default",                                   // YAML
		"config show",                                      // YAML
		"member add", "member promote", "snapshot restore", // only explain
		"recover plan",   // writes a file for quorumd
		"schema NAME",    // a JSON Schema
		"support-bundle", // writes an archive
	}
}

// schemaName is an entry of the list of schemas.
type schemaName struct {
	Name     string   `json:"name"`
	Commands []string `json:"commands"` // that write documents of that schema with -o json
}

func schemaNames() []string {
	var names []string
	for _, d := range documents() {
		names = append(names, d.name)
	}
	return names
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema [NAME]",
		GroupID: groupService,
		Short:   "List the documents of -o json, or print a JSON Schema",
		Long: "List the documents that commands write with -o json, or print the JSON Schema of one. Within an\n" +
			"apiVersion, fields keep their type and meaning, and new ones may be added: ignore unknown fields.\n" +
			"This does not contact quorumd. To extract fields, use jq.",
		Example: examples("quorumctl schema", "quorumctl schema status > status.schema.json",
			"quorumctl status -o json | jq -r '.hosts[].name'"),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(schemaNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.printSchema(args[0])
			}
			var list []schemaName
			for _, d := range documents() {
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
	}
}

// printSchema writes a schema as JSON, or as YAML with -o yaml.
func (a *app) printSchema(name string) error {
	if !slices.Contains(schemaNames(), name) {
		hint := "quorumctl schema lists all"
		if near := config.Nearest(name, schemaNames()); near != "" {
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
