// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/observe"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/publish"
	"github.com/quorumd/quorumd/agent/record"
)

// fleet is a cluster of three voters and many spares, each with its real agent, in virtual time.
type fleet struct {
	t     *testing.T
	etcd  *fleetEtcd
	start time.Time
	hosts map[string]*fleetHost
	pace  observe.Pace

	standbys int                // configured number
	prepare  func(h *fleetHost) // called before an agent's first start, unless nil
}

// smallPace returns a pace that makes a fleet behave like one that is at least ten times as large.
func smallPace() observe.Pace {
	return observe.Pace{RestFrom: 10, RestMost: 30, Resting: 1, Attentive: 40, Guided: 20}
}

func usualPace() observe.Pace { return observe.UsualPace() }

// fleetConfig is the configuration of a host. Its unit, data directory, disk and files are all in memory.
const fleetConfig = `
mode: manage
host: {name: %[1]s, id: id-%[1]s, domain: %[2]s}
cluster: {name: test, voters: 3, standbys: %[3]d, endpoints: [http://v1:2379]}
etcd: {clientURL: http://%[1]s:2379, peerURL: http://%[1]s:2380, listenClientURL: http://0.0.0.0:2379,
  listenPeerURL: http://0.0.0.0:2380, runner: process, binary: /etcd, dataDir: /data}
disk: {qualifySamples: 30, window: 20}
`

func newFleet(t *testing.T, spares int, pace observe.Pace) *fleet {
	return newFleetWith(t, spares, 0, pace)
}

// inFleet runs a test in virtual time, in a fleet of three voters and that many spares, a minute after its start.
func inFleet(t *testing.T, spares int, test func(t *testing.T, f *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, spares, usualPace())
		defer f.close()
		f.pass(time.Minute)
		test(t, f)
	})
}

func newFleetWith(t *testing.T, spares, standbys int, pace observe.Pace) *fleet {
	return newPreparedFleet(&fleet{t: t, pace: pace, standbys: standbys}, spares)
}

func newPreparedFleet(f *fleet, spares int) *fleet {
	f.etcd, f.start, f.hosts = newFleetEtcd(), time.Now(), map[string]*fleetHost{}
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("v%d", i)
		f.etcd.members = append(f.etcd.members, cluster.Member{
			ID: uint64(i), Name: name, PeerURLs: []string{"http://" + name + ":2380"},
			ClientURLs: []string{"http://" + name + ":2379"},
		})
	}
	for _, m := range f.etcd.list() { // the first agent sends requests at once
		f.add(m.Name, m.ID)
	}
	for i := range spares {
		f.add(fmt.Sprintf("s%04d", i), 0)
	}
	return f
}

func (f *fleet) now() time.Duration { return time.Since(f.start) + time.Hour }

// add starts a host's agent.
func (f *fleet) add(name string, member uint64) {
	h := &fleetHost{f: f, name: name, active: member != 0, member: member, files: map[string][]byte{}}
	f.hosts[name] = h
	if f.prepare != nil {
		f.prepare(h)
	}
	h.boot("boot-" + name)
}

func (f *fleet) close() {
	for _, h := range f.hosts {
		h.end()
	}
}

// pass lets time pass, and waits until everything due by then is done, so that nothing changes while the test checks.
func (f *fleet) pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
	synctest.Wait()
}

// until lets time pass until a condition holds.
func (f *fleet) until(limit time.Duration, what string, holds func() bool) time.Duration {
	f.t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			f.t.Fatalf("not within %s: %s", limit, what)
		}
		f.pass(time.Second)
	}
	return time.Since(began)
}

func (f *fleet) voters() (out []string) {
	for _, m := range f.etcd.list() {
		if !m.Learner {
			out = append(out, m.Name)
		}
	}
	return out
}

// queue returns the host IDs in the join queue.
func (f *fleet) queue() []string {
	q, err := record.Decode[record.Queue]([]byte(f.etcd.get(record.KeysFor("test").Queue())))
	if err != nil {
		return nil
	}
	return q.Next
}

