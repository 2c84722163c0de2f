// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumd/quorumd/contrib/testbed"
)

// child is a process that holds a lock; see holderMain.
type child struct {
	command *exec.Cmd
	input   io.WriteCloser
	lines   chan string // its output, until it has exited
	ended   chan error
}

// startHolder starts a child and waits until it has the lock. The kernel kills the child when the thread that started
// it ends, even while the child is stopped. So the thread is kept until the child has exited.
func startHolder(ctx context.Context, r rule, endpoint, name string, callTimeout time.Duration) (*child, error) {
	command := exec.CommandContext(ctx, "/proc/self/exe", asHolder, string(r), endpoint, name, callTimeout.String())
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c := &child{command: command, input: input, lines: make(chan string, 256), ended: make(chan error, 1)}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err != nil {
			return
		}
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			c.lines <- scanner.Text()
		}
		close(c.lines)
		c.ended <- command.Wait()
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if _, err := c.until(ctx, saysHeld); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// until reads the child's output up to a line that begins with that word.
func (c *child) until(ctx context.Context, word string) (string, error) {
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return "", fmt.Errorf("the holder has exited before it said %q", word)
			}
			if rest, found := strings.CutPrefix(line, word); found {
				return rest, nil
			}
		case <-ctx.Done():
			return "", fmt.Errorf("the holder does not say %q: %w", word, ctx.Err())
		}
	}
}

// drain discards the child's output so far.
func (c *child) drain() {
	for {
		select {
		case _, ok := <-c.lines:
			if !ok {
				return
			}
		default:
			return
		}
	}
}

// stop pauses the child, and returns once it is paused.
func (c *child) stop(ctx context.Context) error {
	if err := c.command.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.command.Process.Pid))
		if err != nil {
			return err
		}
		if _, state, _ := strings.Cut(string(text), ") "); strings.HasPrefix(state, "T") {
			return nil
		}
		if err := wait(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

func (c *child) resume() error { return c.command.Process.Signal(syscall.SIGCONT) }

// report ends the child, and returns the last time at which its lock was valid, and the number of answers that came
// late.
func (c *child) report(ctx context.Context) (last time.Duration, late int, err error) {
	if err := c.input.Close(); err != nil {
		return 0, 0, err
	}
	text, err := c.until(ctx, saysReport)
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscan(text, (*int64)(&last), &late); err != nil {
		return 0, 0, fmt.Errorf("the holder reports %q: %w", text, err)
	}
	return last, late, nil
}

func (c *child) kill() {
	_ = c.command.Process.Kill() // the child may have exited already
	for range c.lines {
	}
	<-c.ended
}

// pause pauses a holder, and returns when the holder no longer renews.
type pause func(ctx context.Context, holder *child, proxy *testbed.Proxy) error

func pauses() []pause { return []pause{standStill, answerWaiting, backAtTheEnd} }

func standStill(ctx context.Context, holder *child, _ *testbed.Proxy) error {
	return holder.stop(ctx)
}

// answerWaiting leaves the answer to a renewal in the socket of a paused process.
func answerWaiting(ctx context.Context, holder *child, proxy *testbed.Proxy) error {
	proxy.Set(testbed.Faults{HoldResponses: true})
	holder.drain()
	soon, cancel := context.WithTimeout(ctx, trialTTL)
	defer cancel()
	if _, err := holder.until(soon, saysRenewal); err == nil {
		_ = wait(soon, 20*time.Millisecond) // time for the request and its answer
	} // on a busy machine, the holder may have lost the lock already
	err := holder.stop(ctx)
	proxy.Set(testbed.Faults{})
	return err
}

// backAtTheEnd resumes a stopped holder at about the time when its lease expires, and cuts the holder off from etcd
// within one renewal interval.
func backAtTheEnd(ctx context.Context, holder *child, proxy *testbed.Proxy) error {
	if err := holder.stop(ctx); err != nil {
		return err
	}
	if err := wait(ctx, randomly(trialTTL*3/4, trialTTL*5/4)); err != nil {
		return err
	}
	if err := holder.resume(); err != nil {
		return err
	}
	if err := wait(ctx, randomly(0, renewEvery)); err != nil {
		return err
	}
	proxy.Set(testbed.Cut())
	return nil
}

// acrossPause pauses a holder until the next one has the lock.
func (c *court) acrossPause(ctx context.Context, r rule, n int, still pause) (outcome, error) {
	name := fmt.Sprintf("pause-%d", n)
	proxy, err := c.network()
	if err != nil {
		return outcome{}, err
	}
	defer proxy.Close()
	holder, err := startHolder(ctx, r, "http://"+proxy.Addr(), name, 2*trialTTL)
	if err != nil {
		return outcome{}, err
	}
	defer holder.kill()
	if err := wait(ctx, randomly(0, 2*renewEvery)); err != nil {
		return outcome{}, err
	}
	if err := still(ctx, holder, proxy); err != nil {
		return outcome{}, err
	}
	took, err := c.next(ctx, r, name)
	if err != nil {
		return outcome{}, err
	}
	proxy.Set(testbed.Faults{})
	if err := errors.Join(holder.resume(), wait(ctx, afterwards)); err != nil {
		return outcome{}, err
	}
	last, late, err := holder.report(ctx)
	return outcome{margin: took - last, late: late}, err
}

func TestNoTwoHoldersAcrossPauses(t *testing.T) {
	t.Parallel()
	c, ways := newCourt(t), pauses()
	judge(t, "pauses", try(t, 200, 25, func(ctx context.Context, n int) (outcome, error) {
		return c.acrossPause(ctx, ourLock, n, ways[n%len(ways)])
	}))
}
