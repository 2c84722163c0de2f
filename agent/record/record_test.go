// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/agent/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Complete records as this version writes them. Other agents read exactly these bytes, so a change here changes the
// format.
const (
	hostJSON = `{"version":1,"id":"h3","name":"rack3-db","domain":"rack3","instance":"i-7","bootID":"b-1",` +
		`"clientURL":"https://10.0.0.3:2379","peerURL":"https://10.0.0.3:2380","mode":"manage","agentVersion":"1.0.0",` +
		`"etcdVersion":"3.6.16","memberID":"8e9e05c52164694d","role":"voter","health":"SLOW","healthText":"the disk is slow",` +
		`"spares":["leadership"],` +
		`"qualified":true,"fsyncP99":0.004,"waiting":"DISK_SLOW"}`
	lockJSON = `{"version":1,"host":"h3","name":"rack3-db","since":"2026-03-01T12:00:00Z"}`
	opJSON   = `{"version":1,"kind":"join","host":"h3","hostName":"rack3-db","target":"voter","phase":"added","token":42,` +
		`"bootID":"b-1","memberID":"ff","peerURL":"https://10.0.0.3:2380","started":"2026-03-01T12:00:00Z",` +
		`"clock":5000000000,"reason":"disk swap","by":"ann"}`
	pauseJSON = `{"version":1,"by":"ann","host":"h3","reason":"move","since":"2026-03-01T12:00:00Z","until":"2026-03-01T13:00:00Z"}`
	lineJSON  = `{"version":1,"time":"2026-03-01T12:00:00Z","host":"h3","name":"rack3-db","kind":"step","code":"ADD_LEARNER","text":"added"}`
	endJSON   = `{"version":1,"time":"2026-03-01T12:00:00Z","host":"h3","name":"rack3-db","kind":"operation","code":"JOINED",` +
		`"text":"joined","operation":"join","outcome":"JOINED"}`
	sizeJSON = `{"version":1,"voters":5,"withoutSnapshot":true,"by":"ann","host":"rack3-db","reason":"two racks",` +
		`"since":"2026-03-01T12:00:00Z"}`
	retiredJSON = `{"version":1,"name":"rack3-db","peerURL":"https://10.0.0.3:2380",` +
		`"successor":{"host":"h5","name":"rack5-db","peerURL":"https://10.0.0.5:2380"},"by":"ann",` +
		`"reason":"end of lease","since":"2026-03-01T12:00:00Z"}`
	rollbackJSON = `{"version":1,"kind":"join","host":"h3","hostName":"rack3-db","phase":"rollback","token":42,` +
		`"started":"2026-03-01T12:00:00Z","reason":"LEARNER_STALLED: no progress","outcome":"LEARNER_STALLED"}`
)

