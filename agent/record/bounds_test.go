// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

func TestTimeIsReadAsUTCAndAnInvalidZoneIsRefused(t *testing.T) {
	t.Parallel()
	lock, err := record.Decode[record.Lock](
		[]byte(`{"version":1,"host":"h","name":"n","since":"2026-03-01T14:00:00+02:00"}`))
	if err != nil || lock.Since != noon {
		t.Errorf("got %#v, %v", lock.Since, err)
	}
	for _, since := range []string{
		"2026-03-01T12:00:00+24:00", "2026-03-01T12:00:00-24:00", "0000-01-01T00:00:00+01:00",
		"9999-12-31T23:59:59-01:00",
	} {
		lock, err := record.Decode[record.Lock]([]byte(`{"version":1,"since":"` + since + `"}`))
		if err == nil || !strings.Contains(err.Error(), "its since: ") {
			t.Errorf("%s was read as %v, %v", since, lock.Since, err)
		}
	}
	written, err := record.Encode(record.Lock{Since: noon.In(time.FixedZone("", 3600))})
	if err != nil || !strings.Contains(string(written), `"since":"2026-03-01T12:00:00Z"`) {
		t.Errorf("written as %s, %v", written, err)
	}
}

func TestTextIsWrittenWithoutUnnecessaryEscapes(t *testing.T) {
	t.Parallel()
	written, err := record.Encode(record.Pause{Reason: "<b> & co"})
	if err != nil || !strings.Contains(string(written), `"<b> & co"`) {
		t.Errorf("written as %s, %v", written, err)
	}
	kept := `{"version":1,"by":"","host":"","reason":"","since":"0001-01-01T00:00:00Z","until":"0001-01-01T00:00:00Z","x":"<&>"}`
	pause, err := record.Decode[record.Pause]([]byte(kept))
	if err != nil {
		t.Fatal(err)
	}
	if written, err = record.Encode(pause); err != nil || !strings.Contains(string(written), `"x":"<&>"`) {
		t.Errorf("written as %s, %v", written, err)
	}
}

func TestLongTextIsShortenedOnWriteAndRefusedOnRead(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"x", "<", "\x00", "\"", "é", "\u2028", "a\xffb\x01"} {
		written, err := record.Encode(record.Line{Text: strings.Repeat(unit, record.MaxBytes)})
		if err != nil {
			t.Errorf("%q: %v", unit, err)
			continue
		}
		line, err := record.Decode[record.Line](written)
		if err != nil || !strings.HasSuffix(line.Text, "…") || len(line.Text) < 256 || len(written) > 5<<10 {
			t.Errorf("%q: %d bytes, text of %d, %v", unit, len(written), len(line.Text), err)
		}
	}
	for _, text := range []string{strings.Repeat("x", 5000), strings.Repeat(`\u0000`, 1000)} {
		if _, err := record.Decode[record.Line]([]byte(`{"version":1,"text":"` + text + `"}`)); err == nil ||
			!strings.Contains(err.Error(), "its text: ") {
			t.Errorf("%.12s…: %v", text, err)
		}
	}
}

