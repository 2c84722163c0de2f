// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/contrib/testbed"
)

const (
	prefix = "/quorumd/demo/"
	probe  = prefix + "lock"
)

// withAuth runs a voter with authentication. The user "limited" may use only prefix; "full" has the role root, too.
// Each password is the user's name. A token expires a second after its last use.
func withAuth(t *testing.T, version string) *testbed.Cluster {
	t.Helper()
	return withAuthOver(t, version, nil)
}

// withAuthOver is withAuth with TLS, unless tls is nil.
func withAuthOver(t *testing.T, version string, tls *testbed.CertFiles) *testbed.Cluster {
	t.Helper()
	o := quick()
	// with the default cost, checking a password takes seconds on a busy machine
	o.Version, o.Extra, o.TLS = version, []string{"--auth-token-ttl=1", "--bcrypt-cost=4"}, tls
	c := testbed.StartCluster(t, 1, o)
	client, ctx := c.Client(t), within(t)
	readWrite := clientv3.PermissionType(clientv3.PermReadWrite)
	for what, do := range []func() error{
		func() error { _, err := client.RoleAdd(ctx, "root"); return err },
		func() error { _, err := client.RoleAdd(ctx, "quorumd"); return err },
		func() error {
			_, err := client.RoleGrantPermission(ctx, "quorumd", prefix, clientv3.GetPrefixRangeEnd(prefix), readWrite)
			return err
		},
		func() error { _, err := client.UserAdd(ctx, "root", "root"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := client.UserAdd(ctx, "limited", "limited"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "limited", "quorumd"); return err },
		func() error { _, err := client.UserAdd(ctx, "full", "full"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "full", "quorumd"); return err },
		func() error { _, err := client.UserGrantRole(ctx, "full", "root"); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			t.Fatalf("step %d of the authentication: %v", what, err)
		}
	}
	return c
}

// passwordFile writes a password file with the required mode.
func passwordFile(t *testing.T, password string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(password+"\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	return path
}

func login(t *testing.T, user string, c *testbed.Cluster) cluster.Options {
	t.Helper()
	return cluster.Options{
		Endpoints: c.Endpoints(), CallTimeout: 5 * time.Second, Probe: probe,
		Login: cluster.Login{User: user, PasswordFile: passwordFile(t, user)},
	}
}

func TestAUserWhoMayUseThePrefixAloneIsDeniedTheRest(t *testing.T) {
	t.Parallel()
	versions := strings.Fields(os.Getenv("QUORUMD_ETCD_VERSIONS")) // make test-matrix sets more
	if len(versions) == 0 {
		versions = []string{"v3.6"}
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			etcd := withAuth(t, version)
			c := connectWith(t, login(t, "limited", etcd))
			list := members(t, c)
			s := c.Statuses(within(t), list.Members)[list.Members[0].ID]
			if s.Err != nil || !s.Linearizable {
				t.Errorf("the voter does not serve the user: %+v", s)
			}
			if _, err := c.Read(within(t), cluster.Span{Start: prefix, End: "/quorumd/demo0"}); err != nil {
				t.Errorf("its own records: %v", err)
			}
			url := etcd.Endpoints()[0]
			if err := c.ProbeWrite(within(t), url, prefix+"request"); err != nil {
				t.Errorf("a probe write to its own prefix: %v", err)
			}
			if err := c.ProbeWrite(within(t), url, "/quorumd"); !cluster.Denied(err) || cluster.Unanswered(err) {
				t.Errorf("a probe write outside: %v", err)
			}
			if _, err := c.Read(within(t), cluster.Span{Start: "/quorumd"}); !cluster.Denied(err) {
				t.Errorf("keys outside: %v", err)
			}
			if _, err := c.AddLearner(within(t), "http://127.0.0.1:1"); !cluster.Denied(err) {
				t.Errorf("a learner: %v", err)
			}
			if err := c.MoveLeader(within(t), etcd.Endpoints()[0], 1); !cluster.Denied(err) {
				t.Errorf("the leadership: %v", err)
			}
			if _, err := connectWith(t, login(t, "full", etcd)).AddLearner(within(t),
				"http://127.0.0.1:1"); err != nil {
				t.Errorf("a learner, by a user with the role root: %v", err)
			}
			for who, o := range map[string]cluster.Options{
				"no user": {Endpoints: etcd.Endpoints(), CallTimeout: 5 * time.Second, Probe: probe},
				"a user with a wrong password": {
					Endpoints: etcd.Endpoints(), CallTimeout: 5 * time.Second, Probe: probe,
					Login: cluster.Login{User: "full", PasswordFile: passwordFile(t, "wrong")},
				},
			} {
				if _, err := connectWith(t, o).Members(within(t)); !cluster.Denied(err) {
					t.Errorf("%s: %v", who, err)
				}
			}
		})
	}
}

