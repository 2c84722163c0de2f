// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/contrib/docs"
	"github.com/quorumd/quorumd/contrib/testbed"
)

// typedCommand is a command from a page.
type typedCommand struct {
	line string // as typed, without quorumctl
	host int    // the host on which it runs
	exit int
}

// documentedLines returns the commands of the pages, in an order in which each works on three healthy hosts.
// TestDocumentedCommandsWork runs them.
func documentedLines() []typedCommand {
	return []typedCommand{
		{line: `wait --for ready`},
		{line: `wait --for voter --timeout 10m`},
		{line: `wait --for member --timeout 10m`},
		{line: `status`},
		{line: `status -q --exit-code`},
		{line: `explain`},
		{line: `health`},
		{line: `history`},
		{line: `history -n 10`},
		{line: `history -n 7`},
		{line: `network`},
		{line: `check`},
		{line: `member list --no-headers`},
		{line: `operation show`},
		{line: `schema pause`},
		{line: `maintenance on --reason "new disk in slot 2" --for 1m`, host: 2},
		{line: `maintenance status`, host: 2},
		{line: `maintenance off`, host: 2},
		{line: `maintenance on --reason "install packages" --interruptible`, host: 2},
		{line: `maintenance off`, host: 2},
		{line: `maintenance on --reason "new disk in slot 2" --for 1h`, host: 2},
		{line: `maintenance off`, host: 2},
		{line: `maintenance on --reason "kubeadm upgrade node"`, host: 1},
		{line: `maintenance off`, host: 1},
		{line: `cycle --reason "by hand"`, host: 2},
		{line: `cycle --reason "etcd 3.6.16" -- sh -c 'echo installing; sleep 1'`},
		{line: `cycle --command upgrade-etcd --reason "by hand"`},
		{line: `rollout start restart --reason "a new flag for etcd"`, host: 1},
		{line: `rollout status`},
		{line: `rollout status --watch`},
		{line: `rollout start command upgrade-etcd --yes --reason "etcd 3.6.16"`},
		{line: `rollout status --watch`},
		{line: `rollout start command upgrade-etcd --until-version 3.6.16 --reason "etcd 3.6.16"`},
		{line: `rollout status --watch`},
		{line: `rollout start restart --reason 'new flags' --dry-run`},
		{line: `rollout start restart --reason 'new flags' --yes --wait`},
		{line: `snapshot save`},
		{line: `snapshot verify`},
		{line: `snapshot test-restore`},
		{line: `snapshot list`},
		{line: `recover collect`},
		{line: `recover status`},
		{line: `recover status --watch`},
		{line: `pause --reason "rack move" --for 2h`},
		{line: `resume`},
	}
}

// otherTest names the test that runs a command that needs a different world.
type otherTest struct {
	test string
	runs string // text in that test's file that runs the command, or the page whose commands the test types
}

