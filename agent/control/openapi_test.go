// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/contrib/schemadoc"
)

// openAPIFile is made from the route table and from the Go types: go test ./agent/control -run OpenAPI -update.
const openAPIFile = "../../contrib/docs/openapi.yaml"

// apiRoute adds to a route what its table does not hold.
type apiRoute struct {
	summary  string
	body     any    // zero value of the body on the wire; nil without a body
	request  any    // zero value of the request that the body becomes; its comments describe the fields
	example  string // a valid body
	optional bool   // the body may be empty
	status   int    // of success
	answer   any    // zero value of the answer
}

// apiRoutes returns the description of each route, by method and path.
func apiRoutes() map[string]apiRoute {
	pause := `{"reason": "rack move", "for": "2h"}`
	return map[string]apiRoute{
		"GET /v1/status":  {"Show the status of the host and of the cluster", nil, nil, "", false, 200, Status{}},
		"GET /v1/checks":  {"List the health checks with their limits and states", nil, nil, "", false, 200, Checks{}},
		"GET /v1/history": {"List the newest history entries, oldest first", nil, nil, "", false, 200, History{}},
		"GET /v1/bootstrap": {
			"Check whether a bootstrap would be accepted, without changing anything", nil, nil, "", false, 200, Done{},
		},
		"POST /v1/bootstrap": {
			"Bootstrap a new cluster on this host", bootstrapBody{}, nil, `{"confirm": "prod"}`, true, 202, Done{},
		},
		"PUT /v1/pause":    {"Pause all steps of all hosts", pauseBody{}, PauseRequest{}, pause, false, 200, Pause{}},
		"DELETE /v1/pause": {"End the pause", nil, nil, "", false, 200, Done{}},
		"POST /v1/operation/release": {
			"Release the operation in flight by deleting its record",
			releaseBody{},
			ReleaseRequest{},
			`{"force": true, "reason": "n3 is off for good"}`, false, 200,
			Done{},
		},
		"PUT /v1/removal": {
			"Request the removal of a member",
			removalBody{},
			RemovalRequest{},
			`{"member": "n3", "reason": "decommissioned"}`, false, 200,
			Removal{},
		},
		"PUT /v1/maintenance": {
			"Request maintenance, a restart, a reboot or a command on this host",
			maintenanceBody{},
			MaintenanceRequest{},
			`{"work": "maintenance", "reason": "new disk", "for": "2h"}`, false, 200,
			Maintenance{},
		},
		"DELETE /v1/maintenance": {"Cancel the request, or end the maintenance", nil, nil, "", false, 200, Done{}},
		"PUT /v1/mute": {
			"Mute an advisory finding",
			muteBody{},
			MuteRequest{},
			`{"code": "DISK_SPACE_LOW", "reason": "cleanup on Monday", "for": "24h"}`, false, 200,
			Mute{},
		},
		"DELETE /v1/mute": {"End the mute of a finding", nil, nil, "", false, 200, Done{}},
		"POST /v1/recovery/facts": {
			"Read what this host's data contains, before a recovery from quorum loss", nil, nil, "", false, 200,
			recovery.Facts{},
		},
		"PUT /v1/recovery": {
			"Apply a recovery plan on this host", recovery.Plan{}, nil, "", false, 200, Recovery{},
		},
		"DELETE /v1/recovery": {"Abandon the recovery plan on this host", nil, nil, "", false, 200, Recovery{}},
		"GET /v1/snapshot":    {"Show the newest snapshot job", nil, nil, "", false, 200, SnapshotJob{}},
		"POST /v1/snapshot": {
			"Start a snapshot job",
			SnapshotRequest{},
			SnapshotRequest{},
			`{"do": "` + SnapshotSave + `"}`, false, 202,
			SnapshotJob{},
		},
		"POST /v1/rollout": {
			"Start a rollout: restart or reboot one host after another, or run a command",
			rolloutBody{},
			RolloutRequest{},
			`{"work": "restart", "reason": "new certificates"}`, false, 202,
			Rollout{},
		},
		"PUT /v1/rollout/state": {
			"Pause, resume or abort the rollout", rolloutStateBody{}, nil, `{"state": "paused"}`, false, 200, Rollout{},
		},
	}
}

