//go:build lab

// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/quorumd/quorumd/contrib/lab"
)

// parallelTests is how many tests run in parallel, each in its own lab. They wait most of the time.
var parallelTests = flag.Int("lab.lanes", 2, "how many tests run in parallel")

// sharedFleetVariable is the environment variable with the directory of the fleet that all tests share; see
// formedFleetRunning.
const sharedFleetVariable = "QUORUMD_LAB_SHARED_FLEET"

// startOrder are the tests that start first: the test that sets up the shared fleet, then some that need no fleet, then
// those that take longest.
var startOrder = []string{
	"TestFiveBareHostsBecomeThreeVotersAStandbyAndASpare",
	"TestAManuallyBuiltClusterIsAdoptedWithoutARestart",
	"TestAHostLosesPowerNetworkAndDisk",
	"TestADiskIsSlowHangsAndBreaks",
	"TestACutOffJoinerBlocksNoOtherHostForGood",
	"TestAHostLosesPowerAtEveryPhaseOfAJoin",
	"TestAHostLostInMaintenanceBlocksTheOthersUntilItIsReleased",
	"TestAPlainRebootTransfersLeadershipFirst",
	"TestEtcdServesWhateverFailsInQuorumd",
}

// runInParallel runs every test in its own process, some in parallel, and returns the exit code for all.
func runInParallel(cache string) int {
	names, err := testNames()
	var shared *os.File
	if err == nil {
		shared, err = lab.Claim(cache) // if this process is killed, the next lab removes it
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.Close()
	defer os.RemoveAll(shared.Name())
	queue := make(chan string, len(names))
	for _, name := range names {
		queue <- name
	}
	close(queue)
	var all sync.WaitGroup
	var mu sync.Mutex // guards the output and the list of failures
	var failed []string
	for range *parallelTests {
		all.Go(func() {
			for name := range queue {
				output, err := runAlone(name, shared.Name())
				mu.Lock()
				_, _ = os.Stdout.Write(output)
				if err != nil {
					fmt.Printf("%s did not pass: %v\n", name, err)
					failed = append(failed, name)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return retryFailed(failed, shared.Name())
}

// retryFailed runs failed tests once more, one at a time: ten hosts on two cores are slower than any real deployment.
// It retries nothing if the tests did not run in parallel, or if more than four have failed: then timing is not the
// cause. Nor is timing the cause if a test fails again when it runs alone.
func retryFailed(failed []string, shared string) (code int) {
	if len(failed) > 4 || *parallelTests < 2 {
		return min(len(failed), 1)
	}
	for _, name := range failed {
		output, err := runAlone(name, shared)
		_, _ = os.Stdout.Write(output)
		if err != nil {
			fmt.Printf("%s did not pass alone either: %v\n", name, err)
			code = 1
			continue
		}
		fmt.Printf("%s FAILED IN PARALLEL WITH OTHER TESTS, see above; it passed when run alone\n", name)
	}
	return code
}

// testNames returns the selected tests, in the order in which they start.
func testNames() ([]string, error) {
	wanted := flag.Lookup("test.run").Value.String()
	if wanted == "" {
		wanted = "."
	}
	list, err := exec.Command("/proc/self/exe", "-test.list="+wanted, "-lab.lanes=0").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list the tests: %w", err)
	}
	names := strings.Fields(string(list))
	if skip := flag.Lookup("test.skip").Value.String(); skip != "" { // -test.list ignores it
		pattern, err := regexp.Compile("^(" + skip + ")$")
		if err != nil {
			return nil, fmt.Errorf("cannot parse -test.skip: %w", err)
		}
		names = slices.DeleteFunc(names, pattern.MatchString)
	}
	rank := func(name string) int {
		if i := slices.Index(startOrder, name); i >= 0 {
			return i
		}
		return len(startOrder)
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	return names, nil
}

// runAlone runs one test in a separate process, and returns its output.
func runAlone(name, shared string) ([]byte, error) {
	runtime.LockOSThread() // the kernel sends the death signal when this thread ends
	defer runtime.UnlockOSThread()
	args := []string{
		"-test.run=^" + name + "$", "-test.v", "-lab.lanes=0", fmt.Sprintf("-lab.rounds=%d", *rounds),
		"-test.timeout=" + flag.Lookup("test.timeout").Value.String(),
	}
	cmd := exec.Command("/proc/self/exe", args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Env = append(os.Environ(), sharedFleetVariable+"="+shared)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	err := cmd.Run()
	text := output.Bytes()
	if err == nil {
		text = bytes.TrimSuffix(text, []byte("PASS\n")) // PASS would look like the result of all tests
	}
	return text, err
}

// sharedFleetDir returns the directory of the shared fleet, and locks it. If the fleet does not exist yet, the caller
// sets it up.
func sharedFleetDir() (dir string, done func(), err error) {
	dir = os.Getenv(sharedFleetVariable)
	if dir == "" {
		dir = runDir
	}
	lock, err := os.Create(filepath.Join(dir, "fleet.lock"))
	if err != nil {
		return "", nil, err
	}
	// another test may hold the lock until it has set up the fleet
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", nil, fmt.Errorf("cannot wait for the fleet: %w", err)
	}
	return filepath.Join(dir, "fleet"), func() { lock.Close() }, nil
}