// ranElsewhere returns the test for each command that needs a different world. Names, addresses, reasons and paths may
// differ there; each flag of the command must occur in the test's file.
func ranElsewhere() map[string]otherTest {
	first := otherTest{"TestTheFirstClusterPageMakesATLSClusterOfThreeBareHosts", "contrib/docs/first-cluster.md"}
	check := otherTest{"TestConfigCheck", `"config", "check", odd`}
	lost := "TestAnOperatorRecoversFromQuorumLossWithThreeCommands"
	removed := "TestMemberRemoveShowsWhatItWaitsFor"
	resized, grows := "TestResizeShowsItsPlan", "TestResizeWaitFollowsTheVotersUntilTheClusterHasItsSize"
	replaced, readdressed := "TestReplaceShowsWhichHostJoins", "TestReaddressStartsARolloutOfTheNamedHostsOrOfAll"
	upgraded := "TestUpgradeShowsItsStepsAndGoesBackToTheOldestVersion"
	defragmented := "TestDefragStartsARolloutOfThisHostOfNamedOnesOrOfAll"
	retired, leaves := "TestRetireShowsItsPlanAndTheRetiredHosts", "TestRetireWaitsUntilTheHostCanBeSwitchedOff"
	return map[string]otherTest{
		`bootstrap --yes`:      first,
		`pki init`:             first,
		`pki host n1 10.0.0.1`: first,
		`pki host n2 10.0.0.2`: first,
		`pki host n3 10.0.0.3`: first,
		`init --name n1 --hosts n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3 --tls n1.tar --mode manage`: first,

		`init --hosts n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3`: {
			"TestInstallPageShowsTheFileThatInitWrites", "# quorumctl (init --hosts .*)",
		},

		`config check`:                          {first.test, `"quorumctl config check"`},
		`config check /etc/quorumd/events.yaml`: check,
		`support-bundle --out n1.tar.gz`: {
			"TestBundleListsMissingParts", `[]string{"--config", s.config, "--out", out}`,
		},
		`support-bundle`: {"TestBundleIsWrittenToTheWorkingDirectory", `"support-bundle"}, flags...)`},
		`--socket /run/quorumd/events/control.sock status`: {
			"TestWatchShowsOneStatusAfterAnother", `"--socket", socket, "status"`,
		},
		`status --watch`:        {"TestWatchShowsOneStatusAfterAnother", `"status", "--watch"`},
		`health CHECK_LOAD`:     {"TestEveryFindingIsExplainedInFull", `"health", string(p.Code)`},
		`qualify /var/lib/etcd`: {"TestQualifyThisMachine", `"qualify", dir`},
		`qualify /tmp/etcd --fio --writers 1,4,16 --peer 127.0.0.1:32380`: {
			"TestQualifyWithFio", `"qualify", dir, "--fio", "--writers", "1,4,16", "--peer"`,
		},
		`snapshot usage /root/etcd.db`: {
			"TestSnapshotUsageNamesThePrefixesThatFillARealDatabase", `"snapshot", "usage", path`,
		},
		`cycle --reason "etcd 3.6.16" -- apt-get install -y etcd-server`: {
			"TestCycleRunsACommandAndReturnsItsExitCode", "cycle --reason 'new fan' -- sh -c",
		},
		`rollout start reboot --reason "new kernel"`: {
			"TestRolloutCommands", "rollout start reboot --yes --reason 'new kernel'",
		},
		`member remove n3 --reason 'scrapped'`: {removed, "member remove n3 --yes --reason 'scrapped'"},
		`member remove n2 --live --reason 'scrapped'`: {
			"TestASurplusVoterWhoseDiskHasRecoveredIsReported", `"member", "remove", "n3", "--yes", "--live", "--reason"`,
		},
		`recover plan n1.json --gone n2,n3 --cluster demo`: {
			lost, `"recover", "plan", file, "--gone", "n2,n3", "--out", plan, "--cluster", clusterName`,
		},
		`recover plan n1.json n2.json --gone n3,n4,n5 --cluster demo`: {
			"TestQuorumLossOfThreeIsRecoveredByTheThreeDocumentedCommands", "contrib/docs/disaster-recovery.md",
		},
		`cluster resize 5 --dry-run`: {resized, "cluster resize 5 --dry-run"},
		`cluster resize 3 --dry-run`: {resized, "cluster resize 3 --dry-run"},
		`cluster resize 1 --dry-run`: {resized, "cluster resize 1 --dry-run"},

		`cluster resize 1 --dry-run --without-snapshot`: {
			resized, "cluster resize 1 --yes --without-snapshot",
		},
		`cluster resize 5 --reason 'two more racks' --yes --wait`: {
			grows, "cluster resize 1 --yes --reason",
		},
		`cluster resize 5 --reason "two more racks" --wait`: {
			grows, "cluster resize 1 --yes --reason",
		},
		`cluster resize 3 --reason 'racks 4 and 5 move' --yes --wait`: {
			grows, "cluster resize 1 --yes --reason",
		},
		`cluster resize 3 --reason "racks 4 and 5 move" --wait`: {
			grows, "cluster resize 1 --yes --reason",
		},
		`retire`: {retired, `socket, "retire", "retire n3`},
		`retire n3 --reason "end of lease" --dry-run`: {
			retired, "retire n3 --dry-run --reason 'end of lease'",
		},
		`retire n3 --reason x --dry-run`:                 {retired, "retire n3 --dry-run --reason x"},
		`retire n3 --reason "end of lease" --wait`:       {leaves, "retire n3 --yes --reason 'end of lease'"},
		`retire n2 --reason 'end of lease' --yes --wait`: {leaves, "retire n3 --yes --reason 'end of lease'"},
		`retire n3 --lost --reason 'its mainboard is dead'`: {
			"TestRetireOfALostHostReportsThatItsMemberIsRemoved",
			"retire n3 --lost --yes --reason 'its mainboard is dead'",
		},
		`retire n2 --undo --yes`: {retired, "retire n3 --undo --yes"},

		`member replace n3 n2 --reason 'end of lease' --dry-run`: {
			replaced, "member replace n3 n4 --dry-run",
		},
		`member replace n1 n3 --reason 'end of lease' --dry-run`: {
			replaced, "member replace n3 n4 --dry-run",
		},
		`member replace n3 n2 --reason 'end of lease' --yes --wait`: {
			replaced, "member replace n3 n4 --yes --reason",
		},
		`upgrade plan 3.7.3 --command upgrade-etcd`: {
			upgraded, "upgrade plan 3.7.3 --command upgrade-etcd",
		},
		`upgrade start 3.7.3 --command upgrade-etcd --reason "etcd 3.7" --yes`: {
			upgraded, "upgrade start 3.7.3 --command upgrade-etcd --reason",
		},
		`upgrade start 3.6.16 --command upgrade-etcd --reason "etcd 3.6.16" --yes`: {
			upgraded, "upgrade start 3.7.3 --command upgrade-etcd --reason",
		},
		`upgrade status`: {upgraded, "upgrade status"},
		`upgrade resume`: {upgraded, "upgrade resume"},
		`upgrade abort --command reinstall-etcd --reason "slower than before" --dry-run`: {
			upgraded, "upgrade abort --command reinstall-etcd --reason slow --dry-run",
		},
		`upgrade abort --command reinstall-etcd --reason "slower than before"`: {
			upgraded, "upgrade abort --command reinstall-etcd --reason slow",
		},
		`upgrade abort`: {upgraded, "upgrade abort"},
		`upgrade downgrade 3.6.16 --command reinstall-etcd --reason "slower than before" --dry-run`: {
			upgraded, "upgrade downgrade 3.6.16 --command reinstall-etcd --reason slow --dry-run",
		},
		`upgrade downgrade 3.6.16 --command reinstall-etcd --reason "slower than before" --yes`: {
			upgraded, "upgrade downgrade 3.6.16 --command reinstall-etcd --reason slow --yes",
		},
		`readdress --all --reason 'new subnet' --dry-run`: {
			readdressed, "readdress --all --dry-run --reason",
		},
		`readdress n3 --reason 'new subnet' --yes --wait`: {
			readdressed, "readdress n3 --yes --reason",
		},
		`readdress n1 n2 n3 --reason certificates --wait --yes`: {
			readdressed, "readdress n1 n2 n3 --yes",
		},
		`readdress n1 --reason https --wait --yes`: {
			readdressed, "readdress n3 --yes --reason",
		},
		`defrag --all --reason 'large compaction' --dry-run`: {
			defragmented, "defrag --all --dry-run --reason",
		},
		`defrag n2 --reason 'large compaction' --yes`: {
			defragmented, "defrag --yes --reason",
		},
		`defrag --all --force --reason 'large compaction' --yes --wait`: {
			defragmented, "defrag n3 --force --yes --reason",
		},
		`leader transfer n2 --reason "n1 is to be moved" --wait`: {
			"TestLeaderTransferShowsItsPlanAndItsEnd", "leader transfer n2 --yes --wait",
		},
		`pki rotate begin`: {
			"TestFingerprintsAreShownInFull", `do("rotate", "begin"`,
		},
		`pki rotate next`: {
			"TestThreeVotersRotateTheCAUnderWrites", `"pki", "rotate", "next", "--dir", r.dir`,
		},
		`recover apply plan.json`: {lost, `"recover", "apply", plan`},
		`recover plan n1.json n2.json n3.json --from-snapshot newest`: {
			"TestAClusterThatLostEveryDiskGetsEveryKeyOfItsSnapshot", `"--from-snapshot", "newest"`,
		},
	}
}

