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

	standbys int                // that are wanted
	prepare  func(h *fleetHost) // before its agent is started first; nil when there is nothing to do
}

// smallPace makes a fleet behave like one that is ten times as large.
func smallPace() observe.Pace {
	return observe.Pace{RestFrom: 10, RestMost: 30, Resting: 1, Attentive: 40, Guided: 20}
}

func usualPace() observe.Pace { return observe.UsualPace() }

// fleetHost is a host: its unit, its data directory, its disk and its files are all in memory.
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
	for _, m := range f.etcd.list() { // the first agent asks at once
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

// pass lets time pass, and all that is done at its end be done: what is looked at then does not change meanwhile.
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

// queue gives the host IDs that are called.
func (f *fleet) queue() []string {
	q, err := record.Decode[record.Queue]([]byte(f.etcd.get(record.KeysFor("test").Queue())))
	if err != nil {
		return nil
	}
	return q.Next
}

// spent gives what the spares, and all hosts, have asked since before.
func (f *fleet) spent(before map[string]asked) (spares, all asked) {
	for host, d := range f.since(before) {
		all.add(d)
		if strings.HasPrefix(host, "s") {
			spares.add(d)
		}
	}
	return spares, all
}

// since gives what each host has asked since before.
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

// fleetProbe measures a disk that is well. Its p99 swings around a bound of the published steps.
var sparesFlag = flag.Int("fleet.spares", 0, "measure a fleet with so many spares, and no other")

// settled waits until a fleet rests: the queue calls as many as it may.
func (f *fleet) settled() {
	f.t.Helper()
	f.until(10*time.Minute, "the queue calls three spares", func() bool {
		return len(f.queue()) == policy.QueueLength
	})
	f.pass(max(time.Minute, time.Duration(len(f.hosts)/50)*time.Second)) // until the last has asked etcd some times
}

// TestAFleetAsksEtcdForLittleWhateverItsSize measures a fleet at rest, and then how a spare takes the place of a voter.
func TestAFleetAsksEtcdForLittleWhateverItsSize(t *testing.T) {
	t.Parallel()
	sizes := []int{5, 120, 400} // one of 1000 is in `make nightly`: it takes minutes
	if *sparesFlag != 0 {
		sizes = []int{*sparesFlag}
	}
	for _, spares := range sizes {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, spares, usualPace())
			defer f.close()
			f.settled()
			quiet := f.rests()
			f.costOfAHandOver(quiet)
		})
	}
}

// restSpan is for how long a fleet is watched at rest. In a large one each looks seldom, but they are many.
func (f *fleet) restSpan() time.Duration {
	if len(f.hosts) > 3000 {
		return 3 * time.Minute
	}
	return 10 * time.Minute
}

// rests measures a fleet at rest, and gives what each host has asked in that time.
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
	// 50 rounds a second, or one of each in a minute
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

// costOfAHandOver measures what a hand-over asks of etcd. Those that are called ask all that it needs, and
// the others ask what they ask at rest, quiet.
func (f *fleet) costOfAHandOver(quiet map[string]asked) {
	f.t.Helper()
	spares, restSpan := len(f.hosts)-3, f.restSpan()
	before := f.etcd.count()
	took, got, called := f.handOver()
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
	fmt.Printf("%5d spares hand over in %s: %.0f requests more than at rest, of the %d that are called, and %d "+
		"writes; the others made %.1f requests/s, at rest %.1f\n",
		spares, took, extra, len(called), got.writes, rate(others, took), rate(othersAtRest, restSpan))
	if got.locked != 1 {
		f.t.Errorf("the lock was taken %d times: more than the one that goes first has tried", got.locked)
	}
	if got.writes > 30 {
		f.t.Errorf("the spares wrote %d times", got.writes)
	}
	if extra > 350 || len(called) > policy.QueueLength+1 { // whatever the size
		f.t.Errorf("the hand-over cost %.0f requests of the %d spares that were called", extra, len(called))
	}
	if now, quiet := rate(others, took), rate(othersAtRest, restSpan); now > 1.1*quiet+1 {
		f.t.Errorf("the spares that are not called made %.1f requests/s during the hand-over, at rest %.1f", now, quiet)
	}
}

// handOver takes the third voter away and gives what the spares ask until another has taken its place, and
// which of them did not rest meanwhile.
func (f *fleet) handOver() (took time.Duration, spares asked, called map[string]bool) {
	f.hosts["v3"].end()
	before := f.etcd.count()
	f.etcd.remove("v3")
	called = map[string]bool{}
	took = f.until(10*time.Minute, "a spare has become a voter", func() bool {
		for name, h := range f.hosts {
			if strings.HasPrefix(name, "s") && !h.agent.told.Current().View.Resting {
				called[name] = true
			}
		}
		return len(f.voters()) == 3 && f.etcd.get(record.KeysFor("test").Op()) == ""
	})
	spares, _ = f.spent(before)
	return took, spares, called
}

