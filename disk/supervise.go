// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	backoffFirst = time.Second
	backoffLimit = time.Minute
	// closeGrace bounds Close even if the supervisor is stuck while starting a child.
	closeGrace = patience + 200*time.Millisecond
)

// Probe measures one disk through a child process. All its methods may be called concurrently. None of them waits for
// the disk, except that Close waits a limited time for the child to end. The package documentation lists its promises.
type Probe struct {
	command []string
	set     settings
	log     *slog.Logger
	memory  *os.File

	stopOnce sync.Once
	stop     chan struct{}
	done     chan struct{}

	mu       sync.Mutex
	page     *page // nil after Close
	pid      int   // 0 while there is no child
	restarts uint64
	tidy     bool   // see Tidy
	read     uint64 // samples pulled so far
	failure  *Failure
	usage    *Usage
	failedAt time.Duration
	usedAt   time.Duration
}

// StartProbe starts the child and a goroutine that supervises it until [Probe.Close]. It returns an error if the
// options are wrong or the command cannot be started. Problems of the disk or the directory are in the readings.
func StartProbe(o Options) (*Probe, error) {
	set, err := o.settings()
	if err != nil {
		return nil, fmt.Errorf("cannot start the disk probe: %w", err)
	}
	p := &Probe{
		command: o.Command, set: set, log: o.Logger,
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.memory, p.page, err = createPage(); err != nil {
		return nil, fmt.Errorf("cannot start the disk probe: %w; check whether the machine is out of memory", err)
	}
	first, err := p.start()
	if err != nil {
		p.forget()
		return nil, fmt.Errorf("cannot start the disk probe: %w; check that the command exists and is executable", err)
	}
	go p.supervise(first)
	return p, nil
}

// start starts a child. It must be called only while there is no child, because the page has one writer.
func (p *Probe) start() (*child, error) {
	c, err := spawn(p.command, p.set.args(), p.memory, p.log)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid = c.pid()
	return c, nil
}

// supervise replaces a dead child. It never replaces a stuck one, which is not dead.
func (p *Probe) supervise(c *child) {
	defer close(p.done)
	backoff := backoffFirst
	for {
		begun := time.Now()
		select {
		case <-p.stop:
			tidy := c.stop(p.patience())
			p.mu.Lock()
			p.tidy = tidy
			p.mu.Unlock()
			return
		case <-c.exited:
		}
		p.bury()
		if time.Since(begun) > backoffLimit {
			backoff = backoffFirst
		}
		p.log.Warn("disk probe process exited", "pid", c.pid(), "cause", c.err, "ran", time.Since(begun),
			"restart_in", backoff)
		if c = p.replace(&backoff); c == nil {
			return
		}
		p.log.Info("disk probe process restarted", "pid", c.pid())
	}
}

// bury marks the dead child's operation as finished on the page.
func (p *Probe) bury() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid = 0
	if p.page != nil {
		p.page.finish()
	}
}

// replace starts a new child after the backoff, and tries again until that succeeds. It returns nil if the probe is
// closed meanwhile.
func (p *Probe) replace(backoff *time.Duration) *child {
	for {
		timer := time.NewTimer(*backoff)
		select {
		case <-p.stop:
			timer.Stop()
			return nil
		case <-timer.C:
		}
		*backoff = min(2**backoff, backoffLimit)
		c, err := p.start()
		if err != nil {
			p.log.Warn("cannot start the disk probe process", "error", err, "retry_in", *backoff)
			continue
		}
		p.mu.Lock()
		p.restarts++
		p.mu.Unlock()
		return c
	}
}

// SetBurst turns the burst of LaneWAL on or off. The child notices within a second, or when its current operation
// returns.
func (p *Probe) SetBurst(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page == nil {
		return
	}
	var word uint64
	if on {
		word = 1
	}
	p.page.burst.Store(word)
}

// InFlight returns the age and the name of the operation in flight; 0 and OpNone if there is none.
func (p *Probe) InFlight() (age time.Duration, op string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inFlight()
}

func (p *Probe) inFlight() (age time.Duration, op string) {
	if p.page == nil {
		return 0, OpNone
	}
	code, since := p.page.current()
	if code == opNone {
		return 0, OpNone
	}
	// The clock is read after the page, so the age is never negative.
	return Monotonic() - since, code.String()
}

// Read returns the current reading, with the samples completed since the last Read. After [Probe.Close] it is empty.
func (p *Probe) Read() Reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page == nil {
		return Reading{}
	}
	r := Reading{
		Device: p.page.device.Load(),
		Direct: p.page.direct.Load() != 0,
		Alive:  p.pid != 0, PID: p.pid, Restarts: p.restarts,
	}
	r.Samples, r.Lost, p.read = p.page.pull(p.read)
	r.InFlightAge, r.InFlight = p.inFlight()
	p.refresh()
	now := Monotonic()
	r.NextDirect = p.page.until(LaneDirect, now)
	r.NextWAL = p.page.until(LaneWAL, now)
	if p.failure != nil {
		failure := *p.failure
		failure.Age = now - p.failedAt
		r.Failure = &failure
	}
	if p.usage != nil {
		usage := *p.usage
		usage.Age = now - p.usedAt
		r.Usage = &usage
	}
	return r
}

// refresh copies the complete records. If the child is writing a record, or was killed while writing it, the previous
// values stay.
func (p *Probe) refresh() {
	if count, errno, op, at := p.page.failure.get(); count != 0 {
		p.failure = &Failure{
			Op: opCode(op).String(), Errno: syscall.Errno(errno), Count: count,
			Dir: p.set.dir, Target: p.set.target,
		}
		p.failedAt = time.Duration(at)
	}
	if stamp, total, free, at := p.page.usage.get(); stamp != 0 {
		now := Usage{Total: total, Free: free}
		if stamp, inodes, left, _ := p.page.inodes.get(); stamp != 0 {
			now.Inodes, now.InodesFree = inodes, left
		} else if p.usage != nil {
			now.Inodes, now.InodesFree = p.usage.Inodes, p.usage.InodesFree
		}
		p.usage = &now
		p.usedAt = time.Duration(at)
	}
}

// Close ends the child and releases everything. A child that does not end within a second (5 s for an examination,
// which removes its files first) is killed. A child that is stuck in the kernel is left behind, and reaped when its
// disk operation returns. Close takes at most about 2 s, or 6 s for an examination.
func (p *Probe) Close() {
	p.stopOnce.Do(func() { close(p.stop) })
	timer := time.NewTimer(p.patience() + closeGrace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
	p.forget()
}

// Tidy reports whether the child ended by itself, with exit code 0, when [Probe.Close] was called. After an
// examination, that means that the child has removed its files. Call it only after Close has returned.
func (p *Probe) Tidy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tidy
}

// patience returns how long the child may take to end by itself.
func (p *Probe) patience() time.Duration {
	if p.set.exam {
		return examPatience
	}
	return patience
}

func (p *Probe) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page != nil {
		p.page.unmap()
		p.page = nil
		p.memory.Close()
	}
}