// normalized returns the words of a line, without quotes and comments, for comparison.
func normalized(line string) string { return strings.Join(docs.Words(line), "\x00") }

func TestEveryDocumentedCommandIsRunByATest(t *testing.T) {
	t.Parallel()
	root, err := testbed.Root()
	if err != nil {
		t.Fatal(err)
	}
	run := map[string]bool{}
	for _, c := range documentedLines() {
		run[normalized(c.line)] = true
	}
	tests := testsBelow(t, root)
	pages, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for line, by := range ranElsewhere() {
		run[normalized(line)] = true
		if lacks := by.whyNotRun(line, tests, pages); lacks != "" {
			t.Errorf("%s should be run by %s: %s", line, by.test, lacks)
		}
	}
	used := map[string]bool{}
	for name, text := range pages {
		for _, line := range docs.Typed(text) {
			used[normalized(line)] = true
			if !run[normalized(line)] {
				t.Errorf("%s shows quorumctl %s, which no test runs: add it to documentedLines", name, line)
			}
		}
	}
	for line := range run {
		if !used[line] {
			t.Errorf("no page shows quorumctl %s any more", strings.ReplaceAll(line, "\x00", " "))
		}
	}
}

// whyNotRun returns why the test does not run the line, judged by the text of its file; "" if it does. A test that
// types the commands of a page names the page.
func (e otherTest) whyNotRun(line string, tests []string, pages map[string]string) string {
	at := slices.IndexFunc(tests, func(text string) bool { return strings.Contains(text, "\nfunc "+e.test+"(") })
	switch {
	case at < 0:
		return "there is no such test"
	case !strings.Contains(tests[at], e.runs):
		return "its file has no " + e.runs
	case pages[e.runs] != "":
		for _, typed := range docs.Typed(pages[e.runs]) {
			if normalized(typed) == normalized(line) {
				return ""
			}
		}
		return e.runs + " does not type it"
	}
	for _, word := range docs.Words(line) {
		if word == "--" {
			break
		}
		if flag, _, _ := strings.Cut(word, "="); strings.HasPrefix(flag, "--") && !strings.Contains(tests[at], flag) {
			return "its file has no " + flag
		}
	}
	return ""
}

// testsBelow returns the contents of all test files of the checkout except this one.
func testsBelow(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go") || d.Name() == "documents_test.go":
			return nil
		}
		text, err := os.ReadFile(path)
		all = append(all, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