func TestValueAboveABoundIsNeitherWrittenNorRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 513)
	many := make([]string, 33)
	for name, r := range map[string]func() ([]byte, error){
		"a name":        func() ([]byte, error) { return record.Encode(record.Op{HostName: long}) },
		"a list":        func() ([]byte, error) { return record.Encode(record.Queue{Next: many}) },
		"a listed name": func() ([]byte, error) { return record.Encode(record.Queue{Next: []string{long}}) },
		"a host's name": func() ([]byte, error) {
			return record.Encode(record.Rollout{Hosts: []record.RolloutHost{{Name: long}}})
		},
		"hosts": func() ([]byte, error) {
			return record.Encode(record.Rollout{Hosts: make([]record.RolloutHost, 1001)})
		},
		"members":        func() ([]byte, error) { return record.Encode(record.Host{Sees: reachability(17, 1)}) },
		"a word":         func() ([]byte, error) { return record.Encode(record.Host{Sees: reachability(1, 33)}) },
		"unknown fields": func() ([]byte, error) { return record.Encode(record.Op{Extra: fields(65, 1)}) },
		"unknown bytes":  func() ([]byte, error) { return record.Encode(record.Op{Extra: fields(1, 17<<10)}) },
	} {
		if b, err := r(); err == nil || !strings.Contains(err.Error(), "the limit is") {
			t.Errorf("%s: wrote %d bytes, %v", name, len(b), err)
		}
	}
	for text, want := range map[string]string{
		`{"version":1,"hostName":"` + long + `"}`:                       "its hostName: 513 bytes; the limit is 512",
		`{"version":1,"x":"` + strings.Repeat("x", 17<<10) + `"}`:       "fields unknown to this agent",
		`{"version":1,"x":` + strings.Repeat(`{"a":`, 40) + `1` + "}}}": "more than 32 deep",
	} {
		if _, err := record.Decode[record.Op]([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want %q", text, err, want)
		}
	}
	for _, rtt := range []string{"-1", "1e300"} {
		value := `{"version":1,"sees":[{"rttSeconds":` + rtt + `}]}`
		if _, err := record.Decode[record.Host]([]byte(value)); err == nil {
			t.Errorf("a member that is %s seconds away was read", rtt)
		}
	}
	for _, p99 := range []string{"-1", "1e300"} {
		if _, err := record.Decode[record.Host]([]byte(`{"version":1,"fsyncP99":` + p99 + `}`)); err == nil {
			t.Errorf("a p99 of %s was read", p99)
		}
	}
}

func TestRolloutWithADuplicateHostIsRefused(t *testing.T) {
	t.Parallel()
	const twice = `{"version":1,"state":"running","hosts":[{"id":"a","state":"waiting"},{"id":"b","state":"done"},{"id":"a","state":"waiting"}]}`
	if r, err := record.Decode[record.Rollout]([]byte(twice)); err == nil ||
		!strings.Contains(err.Error(), "host 2: it is in the list already") {
		t.Errorf("%+v was read, %v", r.Hosts, err)
	}
	if b, err := record.Encode(record.Rollout{Hosts: []record.RolloutHost{{ID: "a"}, {ID: "a"}}}); err == nil {
		t.Errorf("%s was written", b)
	}
}

func fields(n, size int) record.Extra {
	out := record.Extra{}
	for i := range n {
		out[fmt.Sprint("x", i)] = json.RawMessage(`"` + strings.Repeat("x", size) + `"`)
	}
	return out
}

// If a record could be written but not updated, its operation would never end.
func TestLargestPossibleRecordsFitIntoMaxBytes(t *testing.T) {
	t.Parallel()
	roomy(t, record.Host{Spares: filled(32, 512), Sees: reachability(record.MaxReachability, 32)})
	roomy(t, record.Lock{})
	roomy(t, record.Op{})
	roomy(t, record.Pause{})
	roomy(t, record.Line{})
	roomy(t, record.Size{Voters: record.MaxVoters})
	roomy(t, record.Retired{})
	roomy(t, record.Queue{Next: filled(32, 512), Down: filled(32, 512)})
}

func reachability(n, size int) []record.Reachability {
	word := record.PortState(strings.Repeat("w", size))
	out := make([]record.Reachability, n)
	for i := range out {
		out[i] = record.Reachability{MemberID: math.MaxUint64, Peer: word, Client: word, RTTSeconds: 1.0 / 3}
	}
	return out
}

func filled(n, size int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strings.Repeat("q", size)
	}
	return out
}