// In a fleet of that size even those that are called do not read all records in every round; that a step is taken on
// what was seen in its own round is checked by boot.
func TestAStepInALargeFleetIsDecidedOnWhatIsSoNow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 60, smallPace())
		defer f.close()
		f.settled()
		if _, got, _ := f.handOver(); got.locked != 1 {
			t.Errorf("the lock was taken %d times", got.locked)
		}
	})
}

func TestTheNextVoterKeepsTheQueueWhenItsKeeperIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 15, smallPace())
		defer f.close()
		f.settled()
		keeper := f.hosts["v1"]
		keeper.end() // its agent only
		if q := f.queue(); q != nil {
			t.Errorf("the queue %v outlives its keeper", q)
		}
		f.until(time.Minute, "the queue stands again", func() bool { return len(f.queue()) == policy.QueueLength })
		f.hosts[strings.TrimPrefix(f.queue()[0], "id-")].end()
		f.until(2*time.Minute, "three spares that are there are called", func() bool {
			return len(f.queue()) == policy.QueueLength
		})
	})
}

func TestWithoutAnyVotersAgentASpareStillTakesTheFreePlace(t *testing.T) {
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

func TestAFleetThatWasCutOffForAWhileWritesNothingWhenItIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 30, smallPace())
		defer f.close()
		f.settled()
		f.etcd.cutOff(true)
		f.pass(15 * time.Second) // less than presence lasts
		for name, h := range f.hosts {
			if s := h.agent.Status(); !strings.HasPrefix(name, "s") && s.Cluster.Reachable {
				t.Errorf("%s says that the cluster answers", name)
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

func TestARestingSpareNoticesAnotherAgentWithItsID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 30, smallPace())
		defer f.close()
		f.settled()
		const name = "s0029"
		first := f.hosts[name]
		if !first.agent.told.Current().View.Resting {
			t.Fatalf("%s does not rest", name)
		}
		first.end() // it gives its record back
		key := record.KeysFor("test").Host("id-" + name)
		f.add(name, 0)
		second := f.hosts[name]
		f.until(time.Minute, "the second has written its record", func() bool { return f.etcd.get(key) != "" })
		other := strings.Replace(f.etcd.get(key), "boot-"+name, "other-boot", 2)
		if _, err := f.etcd.of("intruder").Txn(t.Context(), nil, clientv3.OpPut(key, other)); err != nil {
			t.Fatal(err)
		}
		f.until(30*time.Second, "it says that another agent has its ID", func() bool {
			return strings.Contains(second.agent.told.Current().View.Self.Conflict,
				"another agent runs with this host's ID")
		})
	})
}

func TestAHostThatLostPowerIsNotInConflictWithWhatItWasBefore(t *testing.T) {
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
					t.Fatalf("the record of %s should outlive its power: %q, before %q", name, f.etcd.get(key), before)
				}
				h.boot(boot)
				f.until(10*time.Second, name+" has written its record anew", func() bool {
					return strings.Contains(f.etcd.get(key), boot)
				})
				if c := h.agent.told.Current().View.Self.Conflict; c != "" {
					t.Errorf("%s, boot %s: %s", name, boot, c)
				}
			}
		}
	})
}

func TestARecordThatTellsAnOldVerdictIsWrittenAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 30, smallPace())
		defer f.close()
		f.settled()
		key := record.KeysFor("test").Host("id-v1")
		now := f.etcd.get(key)
		// What the agent told while no read came back takes effect only now, behind what it has written since.
		late := strings.Replace(now, `"health":"OK"`, `"health":"SLOW"`, 1)
		if late == now {
			t.Fatalf("it does not say that it is well: %s", now)
		}
		f.put(key, late)
		f.until(30*time.Second, "it says again how it is", func() bool { return f.etcd.get(key) == now })
	})
}

func TestSomebodyWhoLooksAtARestingSpareSoonSeesAFreshPicture(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 40, smallPace())
		defer f.close()
		f.settled()
		h := f.hosts["s0039"].agent
		f.until(10*time.Minute, "its picture of the members is a while old", func() bool {
			r := h.told.Current()
			return f.now()-r.StatusesAt > 30*time.Second
		})
		if age := *h.Status().Cluster.AgeSeconds; age < 30 {
			t.Errorf("it shows a picture of %.0f s ago as if it were of now", age)
		}
		f.pass(5 * time.Second)
		if age := *h.Status().Cluster.AgeSeconds; age > 5 {
			t.Errorf("after somebody has asked it is %.0f s old", age)
		}
	})
}
