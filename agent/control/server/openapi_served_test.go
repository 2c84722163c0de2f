// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/contrib/docs"
)

// readOpenAPI reads the published document, with which these tests compare the server.
func readOpenAPI(t *testing.T) apiDocument {
	t.Helper()
	text, err := os.ReadFile(openAPIFile)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	var doc apiDocument
	if err := yaml.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw(tree), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// target returns the path of a request with a value for each required parameter.
func (op apiOperation) target(path string) string {
	for _, p := range op.Parameters {
		if p.Required {
			path += "?" + p.Name + "=A_B"
		}
	}
	return path
}

// body returns an example of the operation's request body.
func (op apiOperation) body(t *testing.T) string {
	t.Helper()
	switch {
	case op.Body == nil:
		return ""
	case op.ID != "putRecovery":
		return string(op.Body.Content["application/json"].Example)
	}
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	facts := recovery.Facts{
		Version: recovery.Version, HostID: "host-n1", Host: "n1", Cluster: "prod", PeerURL: "http://n1", Taken: at,
		Log: recovery.Log{Cluster: 1, Member: 1, Term: 1, Index: 9, Commit: 9, Members: []recovery.Member{
			{ID: 1, Name: "n1", PeerURL: "http://n1"},
			{ID: 2, Name: "n2", PeerURL: "http://n2"},
			{ID: 3, Name: "n3", PeerURL: "http://n3"},
		}},
	}.Sealed()
	plan, err := recovery.NewPlan([]recovery.Facts{facts}, recovery.Choice{
		Cluster: "prod", Gone: []string{"n2", "n3"}, At: at.Add(time.Minute), ID: "abcdefghijkl", New: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw(plan))
}

// validate checks a document against a schema, which must name all fields of the document.
func (d apiDocument) validate(t *testing.T, ref map[string]string, text string) error {
	t.Helper()
	name := strings.TrimPrefix(ref["$ref"], "#/components/schemas/")
	var s jsonschema.Schema
	if err := json.Unmarshal(raw(d.Components.Schemas[name]), &s); err != nil {
		t.Fatal(err)
	}
	closeFields(&s)
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return err
	}
	return resolved.Validate(document)
}

// closeFields makes a schema refuse unknown fields.
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

func TestEveryRouteMatchesTheOpenAPIDocument(t *testing.T) {
	t.Parallel()
	doc, n := readOpenAPI(t), 0
	socket := serveBackend(t, &fake{})
	for path, operations := range doc.Paths {
		for method, op := range operations {
			n++
			body := op.body(t)
			if op.Body != nil {
				if err := doc.validate(t, op.Body.Content["application/json"].Schema, body); err != nil {
					t.Errorf("%s: the example does not match its schema: %v", op.ID, err)
				}
			}
			status, answer := call(t, socket, strings.ToUpper(method), op.target(path), body)
			response, ok := op.Responses[strconv.Itoa(status)]
			if !ok || status >= 300 {
				t.Errorf("%s: status %d: %s", op.ID, status, answer)
			} else if err := doc.validate(t, response.Content["application/json"].Schema, answer); err != nil {
				t.Errorf("%s: the answer does not match its schema: %v\n%s", op.ID, err, answer)
			}
			for _, p := range op.Parameters {
				if status, _ := call(t, socket, strings.ToUpper(method), path+"?"+p.Name+"=-", ""); status != 400 {
					t.Errorf("%s: %s=- is accepted: status %d", op.ID, p.Name, status)
				}
			}
		}
	}
	if n != len(New(Options{}).table) {
		t.Errorf("the document has %d operations, the server %d routes", n, len(New(Options{}).table))
	}
}

func TestEveryErrorOfARouteIsInTheOpenAPIDocument(t *testing.T) {
	t.Parallel()
	doc := readOpenAPI(t)
	failures := []error{
		context.DeadlineExceeded, &control.Error{Kind: control.Fault}, &control.Error{Kind: control.NotNow},
	}
	refusals := []error{
		&control.Error{Kind: control.Conflicts}, &control.Error{Kind: control.Wrong},
		&control.Error{Kind: control.Forbidden},
	}
	for i, failure := range append(failures, refusals...) {
		fails := func(context.Context) error { return fmt.Errorf("cannot: %w", failure) }
		d := &fake{change: fails}
		if i < len(failures) { // the backend never refuses a history
			d.history = fails
		}
		socket := serveBackend(t, d)
		for path, operations := range doc.Paths {
			for method, op := range operations {
				status, answer := call(t, socket, strings.ToUpper(method), op.target(path), op.body(t))
				if _, ok := op.Responses[strconv.Itoa(status)]; !ok {
					t.Errorf("%s: status %d is not in the document: %s", op.ID, status, answer)
				} else if status < 400 {
					continue
				} else if _, ok := doc.Components.Responses[strconv.Itoa(status)]; !ok {
					t.Errorf("the document has no response for status %d", status)
				}
			}
		}
	}
}

// The test sends the requests that contrib/docs/api.md shows as curl commands.
func TestTheExamplesOfTheAPIPageAreCorrect(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../contrib/docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	socket, n := serveBackend(t, &fake{}), 0
	for _, line := range docs.Shell(string(page)) {
		address, typed := strings.CutPrefix(line, "curl --unix-socket "+control.DefaultSocket+" ")
		if !typed {
			continue
		}
		n++
		path := strings.TrimPrefix(docs.Words(address)[0], "http://quorumd")
		if status, answer := call(t, socket, "GET", path, ""); status != 200 &&
			!strings.Contains(string(page), line+"\n    "+answer) {
			t.Errorf("%s: the page does not show %s", line, answer)
		}
	}
	if n < 3 {
		t.Errorf("the page has only %d requests", n)
	}
}