func TestRecordFormatsAreStable(t *testing.T) {
	t.Parallel()
	expect(t, hostJSON, record.Host{
		Version: 1, ID: "h3", Name: "rack3-db", Domain: "rack3", Instance: "i-7", BootID: "b-1",
		ClientURL: "https://10.0.0.3:2379", PeerURL: "https://10.0.0.3:2380", Mode: "manage", AgentVersion: "1.0.0",
		EtcdVersion: "3.6.16", MemberID: 0x8e9e05c52164694d, Role: "voter", Health: "SLOW",
		HealthText: "the disk is slow", Spares: []string{"leadership"},
		Qualified: true, FsyncP99: 0.004, Waiting: "DISK_SLOW",
	})
	expect(t, lockJSON, record.Lock{Version: 1, Host: "h3", Name: "rack3-db", Since: noon})
	expect(t, opJSON, record.Op{
		Version: 1, Kind: "join", Host: "h3", HostName: "rack3-db", Target: "voter", Phase: "added", Token: 42,
		BootID: "b-1", MemberID: 0xff, PeerURL: "https://10.0.0.3:2380", Started: noon, Clock: 5 * time.Second,
		Reason: "disk swap", By: "ann",
	})
	expect(t, pauseJSON, record.Pause{
		Version: 1, By: "ann", Host: "h3", Reason: "move", Since: noon,
		Until: noon.Add(time.Hour),
	})
	expect(t, sizeJSON, record.Size{
		Version: 1, Voters: 5, WithoutSnapshot: true, By: "ann", Host: "rack3-db", Reason: "two racks", Since: noon,
	})
	expect(t, retiredJSON, record.Retired{
		Version: 1, Name: "rack3-db", PeerURL: "https://10.0.0.3:2380", By: "ann", Reason: "end of lease", Since: noon,
		Successor: record.Successor{Host: "h5", Name: "rack5-db", PeerURL: "https://10.0.0.5:2380"},
	})
	expect(t, lineJSON, record.Line{
		Version: 1, Time: noon, Host: "h3", Name: "rack3-db", Kind: "step",
		Code: "ADD_LEARNER", Text: "added",
	})
	expect(t, endJSON, record.Line{
		Version: 1, Time: noon, Host: "h3", Name: "rack3-db", Kind: "operation",
		Code: "JOINED", Text: "joined", Operation: "join", Outcome: "JOINED",
	})
	expect(t, rollbackJSON, record.Op{
		Version: 1, Kind: "join", Host: "h3", HostName: "rack3-db", Phase: "rollback", Token: 42, Started: noon,
		Reason: "LEARNER_STALLED: no progress", Outcome: "LEARNER_STALLED",
	})
}

// anyRecord is any type of record that these tests cover.
type anyRecord interface {
	record.Host | record.Lock | record.Op | record.Pause | record.Queue | record.Rollout | record.Release |
		record.Repairs | record.Backup | record.Manifests | record.Saving | record.Size | record.Retired |
		record.Line
}

func expect[T anyRecord](t *testing.T, text string, r T) {
	t.Helper()
	written, err := record.Encode(r)
	if err != nil || string(written) != text {
		t.Errorf("written, %v:\n%s\nwant\n%s", err, written, text)
	}
	read, err := record.Decode[T]([]byte(text))
	if diff := cmp.Diff(r, read); err != nil || diff != "" {
		t.Errorf("read, %v, (-want +got):\n%s", err, diff)
	}
}

func TestEncodeAlwaysWritesThisAgentsVersion(t *testing.T) {
	t.Parallel()
	written, err := record.Encode(record.Op{Version: 7})
	if err != nil || !strings.HasPrefix(string(written), `{"version":1,`) {
		t.Errorf("got %s, %v", written, err)
	}
}

func TestFieldsOfANewerAgentSurviveARewrite(t *testing.T) {
	t.Parallel()
	op, err := record.Decode[record.Op]([]byte(
		`{"version":1,"kind":"join","phase":"added","witness":{"of": [1, 2.50, "<x>"]},"nothing":null,"target":"voter"}`))
	if err != nil {
		t.Fatal(err)
	}
	op.Phase, op.Target = "started", "" // known fields may change or disappear
	written, err := record.Encode(op)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(written, &fields); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"of": []any{1.0, 2.5, "<x>"}}
	if diff := cmp.Diff(want, fields["witness"]); diff != "" {
		t.Errorf("witness (-want +got):\n%s", diff)
	}
	if _, kept := fields["nothing"]; !kept || fields["phase"] != "started" || fields["target"] != nil {
		t.Errorf("got %s", written)
	}
}

