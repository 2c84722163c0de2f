// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package testbed_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// bound is how long a test waits for an event that should take at most a second.
const bound = 30 * time.Second

func TestMain(m *testing.M) {
	if dir := os.Getenv("TESTBED_TEST_ABANDON"); dir != "" {
		abandonMember(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// within returns a context that ends after bound.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	return ctx
}

func TestABinaryThatWasNotBuiltIsNamedWithItsRemedy(t *testing.T) {
	t.Parallel()
	_, err := testbed.Binary("v2.3")
	if want := "cannot find etcd v2.3: run `make etcd-all`"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRootIsTheMainModuleAndNotANestedOne(t *testing.T) {
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, "contrib", "faultfs")) // has its own go.mod
	if nested, err := testbed.Root(); err != nil || nested != root {
		t.Errorf("from contrib/faultfs: %s, %v; want %s", nested, err, root)
	}
	t.Chdir("/") // the directory for temporary files may be in the checkout
	if _, err := testbed.Root(); err == nil || !strings.HasSuffix(err.Error(), "run this inside the checkout") {
		t.Errorf("outside: %v", err)
	}
}

// recorder is a testing.TB that records the message of a failure.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestEventuallyFailsAfterItsBoundAndNamesTheCondition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, r := time.Now(), &recorder{}
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			testbed.Eventually(r, 3*time.Second, "pigs fly", func() bool { return false })
		}()
		<-finished
		if want := "did not happen in 3s: pigs fly"; r.failure != want || time.Since(began) != 3*time.Second {
			t.Errorf("got %q after %v, want %q", r.failure, time.Since(began), want)
		}
	})
}

func TestEventuallyReturnsSoonAfterTheConditionHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		testbed.Eventually(t, time.Hour, "a second has passed", func() bool { return time.Since(began) >= time.Second })
		if took := time.Since(began); took > 1010*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}
