// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// pageVersion changes whenever the layout of page or the meaning of a word does, because an agent whose binary was
	// replaced can start a child of the new version.
	pageVersion = 0x71_70_62_00_02
	// ringSize holds more than a minute of samples at the highest rate of a burst; a power of two.
	ringSize  = 4096
	pageBytes = int(unsafe.Sizeof(page{}))
)

// page is the memory that the probe child and its parent share. Every word has one writer at a time: the parent for
// version and burst, and for all words while there is no child; otherwise the child. Words are only accessed
// atomically, so a reader is safe while the writer is stopped, stuck or killed.
type page struct {
	version  atomic.Uint64
	burst    atomic.Uint64    // written by the parent: 1 requests the burst rate
	inflight atomic.Uint64    // start in microseconds << 8 | opCode; 0 when idle. One word, so it cannot be torn.
	due      [2]atomic.Uint64 // time of each lane's next write
	device   atomic.Uint64    // st_dev of the probe directory; 0 if not known yet
	direct   atomic.Uint64    // 1 while LaneDirect bypasses the page cache
	failures atomic.Uint64
	failure  record // errno, opCode, time
	usage    record // total, free, time
	inodes   record // total, free
	head     atomic.Uint64
	ring     [ringSize]record // latency, end, lane | contaminated | errno
}

// record is three words that belong together. Its stamp is 0 while they change, and never has the same value twice: a
// reader that finds the same stamp before and after has read words that were written together.
type record struct{ stamp, a, b, c atomic.Uint64 }

func (r *record) put(stamp, a, b, c uint64) {
	r.stamp.Store(0)
	r.a.Store(a)
	r.b.Store(b)
	r.c.Store(c)
	r.stamp.Store(stamp)
}

// get returns stamp 0 for a record that was never written or is being written.
func (r *record) get() (stamp, a, b, c uint64) {
	stamp = r.stamp.Load()
	a, b, c = r.a.Load(), r.b.Load(), r.c.Load()
	if r.stamp.Load() != stamp {
		stamp = 0
	}
	return stamp, a, b, c
}

// createPage creates the memory and its file, which the child inherits. The size is sealed, so that neither process can
// truncate it and crash the other.
func createPage() (*os.File, *page, error) {
	fd, err := unix.MemfdCreate("quorumd-probe", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("memfd_create: %w", err)
	}
	file := os.NewFile(uintptr(fd), "quorumd-probe")
	if err := file.Truncate(int64(pageBytes)); err != nil {
		return nil, nil, fmt.Errorf("memfd: %w", closing(file, err))
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
		unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err != nil {
		return nil, nil, fmt.Errorf("memfd seals: %w", closing(file, err))
	}
	p, err := mapPage(file)
	if err != nil {
		return nil, nil, closing(file, err)
	}
	p.version.Store(pageVersion)
	return file, p, nil
}

func closing(file *os.File, err error) error {
	file.Close()
	return err
}

// openPage maps the page that a parent has created.
func openPage(file *os.File) (*page, error) {
	info, err := file.Stat()
	if err != nil || info.Size() != int64(pageBytes) || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("file descriptor %d is not the shared memory that the parent process passes", file.Fd())
	}
	p, err := mapPage(file)
	if err != nil {
		return nil, err
	}
	if v := p.version.Load(); v != pageVersion {
		return nil, fmt.Errorf("the shared memory of the parent has version %#x, want %#x", v, uint64(pageVersion))
	}
	return p, nil
}

func mapPage(file *os.File) (*page, error) {
	memory, err := unix.Mmap(int(file.Fd()), 0, pageBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	return (*page)(unsafe.Pointer(unsafe.SliceData(memory))), nil
}

func (p *page) unmap() {
	_ = unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(p)), pageBytes))
}

func (p *page) begin(op opCode, at time.Duration) {
	p.inflight.Store(uint64(at.Microseconds())<<8 | uint64(op))
}

func (p *page) finish() { p.inflight.Store(0) }

func (p *page) current() (op opCode, since time.Duration) {
	word := p.inflight.Load()
	return opCode(word & 0xff), time.Duration(word>>8) * time.Microsecond
}

// until returns the time from now to the lane's next write; 0 before the first write.
func (p *page) until(lane Lane, now time.Duration) time.Duration {
	due := p.due[lane].Load()
	if due == 0 {
		return 0
	}
	return time.Duration(due) - now
}

func (p *page) fail(op opCode, errno syscall.Errno, at time.Duration) {
	count := p.failures.Load() + 1
	p.failure.put(count, uint64(errno), uint64(op), uint64(at))
	p.failures.Store(count)
}

func (p *page) push(s Sample) {
	n := p.head.Load()
	tags := uint64(s.Errno)<<32 | uint64(s.Lane)
	if s.Contaminated {
		tags |= 1 << 16
	}
	p.ring[n%ringSize].put(n+1, uint64(s.Latency), uint64(s.End), tags)
	p.head.Store(n + 1)
}

// pull returns the samples from number n on that the ring still holds, oldest first, the number of samples that were
// overwritten or unreadable, and the number to pass to the next call.
func (p *page) pull(n uint64) (samples []Sample, lost, next uint64) {
	head := p.head.Load()
	if head > n+ringSize {
		lost = head - ringSize - n
		n = head - ringSize
	}
	for ; n < head; n++ {
		stamp, latency, end, tags := p.ring[n%ringSize].get()
		if stamp != n+1 {
			lost++
			continue
		}
		samples = append(samples, Sample{
			Lane:         Lane(tags & 0xff),
			End:          time.Duration(end),
			Latency:      time.Duration(latency),
			Contaminated: tags&(1<<16) != 0,
			Errno:        syscall.Errno(tags >> 32),
		})
	}
	return samples, lost, n
}
