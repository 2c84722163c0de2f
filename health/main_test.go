// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorumd/quorumd/disk"
)

// update writes the files that tests compare with: go test ./health -update.
var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the tests simulate whole days; less frequent garbage collection saves a third of the time
	goleak.VerifyTestMain(m)
}

// golden compares got with a file. With -update, it writes got to the file first.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (rewrite it with -update, then read the diff)\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

const ms = time.Millisecond

// bench is a judge under test with its machine, which is healthy by default. Its clock is a number.
type bench struct {
	t              testing.TB
	j              *Judge
	limits         Thresholds
	now            time.Duration
	next           DiskReading // the next reading, without samples
	machine        MachineReading
	etcd           localEtcd
	devices        DevicesReading
	database       DatabaseReading
	externalChecks []ExternalCheckReading
	network        NetworkReading
	links          LinkReading
	discovery      DiscoveryReading
	shared         SharedReading
	protected      bool
	peers          PeerWritesReading
	wall           time.Time // time of the wall clock when now is 0
	pending        []disk.Sample
	mistake        comparisonMistake
	member         bool
	result         Assessment
	changes        []Change

	hardware HardwareReading // what drives and sensors report
}

func newBench(t testing.TB, limits Thresholds) *bench {
	t.Helper()
	j, err := New(limits)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, j: j, limits: limits, now: time.Hour}
	b.next = DiskReading{Alive: true, Free: 50 << 30, Total: 100 << 30, Inodes: 1000, InodesFree: 900}
	b.machine, b.etcd, b.devices, b.hardware = wellMachine(), wellEtcd(), wellDevices(), wellHardware()
	b.network, b.links, b.discovery = wellNetwork(), wellLinks(), wellDiscovery()
	b.shared = wellShared()
	b.peers, b.wall = silentPeers(), time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	j.UseHistory(silentHistory())
	j.compared.pace.wide = 0 // a longer 90th percentile than the other voters' counts at once, so nothing is excused
	return b
}

// With silentPeers and silentHistory, the comparison with other voters and with the past neither has a finding nor
// excuses the disk: the past was slower than any disk, and the other voters are faster.
func silentPeers() PeerWritesReading { return peersAt(time.Microsecond, tailsMost) }

func silentHistory() History { return historyOf(writeLongest, 1000) }

// peersAt returns two other voters whose writes all take that long.
func peersAt(latency time.Duration, tails int) PeerWritesReading {
	r := PeerWritesReading{Known: true, Self: "n1"}
	for _, host := range []string{"n2", "n3"} {
		r.All = append(r.All, PeerWrites{Host: host, P50: latency, P90: latency, Tails: tails})
	}
	return r
}

// historyOf returns a week with this median write time and this many slow episodes a day. The 90th percentile of the
// writes is so short that it excuses nothing.
func historyOf(median time.Duration, tails int) History {
	var h History
	for day := range HistoryDays {
		for range dayFewest {
			h.Add(time.Date(2026, 11, 16+day, 3, 0, 0, 0, time.UTC), median, bucketLeast)
		}
		h.Days[day].Tails = tails
	}
	return h
}

func known(value float64) Figure { return Figure{Value: value, Known: true} }

// wellMachine returns a healthy machine with all readings.
func wellMachine() MachineReading {
	return MachineReading{
		MemoryAvailable: known(60), MemoryStalled: known(0), ProcessesKilled: known(3), MemoryCorrected: known(100),
		MemoryUncorrected: known(0), ClockError: known(0.05), Booted: known(1.8e9), ClockSource: "tsc",
		Throttled: known(40), MachineChecks: known(0), TasksHung: known(0), ProcessorWaited: known(5),
		DiskWaited: known(1), Boots: known(1), BootsUnexpected: known(0),
		Segments:  Part{Known: true, Of: 1000, Among: 1e6},
		Processor: Part{Known: true, Of: 10, Among: 1e7},
	}
}

// wellLinks returns a healthy bond of two ports with all readings.
func wellLinks() LinkReading {
	port := func(name string) Link {
		return Link{
			Name: name, Carrier: known(1), Speed: known(10_000), Changes: known(4), Packets: known(1e7),
			Errors: known(3), Lost: known(50),
		}
	}
	bond := Link{Name: "bond0", On: []string{"eth0", "eth1"}, Carrier: known(1), Speed: known(20_000)}
	return LinkReading{Links: []Link{bond, port("eth0"), port("eth1")}}
}

