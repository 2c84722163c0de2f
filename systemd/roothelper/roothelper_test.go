// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package roothelper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/systemd"
)

// TestMain also runs the test binary as the service, which carries out nothing and returns most orders as an error, and
// as a client that sends an order.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		_ = Serve(context.Background(), func(_ context.Context, o Request) error {
			switch o.Word {
			case HoldBack:
				return nil
			case Start:
				return fmt.Errorf("%w: masked", systemd.ErrNotInstalled)
			case Stop:
				return errors.New(strings.Repeat("\x01é", 10000))
			}
			text, _ := json.Marshal(o)
			return errors.New(string(text))
		})
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == "say" {
		fmt.Println(Client{os.Args[2], "a"}.SetStartGuard(context.Background(), true))
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func someVars() map[string]string {
	return map[string]string{
		"ETCD_NAME":                  "n1",
		"ETCD_INITIAL_CLUSTER":       "8e9e05c52164694d=https://[2001:db8::2]:2380,n1=http://n1.example:2380",
		"ETCD_INITIAL_CLUSTER_STATE": "existing",
	}
}

func TestAnOrderIsCarriedOutAndItsErrorKeepsItsKind(t *testing.T) {
	t.Parallel()
	c := Client{testbed.AcceptYes(t, "serve"), "a"}
	if err := c.SetStartGuard(t.Context(), true); err != nil {
		t.Error(err)
	}
	if err := c.Drive(t.Context(), Start); !errors.Is(err, systemd.ErrNotInstalled) ||
		!strings.Contains(err.Error(), "masked") {
		t.Errorf("%v", err)
	}
	if err := c.Drive(t.Context(), Stop); err == nil || !strings.HasSuffix(err.Error(), "…") {
		t.Errorf("a long error: %v", err)
	}
	want := `{"word":"environment","agent":"a","initial":{"cluster":"8e9e05c52164694d=https://[2001:db8::2]:2380,n1=http://n1.example:2380",` +
		`"state":"existing","digest":"` + Digest(someVars()) + `"}}`
	if err := c.SetEnvironment(t.Context(), someVars()); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	h := Hooks{
		When: "command", ID: "1763799000-command", Program: "upgrade", Until: time.Hour, Work: "command",
		Reason: "a \"fix\"", By: "root",
	}
	want = `{"word":"hooks","agent":"a","hooks":{"when":"command","id":"1763799000-command","program":"upgrade","until":3600000000000,` +
		`"work":"command","reason":"a \"fix\"","by":"root"}}`
	if err := c.RunHooks(t.Context(), h); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if err := (Client{filepath.Join(t.TempDir(), "none"), "a"}).SetStartGuard(t.Context(), true); !errors.Is(err,
		systemd.ErrUnavailable) {
		t.Errorf("without a service: %v", err)
	}
}

// odd returns invalid orders as JSON, with a part of the error that each must cause.
func odd() map[string]string {
	sum := strings.Repeat("0", 64)
	initial := func(cluster, state, token string) string {
		return fmt.Sprintf(`{"word":"environment","agent":"a","initial":{"cluster":%q,"state":%q,"token":%q,"digest":%q}}`, cluster, state, token, sum)
	}
	run := func(when, program string) string {
		return fmt.Sprintf(`{"word":"hooks","agent":"a","hooks":{"when":%q,"id":"1","program":%q,"work":"","reason":"","by":""}}`, when, program)
	}
	orders := map[string]string{
		"":                              "EOF",
		"{":                             "cannot be read",
		`{"word":"hold","agent":"a"}{}`: "only one order",
		`{"word":"hold","agent":"a","unit":"ssh.service"}`:                             "cannot be read",
		`{"word":"kill","agent":"a"}`:                                                  "unknown order",
		`{"word":"hold","agent":"a","hooks":{"when":"before"}}`:                        "unexpected fields",
		`{"word":"environment","agent":"a"}`:                                           "unexpected fields",
		strings.Repeat(" ", maxOrder+1):                                                "more than",
		initial("n1=http://n1:2380", "new", "secret"):                                  "invalid token",
		initial("n1=http://n1:2380", "existing", "quorumd-ABCDEFGHIJKLMNOPQRSTUVWXYZ"): "invalid token",
		initial("n1=http://n1:2380", "newer", ""):                                      "not a valid initial cluster",
		run("during", ""):           "not a hook type",
		run("before", "x"):          "not a valid command name",
		run("command", "../x"):      "not a valid command name",
		run("command", "-x"):        "not a valid command name",
		run("command", ".x"):        "not a valid command name",
		run("command", ""):          "not a valid command name",
		run("before:../x", ""):      "not a hook type",
		initial("", "existing", ""): "is not a member",
		initial(strings.Repeat("a=http://a:1,", 70)+"a=http://a:1", "existing", ""): "the limits are",
	}
	for _, agent := range []string{
		"", ".", "..", "../x", "a/b", "-a", ".a", "a b", "a\nb", "a%b",
		strings.Repeat("a", 65), "ä",
	} {
		text, _ := json.Marshal(Request{Word: HoldBack, Agent: agent})
		orders[string(text)] = "not a valid agent name"
	}
	for _, m := range []string{
		"n1", "n1=", "=http://a:1", "n1=file:///etc/shadow", "n1=http://a:1/x", "n1=http://a",
		"n1=http://a:1\nLD_PRELOAD=/x", `n1=http://a:1"`, "n1=http://$a:1", "n1=unix://a:1",
	} {
		orders[initial(m, "existing", "")] = "is not a member"
	}
	return orders
}

func TestTheServiceRefusesInvalidOrders(t *testing.T) {
	t.Parallel()
	socket := testbed.AcceptYes(t, "serve")
	for text, want := range odd() {
		conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
		if err != nil {
			t.Fatal(err)
		}
		if text == "" {
			err = conn.CloseWrite()
		} else {
			_, err = conn.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, maxAnswer)
		n, err := conn.Read(b)
		if err != nil || !strings.Contains(string(b[:n]), "invalid order: ") || !strings.Contains(string(b[:n]), want) {
			t.Errorf("%.200q: %s, %v", text, b[:n], err)
		}
		conn.Close()
	}
}

func TestTheClientSendsNoInvalidOrder(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "none")
	for what, give := range map[string]func() error{
		"not a valid agent name": func() error { return Client{socket, ".."}.SetStartGuard(t.Context(), true) },
		"unknown order":          func() error { return Client{socket, "a"}.Drive(t.Context(), "kill") },
		"not a valid command name": func() error {
			return Client{socket, "a"}.RunHooks(t.Context(), Hooks{When: "command", ID: "1", Program: ".."})
		},
		"not a hook type": func() error {
			return Client{socket, "a"}.RunHooks(t.Context(), Hooks{When: "..", ID: "1"})
		},
		"not a valid initial cluster state": func() error {
			return Client{socket, "a"}.SetEnvironment(t.Context(),
				map[string]string{"ETCD_INITIAL_CLUSTER": "a=http://a:1"})
		},
		"at most 64 letters, digits": func() error { return Client{socket, "-a"}.Drive(t.Context(), Start) },
	} {
		if err := give(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzAnOrderIsCheckedWithoutHarm(f *testing.F) {
	for text := range odd() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var o Request
		if json.Unmarshal(text, &o) != nil || o.Check() != nil {
			return
		}
		if strings.ContainsAny(o.Agent, "/\n") || strings.HasPrefix(o.Agent, ".") {
			t.Errorf("%q passes", o.Agent)
		}
		if i := o.Initial; i != nil && strings.ContainsAny(i.Cluster+i.State+i.Token, "\n\"' $\\`") {
			t.Errorf("%+v passes", i)
		}
	})
}