func TestRewritingARecordDoesNotChangeTheOriginal(t *testing.T) {
	t.Parallel()
	op, err := record.Decode[record.Op]([]byte(`{"version":1,"kind":"join","new":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.Encode(op); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(record.Extra{"new": json.RawMessage("1")}, op.Extra); diff != "" {
		t.Errorf("the unknown fields after a rewrite (-want +got):\n%s", diff)
	}
}

func TestFieldNamesAreCaseSensitive(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"version":1,"kind":"join","KIND":"cycle","Token":9,"TARGET":"voter"}`,
		`{"KIND":"cycle","Token":9,"TARGET":"voter","kind":"join","version":1}`,
		`{"version":1,"kind":"join","KIND":"cycle","Token":9,"TARGET":"voter","VERSION":2}`,
		`{"version":1,"kind":"join","\u212aind":"cycle"}`, // the Kelvin sign folds to k
	} {
		op, err := record.Decode[record.Op]([]byte(text))
		if err != nil || op.Kind != "join" || op.Token != 0 || op.Target != "" {
			t.Errorf("%s: read %+v, %v", text, op, err)
			continue
		}
		op.Token = 5
		written, err := record.Encode(op)
		if err != nil {
			t.Fatal(err)
		}
		again, err := record.Decode[record.Op](written)
		if diff := cmp.Diff(op, again); err != nil || diff != "" {
			t.Errorf("%s: after a rewrite, %v, (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestRecordOfAnotherVersionIsRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"version":2,"kind":"join"}`, `{"version":0}`, `{"version":-1}`,
		`{"version":2,"VERSION":1}`, // a version field in another case does not count
	} {
		op, err := record.Decode[record.Op]([]byte(text))
		if !errors.Is(err, record.ErrVersion) || !strings.HasSuffix(err.Error(), "upgrade quorumd on this host") ||
			op.Kind != "" {
			t.Errorf("%s: got %+v, %v", text, op, err)
		}
	}
}

func TestInvalidRecordIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                   "unexpected end of JSON input",
		`nonsense`:                           "invalid character",
		`[]`:                                 "cannot unmarshal array",
		`"text"`:                             "cannot unmarshal string",
		`null`:                               "it has no version",
		`{}`:                                 "it has no version",
		`{"Version":1}`:                      "it has no version",
		`{"version":"1"}`:                    "its version",
		`{"version":1.5}`:                    "its version",
		`{"version":1} {}`:                   "after top-level value",
		`{"version":1,"kind":7}`:             "cannot unmarshal number",
		`{"version":1,"token":1e99}`:         "cannot unmarshal number",
		`{"version":1,"started":"tomorrow"}`: "parsing time",
		`{"version":1,"memberID":12}`:        "a member ID is a hexadecimal string",
		`{"version":1,"memberID":""}`:        "a member ID is a hexadecimal string",
		`{"version":1,"memberID":"xyz"}`:     "a member ID is a hexadecimal string",
		`{"version":1,"memberID":"10000000000000000"}`:                          "value out of range",
		`{"version":1,"x":` + strings.Repeat("[", 20e3) + `}`:                   "more than 32 deep",
		`{"version":1,"reason":"` + strings.Repeat("x", record.MaxBytes) + `"}`: "the limit is 65536",
	} {
		_, err := record.Decode[record.Op]([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "cannot read record.Op: ") {
			t.Errorf("%.60s: got %v, want %q", text, err, want)
		}
	}
}

func TestMemberIDIsWrittenAsEtcdctlPrintsIt(t *testing.T) {
	t.Parallel()
	if got := record.MemberID(0x0123456789abcdef).String(); got != "123456789abcdef" {
		t.Errorf("got %s", got)
	}
}

func TestStateRangeHoldsAllOfAClustersStateAndNothingElse(t *testing.T) {
	t.Parallel()
	keys := record.KeysFor("prod")
	start, end := keys.State()
	within := func(key string) bool { return start <= key && key < end }
	for _, key := range []string{keys.Host("a"), keys.Host("zz"), keys.Lock(), keys.Op(), keys.Pause(), keys.Queue()} {
		if !within(key) {
			t.Errorf("%s is not in [%s, %s)", key, start, end)
		}
	}
	for _, other := range []string{"pro", "prod0", "prod2", "proe"} {
		others := record.KeysFor(other)
		for _, key := range []string{
			others.Host("a"), others.Lock(), others.Op(), others.Pause(),
			keys.HistoryLine(1, "a", 0),
		} {
			if within(key) {
				t.Errorf("%s is in [%s, %s)", key, start, end)
			}
		}
	}
}

func TestClusterKeysExcludeTheHosts(t *testing.T) {
	t.Parallel()
	keys := record.KeysFor("prod")
	start, end := keys.State()
	for _, key := range keys.Cluster() {
		if key < start || key >= end || strings.HasPrefix(key, keys.Hosts()) || strings.HasSuffix(key, "/") {
			t.Errorf("%s is among them", key)
		}
	}
}

func TestHistorySortsByRevision(t *testing.T) {
	t.Parallel()
	keys, last := record.KeysFor("prod"), ""
	for _, revision := range []int64{1, 9, 10, 255, 256, 1 << 32, 1<<63 - 1} {
		key := keys.HistoryLine(revision, "h", 0)
		if key <= last || !strings.HasPrefix(key, keys.History()) {
			t.Errorf("%s does not follow %s", key, last)
		}
		last = key
	}
	if a, b := keys.HistoryLine(7, "h", 0), keys.HistoryLine(7, "h", 1); a == b {
		t.Errorf("two lines have the key %s", a)
	}
}

// same compares unknown fields as JSON: a rewrite removes whitespace.
var same = cmp.Transformer("compact", func(raw json.RawMessage) string {
	b, err := json.Marshal(raw)
	return fmt.Sprint(string(b), err)
})

// roundTrips checks that a decoded record can be encoded, and decodes to the same record.
func roundTrips[T anyRecord](t *testing.T, b []byte) {
	t.Helper()
	r, err := record.Decode[T](b)
	if err != nil {
		return
	}
	written, err := record.Encode(r)
	if err != nil {
		t.Fatalf("%T was read from %d bytes and cannot be written: %v", r, len(b), err)
	}
	again, err := record.Decode[T](written)
	if diff := cmp.Diff(r, again, same); err != nil || diff != "" {
		t.Fatalf("%s\nwas written as\n%s\nand read back, %v (-want +got):\n%s", b, written, err, diff)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		hostJSON, lockJSON, opJSON, pauseJSON, lineJSON, `null`, `{}`, `{"version":2}`,
		`{"version":1,"KIND":"x","kind":"y","\u212aind":"z","new":{"a":[1, 2]},"target":"\xff<>"}`,
		`{"version":1,"started":"2026-03-01T12:00:00+24:00","since":"2026-03-01T12:00:00-23:59","text":"\u0000\u2028"}`,
		`{"version":1,"state":"running","hosts":[{"id":"a","state":"done","seconds":1.23456,"turn":1e9,"new":1}],"x":[[[]]]}`,
		`{"version":1,"last":[{"time":"2026-11-23T03:00:00Z","host":"n4","member":"7","peerURL":"http://n3","new":1}],` +
			`"x":1}`,
		`{"version":1,"saved":[{"name":"a","sha256":"` + strings.Repeat("0a", 32) + `","saved":"2026-11-23T03:00:00Z"}]}`,
		`{"version":1,"since":"0001-01-01T00:00:00+01:00","until":"0000-01-01T00:00:00-23:59","memberID":"0000"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		roundTrips[record.Host](t, b)
		roundTrips[record.Lock](t, b)
		roundTrips[record.Op](t, b)
		roundTrips[record.Pause](t, b)
		roundTrips[record.Queue](t, b)
		roundTrips[record.Rollout](t, b)
		roundTrips[record.Release](t, b)
		roundTrips[record.Repairs](t, b)
		roundTrips[record.Backup](t, b)
		roundTrips[record.Manifests](t, b)
		roundTrips[record.Saving](t, b)
		roundTrips[record.Line](t, b)
	})
}