// The parts of an OpenAPI document that quorumd's needs, in the order in which they are written.
type (
	apiDocument struct {
		OpenAPI    string                             `json:"openapi"`
		Info       apiInfo                            `json:"info"`
		Servers    []apiServer                        `json:"servers"`
		Paths      map[string]map[string]apiOperation `json:"paths"`
		Components apiComponents                      `json:"components"`
	}
	apiInfo struct {
		Title       string            `json:"title"`
		Version     string            `json:"version"`
		Description string            `json:"description"`
		Licence     map[string]string `json:"license"`
	}
	apiServer struct {
		URL         string `json:"url"`
		Description string `json:"description"`
	}
	apiOperation struct {
		ID         string                 `json:"operationId"`
		Summary    string                 `json:"summary"`
		Access     string                 `json:"x-access"`
		Parameters []apiParameter         `json:"parameters,omitempty"`
		Body       *apiBody               `json:"requestBody,omitempty"`
		Responses  map[string]apiResponse `json:"responses"`
	}
	apiParameter struct {
		Name        string             `json:"name"`
		In          string             `json:"in"`
		Required    bool               `json:"required"`
		Description string             `json:"description"`
		Schema      *jsonschema.Schema `json:"schema"`
	}
	apiBody struct {
		Required bool                `json:"required"`
		Content  map[string]apiMedia `json:"content"`
	}
	apiResponse struct {
		Ref         string               `json:"$ref,omitempty"`
		Description string               `json:"description,omitempty"`
		ExitCode    int                  `json:"x-quorumctl-exit-code,omitempty"`
		Headers     map[string]apiHeader `json:"headers,omitempty"`
		Content     map[string]apiMedia  `json:"content,omitempty"`
	}
	apiHeader struct {
		Description string             `json:"description"`
		Schema      *jsonschema.Schema `json:"schema"`
	}
	apiMedia struct {
		Schema  map[string]string `json:"schema"`
		Example json.RawMessage   `json:"example,omitempty"`
	}
	apiComponents struct {
		Responses map[string]apiResponse        `json:"responses"`
		Schemas   map[string]*jsonschema.Schema `json:"schemas"`
	}
)

const apiDescription = `The API of a quorumd agent, on a unix socket. quorumctl uses it.

Access "everyone" is every user of the host. Access "operators" is root, the agent's own user, and the members of
control.group; the kernel identifies the caller. Requests with an Origin or Referer header are refused.

Every error is one document with a code, a message and a hint. An unknown path returns 404, and an unknown method 405
with an Allow header; both have the code NOT_FOUND. Unknown query parameters and unknown fields of a body return 400.
Responses may gain fields in the same API version: ignore those you do not know.`

// apiErrors returns the responses that are errors, by status. The exit code is that of quorumctl.
func apiErrors() map[string]apiResponse {
	content := map[string]apiMedia{"application/json": {Schema: reference("Error")}}
	failure := func(text string, exit int) apiResponse {
		return apiResponse{Description: text, ExitCode: exit, Content: content}
	}
	busy := failure("Not possible now; retry later. "+CodeBusy+": too many requests, or unread responses.", 69)
	one := 1.0
	busy.Headers = map[string]apiHeader{
		"Retry-After": {"Seconds until a retry is useful", &jsonschema.Schema{Type: "integer", Minimum: &one}},
	}
	return map[string]apiResponse{
		"400": failure(CodeBadRequest+" or another code: the request is wrong; do not repeat it.", 64),
		"403": failure(CodeNotPermitted+" or another code: the caller may not do this.", 77),
		"409": failure(CodeConflict+" or another code: the host or the cluster is not in the expected state.", 70),
		"413": failure(CodeTooLarge+": the body is too large.", 64),
		"500": failure(CodeInternal+" or another code: quorumd failed.", 70),
		"503": busy,
		"504": failure(CodeTimeout+": etcd or the disk did not answer in time.", 69),
	}
}

