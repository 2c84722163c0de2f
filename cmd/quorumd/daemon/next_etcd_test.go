// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/policy"
)

func TestTheNextEtcdIsCheckedAgainOnlyAfterAChangeOrALongTime(t *testing.T) {
	t.Parallel()
	binary, began := filepath.Join(t.TempDir(), "etcd"), time.Now()
	replace := func(version string) {
		t.Helper()
		err := errors.Join(os.WriteFile(binary+".new", []byte(version), 0o600),
			os.Chtimes(binary+".new", began, began), os.Rename(binary+".new", binary)) // like cp -p
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		change func(now *checkedNext)
		failed bool // the first check has failed
		log    logState
		again  bool
	}{
		"nothing":        {change: func(*checkedNext) {}},
		"a minute later": {change: func(now *checkedNext) { now.at = now.at.Add(nextRetry) }},
		"a minute after an error": {
			change: func(now *checkedNext) { now.at = now.at.Add(nextRetry) }, failed: true, again: true,
		},
		"a minute later, while a snapshot is awaited": {
			change: func(now *checkedNext) { now.at = now.at.Add(nextRetry) }, log: logOld, again: true,
		},
		"a moment after an error":  {change: func(now *checkedNext) { now.at = now.at.Add(time.Second) }, failed: true},
		"long after":               {change: func(now *checkedNext) { now.at = now.at.Add(nextEvery) }, again: true},
		"etcd has been restarted":  {change: func(now *checkedNext) { now.pid++ }, again: true},
		"another setting":          {change: func(now *checkedNext) { now.unit = "ETCD_PROXY=off" }, again: true},
		"another environment file": {change: func(now *checkedNext) { now.file = "2" }, again: true},
		"the binary has been replaced": {change: func(now *checkedNext) {
			replace("3.7.3")
			now.binary = versionOfFile(binary)
		}, again: true},
		"the binary has been removed": {change: func(now *checkedNext) {
			now.binary = versionOfFile(binary + ".missing")
		}, again: true},
	} {
		replace("3.6.9")
		checks := 0
		check := func(logState) (policy.NextEtcd, logState, error) {
			if checks++; c.failed && checks == 1 {
				return policy.NextEtcd{}, logUnknown, os.ErrPermission
			}
			return policy.NextEtcd{Version: "3.6.9"}, c.log, nil
		}
		var last checkedNext
		now := checkedNext{pid: 42, binary: versionOfFile(binary), at: began}
		if _, err := last.refresh(now, check); (err != nil) != c.failed || checks != 1 {
			t.Fatalf("%s: %d checks at first, %v", what, checks, err)
		}
		c.change(&now)
		_, err := last.refresh(now, check)
		if again := checks == 2; again != c.again || (err != nil) != (c.failed && !again) {
			t.Errorf("%s: checked again: %t, %v", what, again, err)
		}
	}
}
