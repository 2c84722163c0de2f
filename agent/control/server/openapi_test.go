// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

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

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/durationfmt"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/contrib/schemadoc"
	"github.com/quorumd/quorumd/health"
)

// openAPIFile is generated from the route table and the Go types: go test ./agent/control/server -run OpenAPI -update.
const openAPIFile = "../../../contrib/docs/openapi.yaml"

// apiRoute describes a route for the OpenAPI document.
type apiRoute struct {
	summary  string
	body     any    // zero value of the body; nil without a body
	example  string // a valid body
	optional bool   // the body may be empty
	status   int    // HTTP status of success; 200 if 0
	answer   any    // zero value of the answer
}

// apiRoutes returns the description of each route, by method and path.
func apiRoutes() map[string]apiRoute {
	return map[string]apiRoute{
		"GET /v1/status":  {summary: "Show the status of the host and of the cluster", answer: control.Status{}},
		"GET /v1/checks":  {summary: "List the health checks with their limits and states", answer: control.Checks{}},
		"GET /v1/history": {summary: "List the newest history entries, oldest first", answer: control.History{}},
		"GET /v1/bootstrap": {
			summary: "Check whether a bootstrap would be accepted, without changing anything", answer: control.Done{},
		},
		"POST /v1/bootstrap": {
			summary: "Bootstrap a new cluster on this host",
			body:    control.BootstrapRequest{}, example: `{"confirm": "prod"}`, optional: true,
			status: 202, answer: control.Done{},
		},
		"PUT /v1/pause": {
			summary: "Pause all steps of all hosts",
			body:    control.PauseRequest{}, example: `{"reason": "rack move", "for": "2h"}`,
			answer: control.Pause{},
		},
		"DELETE /v1/pause": {summary: "End the pause", answer: control.Done{}},
		"POST /v1/operation/release": {
			summary: "Release the operation in flight by deleting its record",
			body:    control.ReleaseRequest{}, example: `{"force": true, "reason": "n3 is off for good"}`,
			answer: control.Done{},
		},
		"PUT /v1/removal": {
			summary: "Request the removal of a member",
			body:    control.RemovalRequest{}, example: `{"member": "n3", "reason": "decommissioned"}`,
			answer: control.Removal{},
		},
		"PUT /v1/maintenance": {
			summary: "Request maintenance, a restart, a reboot or a command on this host",
			body:    control.MaintenanceRequest{},
			example: `{"work": "maintenance", "reason": "new disk", "for": "2h"}`,
			answer:  control.Maintenance{},
		},
		"DELETE /v1/maintenance": {summary: "Cancel the request, or end the maintenance", answer: control.Done{}},
		"PUT /v1/mute": {
			summary: "Mute an advisory finding",
			body:    control.MuteRequest{},
			example: `{"code": "DISK_SPACE_LOW", "reason": "cleanup on Monday", "for": "24h"}`,
			answer:  health.Mute{},
		},
		"DELETE /v1/mute": {summary: "End the mute of a finding", answer: control.Done{}},
		"POST /v1/recovery/facts": {
			summary: "Read what this host's data contains, before a recovery from quorum loss",
			answer:  recovery.Facts{},
		},
		"PUT /v1/recovery": {
			summary: "Apply a recovery plan on this host", body: recovery.Plan{}, answer: control.Recovery{},
		},
		"DELETE /v1/recovery": {summary: "Abandon the recovery plan on this host", answer: control.Recovery{}},
		"GET /v1/snapshot":    {summary: "Show the newest snapshot job", answer: control.SnapshotJob{}},
		"POST /v1/snapshot": {
			summary: "Start a snapshot job",
			body:    control.SnapshotRequest{}, example: `{"do": "` + control.SnapshotSave + `"}`,
			status: 202, answer: control.SnapshotJob{},
		},
		"POST /v1/rollout": {
			summary: "Start a rollout: restart or reboot one host after another, or run a command",
			body:    control.RolloutRequest{}, example: `{"work": "restart", "reason": "new certificates"}`,
			status: 202, answer: control.Rollout{},
		},
		"PUT /v1/rollout/state": {
			summary: "Pause, resume or abort the rollout",
			body:    control.RolloutStateRequest{}, example: `{"state": "paused"}`,
			answer: control.Rollout{},
		},
		"GET /v1/cluster/resize": {
			summary: "Show the size of the cluster and the steps that are left", answer: control.Resize{},
		},
		"GET /v1/retire": {summary: "List the retired hosts", answer: control.RetiredHosts{}},
		"POST /v1/retire": {
			summary: "Retire a host for good, or undo its retirement",
			body:    control.RetireRequest{}, example: `{"host": "n3", "reason": "end of lease"}`,
			status: 202, answer: control.Retirement{},
		},
		"POST /v1/cluster/resize": {
			summary: "Resize the cluster to another number of voters",
			body:    control.ResizeRequest{}, example: `{"voters": 5, "reason": "two more racks"}`,
			status: 202, answer: control.Resize{},
		},
		"POST /v1/leader/transfer": {
			summary: "Transfer leadership to another voter",
			body:    control.TransferRequest{}, example: `{"host": "n2", "reason": "n1 is to be moved"}`,
			status: 202, answer: control.Transfer{},
		},
	}
}