// spent returns the requests of the spares, and of all hosts, since the counts in before.
func (f *fleet) spent(before map[string]asked) (spares, all asked) {
	for host, d := range f.since(before) {
		all.add(d)
		if strings.HasPrefix(host, "s") {
			spares.add(d)
		}
	}
	return spares, all
}

// since returns each host's requests since the counts in before.
func (f *fleet) since(before map[string]asked) map[string]asked {
	out := f.etcd.count()
	for host, now := range out {
		was := before[host]
		out[host] = asked{
			requests: now.requests - was.requests, writes: now.writes - was.writes, records: now.records - was.records,
			takes: now.takes - was.takes, statuses: now.statuses - was.statuses, locked: now.locked - was.locked,
			renewed: now.renewed - was.renewed,
		}
	}
	return out
}

func (n *asked) add(d asked) {
	n.requests, n.writes, n.records = n.requests+d.requests, n.writes+d.writes, n.records+d.records
	n.takes, n.statuses, n.locked, n.renewed = n.takes+d.takes, n.statuses+d.statuses, n.locked+d.locked,
		n.renewed+d.renewed
}

// sparesFlag selects a single fleet size to measure.
var sparesFlag = flag.Int("fleet.spares", 0, "measure only a fleet with this many spares")

// settled waits until the fleet rests and the queue is full.
func (f *fleet) settled() {
	f.t.Helper()
	f.until(10*time.Minute, "three spares are in the join queue", func() bool {
		return len(f.queue()) == policy.QueueLength
	})
	f.pass(max(time.Minute, time.Duration(len(f.hosts)/50)*time.Second)) // every host queries etcd a few times
}

// TestAFleetSendsEtcdFewRequestsAtAnySize measures a fleet at rest, and then the replacement of a removed voter.
func TestAFleetSendsEtcdFewRequestsAtAnySize(t *testing.T) {
	t.Parallel()
	sizes := []int{5, 120, 400} // `make nightly` measures 1000 spares, which takes minutes
	if *sparesFlag != 0 {
		sizes = []int{*sparesFlag}
	}
	for _, spares := range sizes {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, spares, usualPace())
			defer f.close()
			f.settled()
			quiet := f.rests()
			f.costOfAReplacement(quiet)
		})
	}
}

// restSpan returns how long a fleet is observed at rest. In a large fleet each host rarely queries etcd, but the many
// hosts together query it often enough for a short span.
func (f *fleet) restSpan() time.Duration {
	if len(f.hosts) > 3000 {
		return 3 * time.Minute
	}
	return 10 * time.Minute
}

// rests measures a fleet at rest, and returns each host's requests.
func (f *fleet) rests() map[string]asked {
	f.t.Helper()
	spares, restSpan := len(f.hosts)-3, f.restSpan()
	before := f.etcd.count()
	f.pass(restSpan)
	rest, all := f.spent(before)
	per := func(n int) float64 { return float64(n) / restSpan.Seconds() }
	fmt.Printf("%5d spares at rest: %5.1f requests/s and %5.1f renewals of leases/s, %6.1f host records/s, %d writes "+
		"in %s; with the voters %5.1f requests/s; %d KiB stored\n",
		spares, per(rest.requests-rest.renewed), per(rest.renewed), per(rest.records), rest.writes, restSpan,
		per(all.requests-all.renewed), f.etcd.bytes()>>10)
	if rest.writes > 0 {
		f.t.Errorf("%d spares wrote %d times in %s, although nothing has changed but their p99 a little", spares,
			rest.writes, restSpan)
	}
	// at 3 requests per round: 50 rounds a second, or one round of each host per minute
	if rate := per(rest.requests - rest.renewed); rate > 3*max(50, float64(spares)/60) {
		f.t.Errorf("all spares made %.1f requests/s", rate)
	}
	if rate := per(rest.renewed); rate > 1.2*publish.Renewals*float64(spares)/60 {
		f.t.Errorf("all spares renewed %.1f leases/s", rate)
	}
	if rate := per(rest.records); rate > 8000 {
		f.t.Errorf("all spares read %.1f host records/s", rate)
	}
	return f.since(before)
}