func roomy[T record.Host | record.Lock | record.Op | record.Pause | record.Queue | record.Size | record.Retired |
	record.Line](
	t *testing.T, r T,
) {
	t.Helper()
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		switch field := v.Field(i); field.Interface().(type) {
		case string:
			size := 512
			if v.Type().Field(i).Tag.Get("bound") == "text" {
				size = 4 << 10
			}
			field.SetString(strings.Repeat("x", size))
		case int64, time.Duration:
			field.SetInt(math.MinInt64)
		case record.MemberID:
			field.SetUint(math.MaxUint64)
		case float64:
			field.SetFloat(1.0 / 3)
		case time.Time:
			field.Set(reflect.ValueOf(time.Date(9999, 1, 2, 3, 4, 5, 123456789, time.UTC)))
		case record.Extra:
			field.Set(reflect.ValueOf(fields(64, 230)))
		}
	}
	b, err := record.Encode(r)
	if err != nil {
		t.Errorf("the largest %T: %v", r, err)
		return
	}
	if _, err := record.Decode[T](b); err != nil {
		t.Errorf("the largest %T: %v", r, err)
	}
}

func TestRolloutHasRoomOnlyIfItsEndCanBeWritten(t *testing.T) {
	t.Parallel()
	const short, long = "etcd-%04d", "etcd-%04d.rack-17.hall-3.berlin.example.net"
	for _, c := range []struct {
		hosts int
		name  string
		fits  bool
	}{{0, short, true}, {3, short, true}, {700, short, true}, {1000, short, true}, {1000, long, false}} {
		r := record.Rollout{
			ID: "x", Work: "reboot", Reason: "kernel", By: "ann", State: record.RolloutRunning,
			Started: noon,
		}
		for i := range c.hosts {
			r.Hosts = append(r.Hosts, record.RolloutHost{
				ID: fmt.Sprintf("%032x", i), Name: fmt.Sprintf(c.name, i),
				State: record.HostWaiting,
			})
		}
		most, err := r.Room()
		if (err == nil) != c.fits {
			t.Errorf("%d hosts: %v", c.hosts, err)
		}
		r.Hosts = r.Hosts[:most]
		if _, err := r.Room(); err != nil {
			t.Errorf("%d hosts: Room returns %d: %v", c.hosts, most, err)
		}
		t.Logf("%d hosts: %d have room", c.hosts, most)
		for i := range r.Hosts { // all changes until the rollout ends
			r.Hosts[i].State, r.Hosts[i].Seconds, r.Hosts[i].Turn = record.HostDone, 1234.56789, 123456.789123
			r.Since = noon.Add(time.Duration(i) * time.Minute)
		}
		if _, err := record.Encode(r); err != nil {
			t.Errorf("all are done: %v", err)
		}
		r.State, r.Text = record.RolloutStopped, strings.Repeat("\x00", 9999)
		if _, err := record.Encode(r); err != nil {
			t.Errorf("stopped: %v", err)
		}
	}
}

func TestASizeThatNoClusterCanHaveIsNeitherWrittenNorRead(t *testing.T) {
	t.Parallel()
	for voters := -3; voters <= 13; voters++ {
		valid := voters >= 1 && voters <= 9 && voters%2 == 1
		if b, err := record.Encode(record.Size{Voters: voters}); (err == nil) != valid {
			t.Errorf("%d voters: written as %s, %v", voters, b, err)
		}
		for _, text := range []string{ // as this agent writes it, and with a field of a newer agent
			`{"version":1,"voters":%d,"by":"","host":"","reason":"","since":"0001-01-01T00:00:00Z"}`,
			`{"version":1,"voters":%d,"later":true}`,
		} {
			text = fmt.Sprintf(text, voters)
			s, err := record.Decode[record.Size]([]byte(text))
			if (err == nil) != valid || valid && s.Voters != voters {
				t.Errorf("%s: read as %+v, %v", text, s, err)
			}
		}
	}
	for _, text := range []string{
		`{"version":2,"voters":5}`, `{"voters":5}`, `{"version":1}`, `{"version":1,"voters":"5"}`,
		`{"version":1,"voters":5.5}`,
		`{"version":1,"VOTERS":5}`, `{"version":1,"voters":18446744073709551621}`, `5`, `null`, ``,
		`{"version":1,"voters":5,"by":"` + strings.Repeat("x", 513) + `"}`,
		`{"version":1,"voters":5,"reason":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		if s, err := record.Decode[record.Size]([]byte(text)); err == nil {
			t.Errorf("%.60s: read as %+v", text, s)
		}
	}
}
