// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package nextetcd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorumd/quorumd/agent/execshim"
	"github.com/quorumd/quorumd/contrib/testbed"
	"github.com/quorumd/quorumd/health/etcdflags"
)

// childVariable makes this test binary execute a program, as the agent's own binary does.
const childVariable = "NEXTETCD_TEST_CHILD"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childVariable {
		_ = execshim.Main(os.Args[2:])
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func child(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, childVariable}
}

// fake writes a program that answers like an etcd with these flags.
func fake(t *testing.T, flags ...string) string {
	t.Helper()
	script := "#!/bin/sh\ncase \"$1\" in\n"
	for _, f := range append(flags, "version") {
		script += "--" + f + "|--" + f + "=*) echo 'etcd Version: 3.7.3'; exit 0;;\n"
	}
	script += "*) echo \"flag provided but not defined: $1\" >&2; exit 2;;\nesac\n"
	path := filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEachSettingThatTheNextEtcdDoesNotKnowHasARemedy(t *testing.T) {
	t.Parallel()
	path := fake(t, "name", "corrupt-check-time", "feature-gates")
	got, err := Check(t.Context(), child(t), path, etcdflags.Names{
		Flags:     []string{"name", "experimental-initial-corrupt-check", "proxy"},
		Variables: []string{"ETCD_NAME", "ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME", "ETCD_$(reboot)"},
		Keys:      []string{"name", "experimental-corrupt-check-time", "name"},
	})
	want := Result{Version: "3.7.3", Problems: []string{
		"does not start with --experimental-initial-corrupt-check " +
			"(add InitialCorruptCheck=<its value> to --feature-gates)",
		"does not start with --proxy (remove it)",
		"ignores ETCD_$(reboot) (remove it)",
		"ignores ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME (use ETCD_CORRUPT_CHECK_TIME instead)",
		"ignores experimental-corrupt-check-time in its configuration file (use corrupt-check-time instead)",
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, differs:\n%s", err, diff)
	}
}

func TestTheRealEtcdIsAsked(t *testing.T) {
	t.Parallel()
	got, err := Check(t.Context(), child(t), testbed.Etcd(t, testbed.DefaultVersion), etcdflags.Names{
		Flags:     []string{"name", "listen-client-urls", "enable-v2", "max-txn-ops", "config-file"},
		Variables: []string{"ETCD_DATA_DIR", "ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK"},
	})
	if err != nil || !strings.HasPrefix(got.Version, "3.6.") ||
		!cmp.Equal(got.Problems, []string{"does not start with --enable-v2 (remove it)"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTheRealEtcdIsAskedAboutEachFeatureGate(t *testing.T) {
	t.Parallel()
	got, err := Check(t.Context(), child(t), testbed.Etcd(t, testbed.DefaultVersion), etcdflags.Names{
		Flags: []string{"feature-gates"},
		Gates: []string{"$(reboot)=true", "InitialCorruptCheck=true", "InitialCorruptCheck=perhaps", "Removed=false"},
	})
	want := []string{
		"does not start with the feature gate $(reboot)=true (remove it)",
		"does not start with the feature gate InitialCorruptCheck=perhaps (remove it)",
		"does not start with the feature gate Removed=false (remove it)",
	}
	if diff := cmp.Diff(want, got.Problems); err != nil || diff != "" {
		t.Errorf("%v, differs:\n%s", err, diff)
	}
}

func TestAProgramThatDoesNotAnswerLikeEtcdIsAnError(t *testing.T) {
	t.Parallel()
	write := func(text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "etcd")
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	names := etcdflags.Names{Flags: []string{"name"}}
	for what, path := range map[string]string{
		"missing":        "/nonexistent/etcd",
		"not executable": write("#!/bin/sh\n", 0o644),
		"something else": write("#!/bin/sh\necho hello\n", 0o755),
		"too talkative":  write("#!/bin/sh\nexec yes\n", 0o755),
	} {
		if got, err := Check(t.Context(), child(t), path, names); err == nil {
			t.Errorf("%s: %+v", what, got)
		}
	}
	names.Variables = make([]string, maxNames)
	if got, err := Check(t.Context(), child(t), fake(t), names); err == nil {
		t.Errorf("too many settings: %+v", got)
	}
}