// costOfAReplacement measures the requests of a replacement. The spares that stop resting may together send 350
// requests more than at rest (quiet), at any fleet size. The others send about as many as at rest.
func (f *fleet) costOfAReplacement(quiet map[string]asked) {
	f.t.Helper()
	spares, restSpan := len(f.hosts)-3, f.restSpan()
	before := f.etcd.count()
	took, got, called := f.replaceV3()
	rate := func(n asked, span time.Duration) float64 { return float64(n.requests-n.renewed) / span.Seconds() }
	var extra float64
	var others, othersAtRest asked
	for host, d := range f.since(before) {
		switch {
		case !strings.HasPrefix(host, "s"):
		case called[host]:
			extra += (rate(d, took) - rate(quiet[host], restSpan)) * took.Seconds()
		default:
			others.add(d)
			othersAtRest.add(quiet[host])
		}
	}
	fmt.Printf("%5d spares replace a voter in %s: %.0f more requests than at rest by the %d called, and %d "+
		"writes; the others made %.1f requests/s, at rest %.1f\n",
		spares, took, extra, len(called), got.writes, rate(others, took), rate(othersAtRest, restSpan))
	if got.locked != 1 {
		f.t.Errorf("the lock was taken %d times: more than the first spare has tried", got.locked)
	}
	if got.writes > 30 {
		f.t.Errorf("the spares wrote %d times", got.writes)
	}
	if extra > 350 || len(called) > policy.QueueLength+1 { // the limit holds for fleets of any size
		f.t.Errorf("the replacement cost %.0f requests of the %d called spares", extra, len(called))
	}
	if now, quiet := rate(others, took), rate(othersAtRest, restSpan); now > 1.1*quiet+1 {
		f.t.Errorf("the other spares made %.1f requests/s during the replacement, at rest %.1f", now, quiet)
	}
}

// replaceV3 removes the third voter. It returns how long the replacement took, the spares' requests during that time,
// and the spares that did not rest.
func (f *fleet) replaceV3() (took time.Duration, spares asked, called map[string]bool) {
	f.hosts["v3"].end()
	before := f.etcd.count()
	f.etcd.remove("v3")
	called = map[string]bool{}
	took = f.until(10*time.Minute, "a spare has become a voter", func() bool {
		for name, h := range f.hosts {
			if strings.HasPrefix(name, "s") && !h.agent.publisher.Current().View.Resting {
				called[name] = true
			}
		}
		return len(f.voters()) == 3 && f.etcd.get(record.KeysFor("test").Op()) == ""
	})
	spares, _ = f.spent(before)
	return took, spares, called
}

// In a fleet of this size, even the spares in the join queue do not read all records in every round. boot checks that
// every step is decided from observations of its own round.
func TestAStepInALargeFleetIsDecidedOnCurrentState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 60, smallPace())
		defer f.close()
		f.settled()
		if _, got, _ := f.replaceV3(); got.locked != 1 {
			t.Errorf("the lock was taken %d times", got.locked)
		}
	})
}

func TestTheNextVoterKeepsTheQueueAfterItsKeeperHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 15, smallPace())
		defer f.close()
		f.settled()
		keeper := f.hosts["v1"]
		keeper.end() // ends only its agent
		if q := f.queue(); q != nil {
			t.Errorf("the queue %v outlives its keeper", q)
		}
		f.until(time.Minute, "the queue is full again", func() bool { return len(f.queue()) == policy.QueueLength })
		f.hosts[strings.TrimPrefix(f.queue()[0], "id-")].end()
		f.until(2*time.Minute, "three running spares are in the join queue", func() bool {
			return len(f.queue()) == policy.QueueLength
		})
	})
}

func TestASpareFillsAVacancyWithoutAnyVotersAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 40, smallPace())
		defer f.close()
		f.settled()
		for _, name := range []string{"v1", "v2", "v3"} {
			f.hosts[name].end()
		}
		before := f.etcd.count()
		f.etcd.remove("v3")
		took := f.until(15*time.Minute, "a spare has become a voter", func() bool { return len(f.voters()) == 3 })
		got, _ := f.spent(before)
		t.Logf("it took %s; the lock was taken %d times", took, got.locked)
		if got.locked > 2 {
			t.Errorf("the lock was taken %d times", got.locked)
		}
	})
}