// The parts of an OpenAPI document that quorumd uses, in the order in which they are written.
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

// apiErrors returns the error responses, by status, with the exit codes of quorumctl.
func apiErrors() map[string]apiResponse {
	content := map[string]apiMedia{"application/json": {Schema: reference("Error")}}
	failure := func(text string, exit int) apiResponse {
		return apiResponse{Description: text, ExitCode: exit, Content: content}
	}
	busy := failure("Not possible now; retry later. "+control.CodeBusy+": too many requests, or unread responses.", 69)
	one := 1.0
	busy.Headers = map[string]apiHeader{
		"Retry-After": {"Seconds until a retry is useful", &jsonschema.Schema{Type: "integer", Minimum: &one}},
	}
	return map[string]apiResponse{
		"400": failure(control.CodeBadRequest+" or another code: the request is wrong; do not repeat it.", 64),
		"403": failure(control.CodeNotPermitted+" or another code: the caller may not do this.", 77),
		"409": failure(
			control.CodeConflict+" or another code: the host or the cluster is not in the expected state.", 70,
		),
		"413": failure(control.CodeTooLarge+": the body is too large.", 64),
		"500": failure(control.CodeInternal+" or another code: quorumd failed.", 70),
		"503": busy,
		"504": failure(control.CodeTimeout+": etcd or the disk did not answer in time.", 69),
	}
}

// apiParameters returns the query parameters, by name.
func apiParameters() map[string]apiParameter {
	least, most := 1.0, float64(control.MaxHistory)
	code := maxCode
	return map[string]apiParameter{
		"limit": {"limit", "query", false, "How many entries to return", &jsonschema.Schema{
			Type: "integer", Minimum: &least, Maximum: &most, Default: raw(control.DefaultHistory),
		}},
		"code": {"code", "query", true, "The code of the muted finding", &jsonschema.Schema{
			Type: "string", Pattern: "^[A-Z0-9_]+$", MaxLength: &code,
		}},
	}
}

func raw(v any) json.RawMessage {
	text, _ := json.Marshal(v) // cannot fail for the values in these tests
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
	return t.Name()
}

// errorStatuses returns the HTTP statuses of the errors that a route can return.
func errorStatuses(rt route, d apiRoute) []string {
	list := []string{"400", "403", "500", "503"}
	if rt.slots != nil {
		list = append(list, "504")
		if rt.path != "/v1/history" { // reading the history never conflicts
			list = append(list, "409")
		}
	}
	if d.body != nil {
		list = append(list, "413")
	}
	return list
}

