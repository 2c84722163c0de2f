// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/control/server"
	"github.com/quorumd/quorumd/contrib/testbed/tempdir"
	"github.com/quorumd/quorumd/health"
)

// fill sets every field that JSON includes, to different values where possible, so that a golden file shows the whole
// document.
func fill(v reflect.Value, n *int) {
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 20, 10, 0, *n, 0, time.UTC)))
	case v.Type() == reflect.TypeFor[health.State]():
		v.Set(reflect.ValueOf(health.Warm))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				fill(v.Field(i), n)
			}
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case v.Kind() == reflect.String:
		v.SetString("text")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(int64(*n))
	case v.CanUint():
		v.SetUint(uint64(*n))
	case v.CanFloat():
		v.SetFloat(float64(*n) / 10)
	default:
		panic("no example of a " + v.Type().String())
	}
}

// example returns a document with all fields set.
func example[T any]() T {
	var doc T
	fill(reflect.ValueOf(&doc).Elem(), new(int))
	return doc
}

func TestTheDocumentsKeepTheirShape(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]any{
		"status.golden":  example[control.Status](),
		"history.golden": example[control.History](),
		"checks.golden":  example[control.Checks](),
		"error.golden": control.ErrorDocument{
			Error: &control.Error{Code: control.CodeBusy, Message: "cannot …: cause", Hint: "what to do"},
		},
	} {
		b, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, append(b, '\n'))
	}
}

// fixedStatus is a backend that serves only a status.
type fixedStatus struct {
	server.Backend
	status control.Status
}

func (f fixedStatus) Status() control.Status { return f.status }
func (f fixedStatus) Revision() uint64       { return 0 }

// serve serves a status until the test ends and returns a client.
func serve(t testing.TB, status control.Status) *control.Client {
	t.Helper()
	socket := filepath.Join(tempdir.New(t), "s")
	s := server.New(server.Options{Socket: socket, Backend: fixedStatus{status: status}})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return control.Dial(socket)
}

func TestAStatusArrivesAsSent(t *testing.T) {
	t.Parallel()
	want := example[control.Status]()
	want.APIVersion = control.APIVersion
	got, err := serve(t, want).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// BenchmarkStatusOfAHundredHosts measures a status request from connecting to the decoded document.
func BenchmarkStatusOfAHundredHosts(b *testing.B) {
	s := example[control.Status]()
	for i := range 100 {
		h := example[control.HostRecord]()
		h.Name = fmt.Sprintf("n%d", i)
		s.Hosts = append(s.Hosts, h)
	}
	c := serve(b, s)
	for b.Loop() {
		if _, err := c.Status(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// golden compares a text with a file in testdata. With -update it writes the file first.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update rewrites it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}
