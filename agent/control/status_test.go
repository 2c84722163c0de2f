// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// filled sets every field of a value, so that its golden shows the whole document.
func filled(v reflect.Value, n *int) {
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 20, 10, 0, *n, 0, time.UTC)))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			filled(v.Field(i), n)
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), n)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		filled(v.Index(0), n)
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

func example[T any]() T {
	var doc T
	filled(reflect.ValueOf(&doc).Elem(), new(int))
	return doc
}

func TestTheDocumentsKeepTheirShape(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]any{
		"status.golden":  example[Status](),
		"history.golden": example[History](),
		"checks.golden":  example[Checks](),
		"error.golden":   errorDocument{&Error{Code: CodeBusy, Message: "cannot …: cause", Hint: "what to do"}},
	} {
		b, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, append(b, '\n'))
	}
}

func TestAStatusArrivesAsSent(t *testing.T) {
	t.Parallel()
	want := example[Status]()
	want.APIVersion = APIVersion
	socket := open(t, &desk{status: func() Status { return want }})
	got, err := Dial(socket).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestAnEmptyStatusHasEmptyListsAndNoAges(t *testing.T) {
	t.Parallel()
	socket := open(t, &desk{})
	code, body := ask(t, socket, "GET", "/v1/status", "")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	for _, want := range []string{`"apiVersion":"v1"`, `"reasons":[]`, `"findings":[]`, `"members":[]`, `"hosts":[]`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in %s", want, body)
		}
	}
	for _, bad := range []string{"null", "ageSeconds", "p99Seconds", `"operation"`, `"pause"`} {
		if strings.Contains(body, bad) {
			t.Errorf("%s appears in %s", bad, body)
		}
	}
}

func TestANonFiniteNumberIsAnErrorAndNotHalfADocument(t *testing.T) {
	t.Parallel()
	socket := open(t, &desk{status: func() Status {
		var s Status
		s.Health.Disk.WAL.P99 = math.NaN()
		return s
	}})
	code, body := ask(t, socket, "GET", "/v1/status", "")
	if e := errorIn(t, body); code != http.StatusInternalServerError || e.Code != CodeInternal {
		t.Errorf("%d %s", code, body)
	}
}

func TestANewerDaemonsFieldsAreIgnored(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(Status{APIVersion: APIVersion, Role: RoleVoter})
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Replace(b, []byte(`{`), []byte(`{"weather":{"rain":true},`), 1)
	socket := impostor(t, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"+string(newer))
	s, err := Dial(socket).Status(t.Context())
	if err != nil || s.Role != RoleVoter {
		t.Errorf("%+v, %v", s.Role, err)
	}
}