// wellDevices returns a healthy mirror of two drives with all readings.
func wellDevices() DevicesReading {
	return DevicesReading{
		Chain: []Device{
			{Name: "md0", Kind: "raid", On: []string{"sda", "sdb"}},
			{
				Name: "sda", Kind: "disk", Errors: known(2), AttachedTo: []string{"nvme0"},
				PCI: PCIDevice{
					Address: "0000:02:00.0", Lanes: 4, MostLanes: 4, Corrected: known(40), Uncorrected: known(1),
				},
			},
			{Name: "sdb", Kind: "disk", Errors: known(0)},
		},
		Arrays:     []Array{{Name: "md0", Level: "raid1", Doing: "idle"}},
		FileSystem: FileSystem{Type: "ext4", ReadOnly: known(0), Errors: known(0)},
	}
}

// wellDatabase returns a healthy file system on a drive of its own, with all readings.
func wellDatabase() DatabaseReading {
	return DatabaseReading{
		Apart: true, Free: 50 << 30, Total: 100 << 30, Inodes: 1000, InodesFree: 900,
		Devices: DevicesReading{
			Chain:      []Device{{Name: "sdc", Kind: "disk", Errors: known(1)}},
			FileSystem: FileSystem{Type: "ext4", ReadOnly: known(0), Errors: known(0)},
		},
	}
}

func fsyncOf(j *Judge) *fsync { return j.checks[0].evidence.(*fsync) }

func cpuOf(j *Judge) *cpu { return j.checks[2].evidence.(*cpu) }

// sample adds a sample that was just completed.
func (b *bench) sample(lane disk.Lane, latency time.Duration) {
	b.pending = append(b.pending, disk.Sample{Lane: lane, End: b.now, Latency: latency})
}

func (b *bench) contaminated(lane disk.Lane, latency time.Duration) {
	b.pending = append(b.pending, disk.Sample{Lane: lane, End: b.now, Latency: latency, Contaminated: true})
}

// look passes the readings to the judge, and returns the changes.
func (b *bench) look() []Change {
	b.etcd.asked(b.now)
	b.machine.At, b.links.At = b.now, b.now
	in := Input{
		Now: b.now, Member: b.member, Disk: b.next, Machine: b.machine, Etcd: b.etcd.EtcdReading, Devices: b.devices,
		ExternalChecks: b.externalChecks,
		Database:       b.database,
		Hardware:       b.hardware,
		Network:        b.network,
		Links:          b.links,
		Discovery:      b.discovery,
		Shared:         b.shared,
		Protected:      b.protected,
		Peers:          b.peers,
		Wall:           b.wall.Add(b.now),
	}
	in.Disk.Samples, b.pending = b.pending, nil
	if b.mistake.sees != nil {
		b.mistake.sees(&in)
	}
	v, changes := b.j.Observe(in)
	if b.mistake.learns != nil {
		b.mistake.learns(b.j.compared)
	}
	b.result = v
	b.changes = append(b.changes, changes...)
	return changes
}

// disk returns the state of the disk alone.
func (b *bench) disk() State { return fsyncOf(b.j).track.State }

// each lets the span pass: every second one direct sample, and then a look.
func (b *bench) each(span, latency time.Duration) {
	for range span / time.Second {
		b.now += time.Second
		b.sample(disk.LaneDirect, latency)
		b.look()
	}
}

// pass lets a long span pass like each, with a look every minute only.
func (b *bench) pass(span, latency time.Duration) {
	for i := range span / time.Second {
		b.now += time.Second
		b.sample(disk.LaneDirect, latency)
		if i%60 == 59 {
			b.look()
		}
	}
	b.look()
}

// burst adds n samples of the WAL lane at 50 per second, with a look every second.
func (b *bench) burst(n int, latency time.Duration) {
	for i := range n {
		b.now += 20 * ms
		b.sample(disk.LaneWAL, latency)
		if i%50 == 49 || i == n-1 {
			b.look()
		}
	}
}

// put brings a check into a state with its usual code, bypassing the rules.
func (b *bench) put(c *check, s State) {
	c.State, c.Since, c.Code, c.Reason = s, b.now, "", "put there"
	for _, r := range c.rules {
		if r.to == s && c.Code != DiskGathering && c.Code != DiskQualifying {
			c.Code = r.code
		}
	}
}

func (b *bench) want(s State) {
	b.t.Helper()
	if b.disk() != s {
		b.t.Fatalf("after %s the disk is %s (%s), want %s", b.now-time.Hour, b.disk(), fsyncOf(b.j).text(), s)
	}
}