func TestAFleetWritesNothingAfterAnOutageOfEtcd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 30, smallPace())
		defer f.close()
		f.settled()
		f.etcd.cutOff(true)
		f.pass(15 * time.Second) // shorter than the lifetime of a host record
		for name, h := range f.hosts {
			if s := h.agent.Status(); !strings.HasPrefix(name, "s") && s.Cluster.Reachable {
				t.Errorf("%s reports the cluster as reachable", name)
			}
		}
		before := f.etcd.count()
		f.etcd.cutOff(false)
		f.pass(2 * time.Minute)
		if got, all := f.spent(before); got.writes > 0 || all.writes > 0 {
			t.Errorf("spares wrote %d times, all hosts %d times", got.writes, all.writes)
		}
	})
}

func TestARestingSpareDetectsAnotherAgentWithItsID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 30, smallPace())
		defer f.close()
		f.settled()
		const name = "s0029"
		first := f.hosts[name]
		if !first.agent.publisher.Current().View.Resting {
			t.Fatalf("%s does not rest", name)
		}
		first.end() // its agent deletes its host record
		key := record.KeysFor("test").Host("id-" + name)
		f.add(name, 0)
		second := f.hosts[name]
		f.until(time.Minute, "the second has written its record", func() bool { return f.etcd.get(key) != "" })
		other := strings.Replace(f.etcd.get(key), "boot-"+name, "other-boot", 2)
		if _, err := f.etcd.of("intruder").Txn(t.Context(), nil, clientv3.OpPut(key, other)); err != nil {
			t.Fatal(err)
		}
		f.until(30*time.Second, "it reports that another agent has its ID", func() bool {
			return strings.Contains(second.agent.publisher.Current().View.Self.Conflict,
				"another agent runs with this host's ID")
		})
	})
}

func TestAHostIsNotInConflictWithItsRecordFromBeforeAPowerLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, smallPace())
		defer f.close()
		f.settled()
		for _, name := range []string{"v1", "s0003"} {
			h, key := f.hosts[name], record.KeysFor("test").Host("id-"+name)
			for _, boot := range []string{"second", "third"} {
				before := f.etcd.get(key)
				h.losePower()
				if before == "" || f.etcd.get(key) != before {
					t.Fatalf("the record of %s should outlive its host: %q, before %q", name, f.etcd.get(key), before)
				}
				h.boot(boot)
				f.until(10*time.Second, name+" has written its record again", func() bool {
					return strings.Contains(f.etcd.get(key), boot)
				})
				if c := h.agent.publisher.Current().View.Self.Conflict; c != "" {
					t.Errorf("%s, boot %s: %s", name, boot, c)
				}
			}
		}
	})
}

func TestARecordWithAnOldHealthStateIsOverwritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 30, smallPace())
		defer f.close()
		f.settled()
		key := record.KeysFor("test").Host("id-v1")
		now := f.etcd.get(key)
		// This simulates a delayed write: a record with an earlier health state takes effect only now, after a
		// newer one.
		late := strings.Replace(now, `"health":"OK"`, `"health":"SLOW"`, 1)
		if late == now {
			t.Fatalf("the health state is not OK: %s", now)
		}
		f.put(key, late)
		f.until(30*time.Second, "the current record is restored", func() bool { return f.etcd.get(key) == now })
	})
}

func TestReadingARestingSparesStatusRefreshesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 40, smallPace())
		defer f.close()
		f.settled()
		h := f.hosts["s0039"].agent
		f.until(10*time.Minute, "its view of the members is a while old", func() bool {
			r := h.publisher.Current()
			return f.now()-r.StatusesAt > 30*time.Second
		})
		if age := *h.Status().Cluster.AgeSeconds; age < 30 {
			t.Errorf("it shows an age of %.0f s for a state that is more than 30 s old", age)
		}
		f.pass(5 * time.Second)
		if age := *h.Status().Cluster.AgeSeconds; age > 5 {
			t.Errorf("after a client has read it, the state is %.0f s old", age)
		}
	})
}