func TestAnExpiredTokenIsReplaced(t *testing.T) {
	t.Parallel()
	etcd := withAuth(t, "v3.6")
	c := connectWith(t, login(t, "limited", etcd))
	members(t, c)
	lease, _, err := c.Grant(within(t), 60)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		idle := time.NewTimer(2500 * time.Millisecond) // etcd checks for expired tokens once a second
		<-idle.C
		if _, err := c.Txn(within(t), nil, clientv3.OpPut(probe, "x", clientv3.WithLease(lease))); err != nil {
			t.Fatalf("a write after a while without one: %v", err)
		}
		if _, err := c.KeepAliveOnce(within(t), lease); err != nil {
			t.Errorf("the lease: %v", err)
		}
	}
}

func TestALearnerAnswersAlthoughItIssuesNoToken(t *testing.T) {
	t.Parallel()
	etcd := withAuth(t, "v3.6")
	c := connectWith(t, login(t, "full", etcd))
	o := learnerOptions(t, etcd)
	added, err := c.AddLearner(within(t), o.PeerURL)
	if err != nil {
		t.Fatal(err)
	}
	start(t, o)
	added.ClientURLs = []string{o.ClientURL}
	other := connectWith(t, login(t, "full", etcd)) // has no token yet
	testbed.Eventually(t, bound, "the learner answers", func() bool {
		s := other.Statuses(t.Context(), []cluster.Member{added})[added.ID]
		return s.Err == nil && s.Learner
	})
}

func TestThePasswordOverridesTheNameInTheCertificate(t *testing.T) {
	t.Parallel()
	ca := newCA(t)
	server, err := ca.Issue("server", testbed.CertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := login(t, "limited", withAuthOver(t, "v3.6", &server))
	o.TLS = files(t)(ca.Issue("host-4711", testbed.CertOptions{}))
	if _, err := connectWith(t, o).ReadLast(within(t), prefix, 1); err != nil {
		t.Errorf("with its password: %v", err)
	}
	o.Login.PasswordFile = passwordFile(t, "another")
	if _, err := connectWith(t, o).ReadLast(within(t), prefix, 1); !cluster.Denied(err) {
		t.Errorf("with a wrong one: %v", err)
	}
}

func TestAChangedPasswordIsUsedWithoutARestart(t *testing.T) {
	t.Parallel()
	etcd := withAuth(t, "v3.6")
	o := login(t, "limited", etcd)
	o.Login.PasswordFile = passwordFile(t, "not yet")
	c := connectWith(t, o)
	if _, err := c.Members(within(t)); !cluster.Denied(err) {
		t.Fatalf("with a wrong password: %v", err)
	}
	if err := os.Rename(passwordFile(t, "limited"), o.Login.PasswordFile); err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Members(within(t)); err != nil {
		t.Errorf("with the right one: %v", err)
	}
}

func TestClientWithoutAUsablePasswordIsNotCreated(t *testing.T) {
	t.Parallel()
	path := passwordFile(t, "secret")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	_, err := cluster.New(cluster.Options{
		Endpoints: []string{"http://127.0.0.1:1"}, Login: cluster.Login{User: "full", PasswordFile: path},
	})
	if want := "cannot use the password in " + path + ": its mode is 0640"; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A forged DNS answer can lead to an etcd that collects the password.
func TestAPasswordIsNotSentUnencryptedToADiscoveredEndpoint(t *testing.T) {
	t.Parallel()
	etcd := withAuth(t, "v3.6")
	for _, allowed := range []bool{false, true} {
		o := login(t, "limited", etcd)
		o.Endpoints, o.Discovers, o.Login.AllowUnencrypted = []string{"http://127.0.0.1:1"}, true, allowed
		c := connectWith(t, o)
		c.Discovered(etcd.Endpoints(), nil)
		_, err := c.Members(within(t))
		if sent := err == nil; sent != allowed || !sent && !errors.Is(err, cluster.ErrUnencrypted) {
			t.Errorf("allowed %t: %v", allowed, err)
		}
	}
	o := login(t, "limited", etcd) // a configured endpoint is trusted
	o.Discovers = true
	c := connectWith(t, o)
	c.Discovered(etcd.Endpoints(), nil)
	if _, err := c.Members(within(t)); err != nil {
		t.Errorf("a configured endpoint: %v", err)
	}
}