// apiParameters returns the query parameters, by name.
func apiParameters() map[string]apiParameter {
	least, most := 1.0, float64(MaxHistory)
	code := maxCode
	return map[string]apiParameter{
		"limit": {"limit", "query", false, "How many entries to return", &jsonschema.Schema{
			Type: "integer", Minimum: &least, Maximum: &most, Default: raw(DefaultHistory),
		}},
		"code": {"code", "query", true, "The code of the muted finding", &jsonschema.Schema{
			Type: "string", Pattern: "^[A-Z0-9_]+$", MaxLength: &code,
		}},
	}
}

func raw(v any) json.RawMessage {
	text, _ := json.Marshal(v) // of numbers and strings
	return text
}

func reference(name string) map[string]string {
	return map[string]string{"$ref": "#/components/schemas/" + name}
}

// apiName returns the name of a type among the schemas.
func apiName(of any) string {
	t := reflect.TypeOf(of)
	if strings.HasSuffix(t.PkgPath(), "/recovery") {
		return "Recovery" + t.Name()
	}
	if t == reflect.TypeFor[rolloutStateBody]() || t == reflect.TypeFor[bootstrapBody]() {
		return strings.ToUpper(t.Name()[:1]) + strings.TrimSuffix(t.Name()[1:], "Body") + "Request"
	}
	return t.Name()
}

// errorStatuses returns the statuses of the errors that a route can return.
func errorStatuses(rt route, d apiRoute) []string {
	list := []string{"400", "403", "500", "503"}
	if rt.slots != nil {
		list = append(list, "504")
		if rt.path != "/v1/history" { // only reads
			list = append(list, "409")
		}
	}
	if d.body != nil {
		list = append(list, "413")
	}
	return list
}

// makeOpenAPI builds the document.
func makeOpenAPI(t *testing.T) apiDocument {
	t.Helper()
	doc := apiDocument{
		OpenAPI: "3.1.0",
		Info: apiInfo{"quorumd control socket", APIVersion, apiDescription, map[string]string{
			"name": "Apache-2.0", "identifier": "Apache-2.0",
		}},
		Servers:    []apiServer{{"http://quorumd", "The unix socket " + DefaultSocket}},
		Paths:      map[string]map[string]apiOperation{},
		Components: apiComponents{apiErrors(), map[string]*jsonschema.Schema{}},
	}
	reader, described := schemadoc.NewReader("../.."), apiRoutes()
	schema := func(name string, of any) map[string]string {
		if doc.Components.Schemas[name] == nil {
			made, err := reader.Schema(reflect.TypeOf(of))
			if err != nil {
				t.Fatal(err)
			}
			doc.Components.Schemas[name] = made
		}
		return reference(name)
	}
	schema("Error", errorDocument{})
	doc.Components.Schemas["Error"].Description = ""
	for _, rt := range NewServer(Options{}).table {
		d, ok := described[rt.method+" "+rt.path]
		if !ok {
			t.Fatalf("%s %s has no description: add it to apiRoutes", rt.method, rt.path)
		}
		delete(described, rt.method+" "+rt.path)
		op := apiOperation{
			ID: operationID(rt), Summary: d.summary, Access: "everyone",
			Responses: map[string]apiResponse{strconv.Itoa(d.status): {
				Description: "Success", Content: map[string]apiMedia{
					"application/json": {Schema: schema(apiName(d.answer), d.answer)},
				},
			}},
		}
		if rt.access == change {
			op.Access = "operators"
		}
		for _, name := range rt.params {
			p, ok := apiParameters()[name]
			if !ok {
				t.Fatalf("%s %s: parameter %s has no description: add it to apiParameters", rt.method, rt.path, name)
			}
			op.Parameters = append(op.Parameters, p)
		}
		if d.body != nil {
			name := apiName(cmp.Or(d.request, d.body))
			media := apiMedia{Schema: schema(name, d.body), Example: json.RawMessage(d.example)}
			op.Body = &apiBody{!d.optional, map[string]apiMedia{"application/json": media}}
			limitFields(t, reader, doc.Components.Schemas[name], d)
		}
		for _, status := range errorStatuses(rt, d) {
			op.Responses[status] = apiResponse{Ref: "#/components/responses/" + status}
		}
		if doc.Paths[rt.path] == nil {
			doc.Paths[rt.path] = map[string]apiOperation{}
		}
		doc.Paths[rt.path][strings.ToLower(rt.method)] = op
	}
	for name := range described {
		t.Errorf("apiRoutes describes %s, which is not a route", name)
	}
	return doc
}