func makeOpenAPI(t *testing.T) apiDocument {
	t.Helper()
	doc := apiDocument{
		OpenAPI: "3.1.0",
		Info: apiInfo{"quorumd control socket", control.APIVersion, apiDescription, map[string]string{
			"name": "Apache-2.0", "identifier": "Apache-2.0",
		}},
		Servers:    []apiServer{{"http://quorumd", "The unix socket " + control.DefaultSocket}},
		Paths:      map[string]map[string]apiOperation{},
		Components: apiComponents{apiErrors(), map[string]*jsonschema.Schema{}},
	}
	reader, described := schemadoc.NewReader("../../.."), apiRoutes()
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
	schema("Error", control.ErrorDocument{})
	doc.Components.Schemas["Error"].Description = ""
	for _, rt := range New(Options{}).table {
		d, ok := described[rt.method+" "+rt.path]
		if !ok {
			t.Fatalf("%s %s has no description: add it to apiRoutes", rt.method, rt.path)
		}
		delete(described, rt.method+" "+rt.path)
		op := apiOperation{
			ID: operationID(rt), Summary: d.summary, Access: "everyone",
			Responses: map[string]apiResponse{strconv.Itoa(cmp.Or(d.status, 200)): {
				Description: "Success", Content: map[string]apiMedia{
					"application/json": {Schema: schema(apiName(d.answer), d.answer)},
				},
			}},
		}
		if rt.access == accessChange {
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
			name := apiName(d.body)
			media := apiMedia{Schema: schema(name, d.body), Example: json.RawMessage(d.example)}
			op.Body = &apiBody{!d.optional, map[string]apiMedia{"application/json": media}}
			limitFields(doc.Components.Schemas[name], d.body)
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

// limitFields adds the limits of a body's fields to its schema.
func limitFields(s *jsonschema.Schema, body any) {
	request := apiName(body)
	if _, known := body.(recovery.Plan); !known {
		s.Description = "" // the operation's summary is enough
	}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(body)) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		p := s.Properties[name]
		if p == nil { // not in JSON
			continue
		}
		p.Description = strings.ReplaceAll(p.Description, "policy.WorkCommand", string(policy.WorkCommand))
		if p.Enum = apiEnums()[request+"."+name]; p.Enum != nil {
			p.Description = ""
		}
		least, most := 1, control.MaxReason
		switch name {
		case "reason":
			p.MinLength, p.MaxLength = &least, &most
			p.Description = "One line"
		case "hosts":
			most = control.MaxRolloutHosts
			p.MaxItems = &most
		case "for":
			b := apiDurations()[request]
			p.Description = "A Go duration, at most " + durationfmt.Parseable(b.most)
			if b.least > 1 {
				p.Description = "A Go duration from " + durationfmt.Parseable(b.least) + " to " +
					durationfmt.Parseable(b.most)
			}
			p.Default = raw(durationfmt.Parseable(b.otherwise))
		}
	}
}

// apiEnums returns the allowed values of the fields that are enumerations, by schema and field.
func apiEnums() map[string][]any {
	works := []any{policy.WorkMaintenance, policy.WorkRestart, policy.WorkReboot, policy.WorkCommand}
	return map[string][]any{
		"MaintenanceRequest.work":   works,
		"RolloutRequest.work":       append(works[1:], policy.WorkReaddress, policy.WorkDefrag),
		"RolloutStateRequest.state": {record.RolloutRunning, record.RolloutPaused, record.RolloutAborted},
		"SnapshotRequest.do": {
			control.SnapshotSave, control.SnapshotList, control.SnapshotVerify, control.SnapshotPrune,
			control.SnapshotRestoreTest,
		},
	}
}

// apiDurations returns the limits of the durations, by request.
func apiDurations() map[string]bounds {
	return map[string]bounds{
		"PauseRequest":       pauseText.duration,
		"RemovalRequest":     removalText.duration,
		"MaintenanceRequest": maintenanceText.duration,
		"MuteRequest":        muteText.duration,
	}
}

// asYAML returns a document as YAML in block style. The keys have the same order as in JSON.
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
	b.WriteString("# Generated: go test ./agent/control/server -run OpenAPI -update\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTheOpenAPIDocumentMatchesTheRoutes(t *testing.T) {
	t.Parallel()
	text := asYAML(t, makeOpenAPI(t))
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(openAPIFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(openAPIFile); err != nil || !bytes.Equal(was, text) {
		t.Errorf("%s differs from the routes (%v); go test ./agent/control/server -run OpenAPI -update", openAPIFile,
			err)
	}
}
