// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/contrib/schemadoc"
)

// declaredApp returns an app with the declarations of all commands.
func declaredApp() *app {
	a := &app{}
	a.rootCommand()
	return a
}

func documents() []document { return declaredApp().documents() }

// withoutDocument returns the commands that ignore -o json.
func withoutDocument() []string {
	var all []string
	for _, p := range declaredApp().printed {
		if p.instead != "" {
			all = append(all, p.usage())
		}
	}
	return all
}

// TestSchemasMatchTheGoTypes compares the schema files with the Go types. -update rewrites them, unless that
// would break programs that read the documents.
func TestSchemasMatchTheGoTypes(t *testing.T) {
	t.Parallel()
	doc := schemadoc.NewReader("../..")
	files := map[string]bool{}
	for _, d := range documents() {
		path := filepath.Join("schema", d.name+".json")
		files[path] = true
		made := schemaOf(t, doc, d)
		text, err := json.MarshalIndent(made, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, '\n')
		was, err := os.ReadFile(path)
		var broken []string
		if err == nil {
			broken = breakingChanges(read(t, was), made, d.name)
		}
		for _, what := range broken {
			t.Errorf("%s: this breaks programs that read it, so it needs another apiVersion (then delete %s)", what,
				path)
		}
		if flag.Lookup("update").Value.String() == "true" && len(broken) == 0 {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if !bytes.Equal(was, text) {
			t.Errorf("%s does not match its Go type; go test ./cmd/quorumctl -run Schema -update rewrites it", path)
		}
	}
	there, err := filepath.Glob("schema/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range there {
		if !files[path] {
			t.Errorf("%s belongs to no document", path)
		}
	}
}

// schemaOf generates the schema of a Go type. It allows unknown fields, because newer versions add some.
func schemaOf(t *testing.T, doc *schemadoc.Reader, d document) *jsonschema.Schema {
	t.Helper()
	made, err := doc.Schema(reflect.TypeOf(d.of))
	if err != nil {
		t.Fatal(err)
	}
	made.Schema = "https://json-schema.org/draft/2020-12/schema"
	made.Title = "quorumctl " + d.name
	made.Comment = "written with -o json by: " + strings.Join(d.commands, ", ")
	return made
}

func read(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	s := &jsonschema.Schema{}
	if err := json.Unmarshal(text, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// breakingChanges lists the changes that could break a program written for the old schema.
func breakingChanges(was, is *jsonschema.Schema, at string) []string {
	if is == nil {
		return []string{at + " is gone"}
	}
	var all []string
	for _, kind := range kinds(is) {
		if !slices.Contains(kinds(was), kind) {
			all = append(all, at+" may be "+kind)
		}
	}
	for _, name := range was.Required {
		if !slices.Contains(is.Required, name) && is.Properties[name] != nil {
			all = append(all, at+"."+name+" may be missing")
		}
	}
	for name, property := range was.Properties {
		all = append(all, breakingChanges(property, is.Properties[name], at+"."+name)...)
	}
	if was.Items != nil {
		all = append(all, breakingChanges(was.Items, is.Items, at+"[]")...)
	}
	slices.Sort(all)
	return all
}

func kinds(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

func TestBreakingSchemaChangesAreDetected(t *testing.T) {
	t.Parallel()
	type part struct {
		Name string `json:"name"`
	}
	type old struct {
		A string  `json:"a"`
		B int     `json:"b"`
		C *part   `json:"c"`
		D []part  `json:"d"`
		E float64 `json:"e"`
	}
	type other struct {
		Title string `json:"title"`
		Name  int    `json:"name"`
	}
	type changed struct {
		A string  `json:"a,omitempty"`
		C *other  `json:"c"`
		D []part  `json:"d"`
		E *string `json:"e"`
		F string  `json:"f"`
	}
	of := func(v any) *jsonschema.Schema {
		s, err := jsonschema.ForType(reflect.TypeOf(v), nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := []string{
		"x.a may be missing", "x.b is gone", "x.c.name may be integer", "x.e may be null", "x.e may be string",
	}
	if got := breakingChanges(of(old{}), of(changed{}), "x"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := breakingChanges(of(old{}), of(old{}), "x"); len(got) > 0 {
		t.Errorf("nothing has changed: %q", got)
	}
}

// matchingSchemas checks the -o json output of a command against that command's schemas, with no unknown field allowed,
// and returns the names of the schemas that match.
func matchingSchemas(t *testing.T, args []string, stdout string) []string {
	t.Helper()
	i := slices.Index(args, "-o")
	if i < 0 || i+1 >= len(args) || args[i+1] != "json" || stdout == "" {
		return nil
	}
	cmd, _, err := (&app{}).rootCommand().Find(args)
	if err != nil {
		return nil
	}
	path := strings.TrimPrefix(cmd.CommandPath(), "quorumctl ")
	var fit []string
	dec := json.NewDecoder(strings.NewReader(stdout))
	for dec.More() {
		var doc any
		if err := dec.Decode(&doc); err != nil {
			t.Errorf("%q writes no JSON: %v\n%s", args, err, stdout)
			return fit
		}
		var why []string
		known := len(fit)
		for _, d := range documents() {
			if !slices.ContainsFunc(d.commands, func(c string) bool { return commandOf(c) == path }) {
				continue
			}
			if err := strictSchema(t, d.name).Validate(doc); err != nil {
				why = append(why, d.name+": "+err.Error())
			} else {
				fit = append(fit, d.name)
			}
		}
		if len(fit) == known && !slices.ContainsFunc(withoutDocument(), func(c string) bool {
			return commandOf(c) == path
		}) {
			t.Errorf("%q writes a document that matches none of its schemas: %s\n%s", args,
				strings.Join(why, "; "), stdout)
		}
	}
	return fit
}

// commandOf strips flags and arguments.
func commandOf(text string) string {
	var words []string
	for _, w := range strings.Fields(text) {
		if !strings.HasPrefix(w, "-") && w != strings.ToUpper(w) {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// strictSchema parses a schema so that it allows only the fields it names.
func strictSchema(t *testing.T, name string) *jsonschema.Resolved {
	t.Helper()
	text, err := schemas.ReadFile("schema/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	s := read(t, text)
	closeFields(s)
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func closeFields(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Properties != nil {
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
	for _, property := range s.Properties {
		closeFields(property)
	}
	closeFields(s.Items)
}

func TestEveryCommandHasADocumentOrIsExempt(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, d := range documents() {
		for _, c := range d.commands {
			listed[commandOf(c)] = true
		}
	}
	for _, c := range withoutDocument() {
		listed[commandOf(c)] = true
	}
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "quorumctl ")
		if !listed[path] && !cmd.HasSubCommands() {
			t.Errorf("quorumctl %s declares no document: wrap it in a.prints", path)
		}
		delete(listed, path)
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look((&app{}).rootCommand())
	for path := range listed {
		t.Errorf("there is no quorumctl %s", path)
	}
}

func TestDocumentsOfOneNameHaveOneType(t *testing.T) {
	t.Parallel()
	types := map[string]reflect.Type{}
	for _, p := range declaredApp().printed {
		if p.instead != "" {
			continue
		}
		is := reflect.TypeOf(p.of)
		if was := types[p.name]; is == nil || was != nil && was != is {
			t.Errorf("quorumctl %s declares %s as %v, another command as %v", p.usage(), p.name, is, was)
		}
		types[p.name] = is
	}
}

// TestOutputMatchesItsSchema covers each document with a real command, except those that seen contains from the start.
// The other tests check their output, too.
func TestOutputMatchesItsSchema(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{
		"qualification":  true, // slow; its own test covers it
		"recovery":       true, // recover apply needs a plan, which needs real facts
		"installed":      true, // written below, but only if root runs the test
		"database-usage": true, // needs a database; its own test covers it
	}
	write := func(d *fakeBackend, lines ...string) {
		d.lines, d.snapshot, d.checks = sampleHistory(), finishedJob(), slowDiskChecks(t)
		socket, _ := serve(t, d)
		for _, line := range lines {
			args := append(splitLine(line), "-o", "json")
			r := quorumctl(t, socket, args...)
			fit := matchingSchemas(t, args, r.stdout)
			if len(fit) == 0 {
				t.Errorf("%s: exit %d: %s%s", line, r.code, r.stdout, r.stderr)
			}
			for _, name := range fit {
				seen[name] = true
			}
		}
	}
	write(scene(t, "joining"), "status", "wait --for health=OK --timeout 5s", "explain", "explain NO_QUORUM",
		"explain n2", "codes", "health", "health DISK_FSYNC_SLOW", "health mute DISK_FSYNC_SLOW --reason x", "network",
		"history", "member list", "operation show", "pause --reason x", "resume", "recover collect",
		"recover status", "version",
		"schema")
	write(scene(t, "fresh"), "bootstrap", "bootstrap --yes")
	write(scene(t, "rollout"), "rollout status", "rollout start restart --yes --reason x", "snapshot list")
	write(maintenanceBackend(t), "maintenance on --reason x", "maintenance status", "maintenance off")
	write(shrinking(t), "cluster resize", "cluster resize 1 --dry-run", "cluster resize 1 --yes")
	write(transferring(t), "leader transfer n2 --dry-run", "leader transfer n2 --yes")
	write(transferredTo(t, ""), "leader transfer n2 --yes --wait")
	write(retiring(t), "retire n3 --dry-run --reason x", "retire n3 --yes --reason x", "retire",
		"retire n3 --undo --yes")
	write(scene(t, "steady"), "member remove n3 --yes --reason x --no-wait")
	write(removalBackend(t, policy.Removed, "it is removed"), "member remove n3 --yes --reason x")
	file := filepath.Join(t.TempDir(), "quorumd.yaml")
	if err := os.WriteFile(file, config.Default(), 0o600); err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(t.TempDir(), "pki")
	write(&fakeBackend{}, "config check --elsewhere "+file,
		"init --dry-run --name n1 --hosts n1=127.0.0.1 --file "+file,
		"pki init --dir "+authority, "pki host n1 127.0.0.1 --dir "+authority, "pki status "+authority,
		"pki rotate begin --dir "+authority, "pki install --any-address --etcd-group root --quorumd-group root --dir "+
			authority+"/n1 "+authority+"/n1.tar", "pki trust "+authority+"/trust-both.tar --dir "+authority+"/n1")
	for _, name := range declaredApp().schemaNames() {
		if !seen[name] {
			t.Errorf("no command has written a document of the schema %s", name)
		}
	}
}

func TestSchemaPrintsTheFile(t *testing.T) {
	t.Parallel()
	for _, d := range documents() {
		want, err := fs.ReadFile(schemas, "schema/"+d.name+".json")
		if err != nil {
			t.Fatal(err)
		}
		if r := quorumctl(t, "SOCKET", "schema", d.name); r.code != exitOK || r.stdout != string(want) {
			t.Errorf("%s: exit %d: %s%s", d.name, r.code, r.stdout, r.stderr)
		}
		if r := quorumctl(t, "SOCKET", "schema", d.name, "-o", "yaml"); r.code != exitOK ||
			!strings.HasPrefix(r.stdout, "$") && !strings.Contains(r.stdout, "\ntitle: quorumctl "+d.name+"\n") {
			t.Errorf("%s: exit %d: %s%s", d.name, r.code, r.stdout, r.stderr)
		}
	}
	golden(t, "schema.golden", transcript(t, "SOCKET", "schema", "schema pause", "schema statsu", "schema nothing"))
}