// operationID returns a name such as putRolloutState.
func operationID(rt route) string {
	name := strings.ToLower(rt.method)
	for _, part := range strings.Split(strings.TrimPrefix(rt.path, "/v1/"), "/") {
		name += strings.ToUpper(part[:1]) + part[1:]
	}
	return name
}

// limitFields adds the limits of a body's fields to its schema, and the comments of the request's fields.
func limitFields(t *testing.T, reader *schemadoc.Reader, s *jsonschema.Schema, d apiRoute) {
	t.Helper()
	works := []any{WorkMaintenance, WorkRestart, WorkReboot, WorkCommand}
	enums := map[string][]any{
		"MaintenanceRequest.work": works, "RolloutRequest.work": works[1:],
		"RolloutStateRequest.state": {RolloutRunning, RolloutPaused, RolloutAborted},
		"SnapshotRequest.do": {
			SnapshotSave, SnapshotList, SnapshotVerify, SnapshotPrune, SnapshotRestoreTest,
		},
	}
	lasts := map[string][3]string{}
	for name, b := range map[string]bounds{
		"PauseRequest":       {1, MaxPause, DefaultPause, ""},
		"RemovalRequest":     {MinRemoval, MaxRemoval, DefaultRemoval, ""},
		"MaintenanceRequest": {MinMaintenance, MaxMaintenance, DefaultMaintenance, ""},
		"MuteRequest":        {1, MaxMute, DefaultMute, ""},
	} {
		lasts[name] = [3]string{durationfmt.Typed(b.least), durationfmt.Typed(b.most), durationfmt.Typed(b.otherwise)}
	}
	request := apiName(cmp.Or(d.request, d.body))
	if _, known := d.body.(recovery.Plan); !known {
		s.Description = "" // the comment is about all bodies
	}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(d.body)) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		p := s.Properties[name]
		if d.request != nil && p.Description == "" {
			text, err := reader.Comment(reflect.TypeOf(d.request), field.Name)
			if err != nil {
				t.Fatal(err)
			}
			p.Description = text
		}
		p.Description = strings.NewReplacer("WorkMaintenance", WorkMaintenance, "WorkRestart", WorkRestart,
			"WorkReboot",
			WorkReboot, "WorkCommand", WorkCommand).Replace(p.Description)
		if p.Enum = enums[request+"."+name]; p.Enum != nil {
			p.Description = ""
		}
		least, most := 1, MaxReason
		switch name {
		case "reason":
			p.MinLength, p.MaxLength = &least, &most
			p.Description = "One line"
		case "hosts":
			most = MaxRolloutHosts
			p.MaxItems = &most
		case "for":
			b := lasts[request]
			p.Description, p.Default = "A Go duration, at most "+b[1], raw(b[2])
			if b[0] != "1ns" {
				p.Description = "A Go duration from " + b[0] + " to " + b[1]
			}
		}
	}
}

// asYAML returns a document as YAML in blocks, with its keys in the order of its JSON.
func asYAML(t *testing.T, doc any) []byte {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		t.Fatal(err)
	}
	var plain func(n *yaml.Node)
	plain = func(n *yaml.Node) {
		n.Style = 0
		for _, child := range n.Content {
			plain(child)
		}
	}
	plain(&node)
	var b bytes.Buffer
	b.WriteString("# Generated: go test ./agent/control -run OpenAPI -update\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTheOpenAPIDocumentIsThatOfTheRoutes(t *testing.T) {
	t.Parallel()
	text := asYAML(t, makeOpenAPI(t))
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(openAPIFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(openAPIFile); err != nil || !bytes.Equal(was, text) {
		t.Errorf("%s differs from the routes (%v); go test ./agent/control -run OpenAPI -update", openAPIFile, err)
	}
}
