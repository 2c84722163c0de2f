// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/span"
	"github.com/quorumd/quorumd/disk"
)

// rule binds several keys to each other.
type rule struct {
	keys  []string // paths of the keys it names; the first one that the file sets gets the blame
	holds bool
	says  string // what must hold, why, and what to do, with every key and its value
}

// checkRules reports every rule that does not hold. A rule is skipped when one of its keys has a problem of its own.
func (d *decoder) checkRules(c *Config) {
	for _, r := range slices.Concat(d.timingRules(&c.Timing), d.diskRules(&c.Disk), maintenanceRules(&c.Maintenance),
		d.checksRules(&c.Checks), d.repairRules(c), d.backupRules(&c.Backup), foundingRules(c),
		d.urlRules(c), d.pathRules(c)) {
		unusable := slices.ContainsFunc(r.keys, func(path string) bool { return d.bad[path] })
		if r.holds || unusable {
			continue
		}
		blamed := r.keys[0]
		for _, path := range slices.Backward(r.keys) {
			if d.setAt[path] > 0 {
				blamed = path
			}
		}
		d.addRule(blamed, d.setAt[blamed], r.says)
	}
}

// show names a key and its value, and says when the value is the default: a person looking at the file does not see it.
func (d *decoder) show(path string, value any) string {
	if v, ok := value.(time.Duration); ok {
		value = span.Typed(v)
	}
	if d.setAt[path] > 0 {
		return fmt.Sprintf("%s (%v)", path, value)
	}
	return fmt.Sprintf("%s (%v, the default)", path, value)
}

func (d *decoder) checksRules(k *Checks) []rule {
	return []rule{{
		[]string{"checks.timeout", "checks.interval"},
		k.Timeout <= k.Interval,
		d.show("checks.timeout", k.Timeout) + " must be at most " + d.show("checks.interval", k.Interval) +
			", because a check that is not over is not run again; lower the first or raise the second",
	}}
}

func (d *decoder) timingRules(t *Timing) []rule {
	show := func(name string, value any) string { return d.show("timing."+name, value) }
	keys := func(names ...string) []string {
		for i := range names {
			names[i] = "timing." + names[i]
		}
		return names
	}
	interval, renew := show("interval", t.Interval), show("renewEvery", t.RenewEvery)
	giveUp, margin := show("renewGiveUp", t.RenewGiveUp), show("stepMargin", t.StepMargin)
	ttl, call := show("lockTTL", t.LockTTL), show("callTimeout", t.CallTimeout)
	return []rule{
		{
			keys("renewEvery", "renewGiveUp"), 2*t.RenewEvery < t.RenewGiveUp,
			renew + " must be less than half of " + giveUp +
				", so that one failed renewal is not the end; lower the first or raise the second",
		},
		{
			keys("renewGiveUp", "stepMargin", "lockTTL"), t.RenewGiveUp+t.StepMargin < t.LockTTL,
			giveUp + " and " + margin + " together must be less than " + ttl +
				", so that a holder stops before its lock ends; raise lockTTL or lower the others",
		},
		{
			keys("callTimeout", "stepMargin", "renewEvery", "lockTTL"),
			3*t.CallTimeout+t.StepMargin+t.RenewEvery <= t.LockTTL/10*9,
			"three times " + call + ", " + margin + " and " + renew + " together must be at most nine tenths of " +
				ttl + ", so that a step fits into the lock; raise lockTTL or lower the others",
		},
		{
			keys("interval", "renewEvery"), t.Interval <= t.RenewEvery,
			interval + " must be at most " + renew +
				", because each round of the loop renews once; lower the first or raise the second",
		},
		{
			keys("orphanGrace", "lockTTL"), t.OrphanGrace >= 2*t.LockTTL,
			show("orphanGrace", t.OrphanGrace) + " must be at least twice " + ttl +
				", because a change of leader in etcd gives the lock its full time again; raise the first or remove it",
		},
		{
			keys("presenceTTL", "interval"), t.PresenceTTL >= 4*t.Interval,
			show("presenceTTL", t.PresenceTTL) + " must be at least four times " + interval +
				", so that one slow round does not make a host absent; raise the first or lower the second",
		},
		{
			keys("promoteStable", "steadyLag"), t.PromoteStable >= t.SteadyLag,
			show("promoteStable", t.PromoteStable) + " must be at least " + show("steadyLag", t.SteadyLag) +
				", because the lag is watched during that time; raise the first or lower the second",
		},
		{
			keys("learnerStall", "learnerMax"), t.LearnerStall < t.LearnerMax,
			show("learnerStall", t.LearnerStall) + " must be less than " + show("learnerMax", t.LearnerMax) +
				", or it never takes effect; lower the first or raise the second",
		},
		{
			keys("handOver", "interval", "callTimeout"), t.HandOver >= t.Interval+2*t.CallTimeout,
			show("handOver", t.HandOver) + " must be at least " + interval + " and twice " + call +
				", or what the other voters' hosts say before a stop is old when they have said it; raise the first " +
				"or lower the others",
		},
		{
			keys("giveWay", "interval", "callTimeout"),
			t.GiveWay >= t.Interval+t.CallTimeout && t.GiveWay <= MaxGiveWay,
			show("giveWay", t.GiveWay) + " must be at least " + interval + " and " + call + " together, and at most " +
				span.Typed(MaxGiveWay) + ", because it doubles",
		},
		{
			keys("joinBackoff"), t.JoinBackoff <= MaxJoinBackoff,
			show("joinBackoff", t.JoinBackoff) + " must be at most " + span.Typed(MaxJoinBackoff) +
				", where its doubling ends; lower it",
		},
		{
			keys("lockTTL"), t.LockTTL >= 2*time.Second && t.LockTTL%time.Second == 0,
			ttl + " must be whole seconds and at least 2s, because etcd counts leases in seconds; write for example " +
				"30s",
		},
		{
			keys("presenceTTL"), t.PresenceTTL%time.Second == 0,
			show("presenceTTL", t.PresenceTTL) +
				" must be whole seconds, because etcd counts leases in seconds; write for example 60s",
		},
	}
}

// diskRules say that the limits of a sync rise in the order of the verdicts.
func (d *decoder) diskRules(k *Disk) []rule {
	limits := []struct {
		path  string
		value time.Duration
	}{
		{"disk.fsyncLeave", k.FsyncLeave},
		{"disk.fsyncWarm", k.FsyncWarm},
		{"disk.fsyncSlow", k.FsyncSlow},
		{"disk.stall", k.Stall},
		{"disk.fail", k.Fail},
	}
	var rules []rule
	for i, high := range limits[1:] {
		low := limits[i]
		rules = append(rules, rule{
			[]string{low.path, high.path},
			low.value < high.value,
			d.show(low.path, low.value) + " must be less than " + d.show(high.path, high.value) +
				", because the limits rise in the order fsyncLeave, fsyncWarm, fsyncSlow, stall, fail; lower the " +
				"first or raise the second",
		})
	}
	for _, lane := range []struct {
		path  string
		value time.Duration
	}{{"disk.directInterval", k.DirectInterval}, {"disk.walInterval", k.WALInterval}} {
		rules = append(rules, rule{
			[]string{lane.path},
			lane.value >= disk.MinInterval,
			d.show(lane.path, lane.value) + " must be at least " + span.Typed(disk.MinInterval) +
				", or the probe wears the disk; raise it",
		})
	}
	return append(rules, rule{
		[]string{"disk.qualifySamples", "disk.window"},
		k.QualifySamples >= k.Window,
		d.show("disk.qualifySamples", k.QualifySamples) + " must be at least " + d.show("disk.window", k.Window) +
			", which is what one verdict needs; raise the first or lower the second",
	})
}

// maintenanceRules say that what may ask by itself may do so at some time.
func maintenanceRules(m *Maintenance) []rule {
	return []rule{{
		[]string{"maintenance.windows", "maintenance.autoReboot"},
		!m.AutoReboot || len(m.Windows) > 0,
		"maintenance.windows is empty, but maintenance.autoReboot is true and asks only in a window; add one, as in " +
			"\"Mon..Fri 02:00-04:00\", or remove autoReboot",
	}}
}

// leastGrace is in how long each voter's host looks at another voter often enough to call it dead.
const leastGrace = 30 * time.Second

// mostClean is as long as the policy lets a host wait that was taken out.
const mostClean = 24 * time.Hour

// repairRules say that nobody is taken for dead too soon, nor kept out for ever.
func (d *decoder) repairRules(c *Config) []rule {
	dead, ttl := c.Repair.Dead, c.Timing.PresenceTTL
	return []rule{{
		[]string{"repair.dead", "timing.presenceTTL"},
		dead == 0 || time.Duration(dead) >= max(leastGrace, 2*ttl),
		d.show("repair.dead", dead) + " must be off, or at least " + span.Typed(leastGrace) + " and twice " +
			d.show("timing.presenceTTL", ttl) + ", because a host that falls silent is listed as present for that " +
			"time; raise the first or lower the second",
	}, {
		[]string{"repair.sick"},
		c.Repair.Sick == 0 || time.Duration(c.Repair.Sick) >= leastGrace,
		d.show("repair.sick", c.Repair.Sick) + " must be off, or at least " + span.Typed(leastGrace) +
			", because what burdens a disk for a moment does not make it sick; raise it",
	}, {
		[]string{"repair.cleanFor"},
		c.Repair.CleanFor <= mostClean,
		d.show("repair.cleanFor", c.Repair.CleanFor) + " must be at most " + span.Typed(mostClean) +
			", which is where its doubling ends; lower it",
	}}
}

// leastRate is far above what a job with snapshots must do in order not to be taken for one that hangs.
const leastRate Size = 1 << 20

// leastBackup is how long taking a snapshot of a large database may well take.
const leastBackup = time.Minute

// backupRules say that there is one place for snapshots, and that they are not taken without an end.
func (d *decoder) backupRules(b *Backup) []rule {
	return []rule{{
		[]string{"backup.every", "backup.store.directory"},
		b.Every == 0 || b.Store.Directory != "" || b.Store.S3 != nil,
		d.show("backup.every", b.Every) + " asks for snapshots, and there is no place for them; set " +
			"backup.store.directory or backup.store.s3",
	}, {
		[]string{"backup.store.directory"},
		b.Store.Directory == "" || b.Store.S3 == nil,
		"backup.store.directory (" + b.Store.Directory + ") is given beside backup.store.s3; remove one of the two",
	}, {
		[]string{"backup.store.s3"},
		b.Store.S3 == nil || b.Store.S3.Endpoint != "" && b.Store.S3.Bucket != "" && b.Store.S3.CredentialsFile != "",
		"backup.store.s3 needs endpoint, bucket and credentialsFile; set all three",
	}, {
		[]string{"backup.every"},
		b.Every == 0 || time.Duration(b.Every) >= leastBackup,
		d.show("backup.every", b.Every) + " must be off, or at least " + span.Typed(leastBackup) + "; raise it",
	}, {
		[]string{"backup.drill"},
		b.Drill == 0 || time.Duration(b.Drill) >= leastBackup,
		d.show("backup.drill", b.Drill) + " must be off, or at least " + span.Typed(leastBackup) + "; raise it",
	}, {
		[]string{"backup.rate"},
		b.Rate >= leastRate,
		d.show("backup.rate", b.Rate) + " is less than " + leastRate.String() + "; raise it",
	}, {
		[]string{"backup.drill", "backup.store.directory"},
		b.Drill == 0 || b.Store.Directory != "" || b.Store.S3 != nil,
		d.show("backup.drill", b.Drill) + " asks for snapshots to be proven, and there is no place for them; set " +
			"backup.store.directory or backup.store.s3",
	}}
}

// urlRules say that URLs agree on their scheme, that TLS files go with https, and that nobody listens where another
// does.
func (d *decoder) urlRules(c *Config) []rule {
	e := &c.Etcd
	rules := []rule{
		d.listenNameRule("etcd.listenClientURL", "etcd.clientURL", e.ListenClientURL),
		d.listenNameRule("etcd.listenPeerURL", "etcd.peerURL", e.ListenPeerURL),
	}
	rules = append(rules, d.addressRules(c)...)
	rules = append(rules, d.etcdTLSRules(e)...)
	login := []string{"etcd.user", "etcd.passwordFile"}
	rules = append(rules,
		rule{
			login, e.User == "" || e.PasswordFile != "",
			"etcd.user (" + e.User + ") is given without etcd.passwordFile; set both or neither",
		},
		rule{
			login, e.User != "" || e.PasswordFile == "",
			"etcd.passwordFile (" + e.PasswordFile + ") is given without etcd.user; set both or neither",
		})
	rules = append(rules, d.discoveryRules(&c.Cluster.Discovery)...)
	if len(c.Cluster.Endpoints) == 0 {
		return rules
	}
	rules = append(rules, d.schemeRules(c)...)
	rules = append(rules, rule{
		[]string{"etcd.user", "cluster.discovery", "cluster.endpoints"},
		c.Etcd.User == "" || c.Etcd.AllowUnencryptedPassword || !c.Cluster.Discovery.Any() ||
			scheme(c.Cluster.Endpoints[0]) == "https",
		"etcd.user (" + c.Etcd.User + ") has a password, and cluster.discovery finds http endpoints, " +
			"which would be sent " +
			"it unencrypted; use https, remove cluster.discovery, or set etcd.allowUnencryptedPassword: true",
	})
	if c.Cluster.TLS == nil {
		return rules
	}
	return append(rules, d.tlsPairRules(c.Cluster.TLS)...)
}

func (d *decoder) discoveryRules(k *Discovery) []rule {
	places := []string{"cluster.discovery.srv", "cluster.discovery.file", "cluster.discovery.program"}
	given := 0
	for _, value := range []string{k.SRV, k.File, k.Program} {
		if value != "" {
			given++
		}
	}
	return []rule{
		{places, given <= 1, "cluster.discovery names more than one place to look; keep srv, file or program"},
		{
			[]string{"cluster.discovery.timeout", "cluster.discovery.interval"},
			k.Timeout <= k.Interval,
			d.show("cluster.discovery.timeout", k.Timeout) + " must be at most " +
				d.show("cluster.discovery.interval", k.Interval) +
				", because a look that is not over is not begun again; lower the first or raise the second",
		},
	}
}

// schemeRules need at least one endpoint.
func (d *decoder) schemeRules(c *Config) []rule {
	const list, section = "cluster.endpoints", "cluster.tls"
	first, https := c.Cluster.Endpoints[0], scheme(c.Cluster.Endpoints[0]) == "https"
	same := func(path, value string) rule {
		return rule{
			[]string{path, list},
			scheme(value) == scheme(first),
			fmt.Sprintf("%s (%s) and %s[0] (%s) must both be http or both https; write the same scheme for all", path,
				value, list, first),
		}
	}
	rules := []rule{
		same("etcd.clientURL", c.Etcd.ClientURL),
		{
			[]string{section, list},
			c.Cluster.TLS != nil || !https,
			section + " is missing, but " + list + " are https (" + first +
				"); add the section with ca, cert and key, or \"tls: {}\" for the system's authorities and no client " +
				"certificate",
		},
		{
			[]string{section, list},
			c.Cluster.TLS == nil || https,
			section + " is given, but " + list + " are http (" + first + "); remove the section, or write https",
		},
	}
	for i, endpoint := range c.Cluster.Endpoints[1:] {
		rules = append(rules, same(fmt.Sprintf("%s[%d]", list, i+1), endpoint))
	}
	return rules
}

func (d *decoder) tlsPairRules(t *TLS) []rule {
	pair := []string{"cluster.tls.cert", "cluster.tls.key"}
	return []rule{
		{pair, t.Cert != "" || t.Key == "", "cluster.tls.key (" + t.Key +
			") is given without cluster.tls.cert; set both or neither"},
		{pair, t.Key != "" || t.Cert == "", "cluster.tls.cert (" + t.Cert +
			") is given without cluster.tls.key; set both or neither"},
	}
}

// serving are the variables with which etcd serves https at a URL.
type serving struct {
	listen, url string // the key and its value
	files       [2]string
	auto        string // makes etcd sign a certificate of its own
}

// lacks says whether the variables leave etcd without a certificate for an https URL. etcd would refuse to start.
func (s serving) lacks(variables map[string]string) bool {
	given := variables[s.files[0]] != "" && variables[s.files[1]] != ""
	return scheme(s.url) == "https" && !given && variables[s.auto] != "true"
}

func (s serving) says(elsewhere string) string {
	return fmt.Sprintf("%s (%s) is https, and etcd does not start without %s and %s: add the section etcd.tls, or "+
		"them to etcd.environment, unless %s",
		s.listen, s.url, s.files[0], s.files[1], elsewhere)
}

func servings(e Etcd) []serving {
	return []serving{
		{"etcd.listenClientURL", e.ListenClientURL, [2]string{"ETCD_CERT_FILE", "ETCD_KEY_FILE"}, "ETCD_AUTO_TLS"},
		{
			"etcd.listenPeerURL", e.ListenPeerURL,
			[2]string{"ETCD_PEER_CERT_FILE", "ETCD_PEER_KEY_FILE"},
			"ETCD_PEER_AUTO_TLS",
		},
	}
}

// etcdTLSRules say that the section serves both listeners, and that nothing else says the same.
func (d *decoder) etcdTLSRules(e *Etcd) []rule {
	if e.TLS == nil {
		return nil
	}
	const section = "etcd.tls"
	rules := []rule{{
		[]string{section},
		e.TLS.CA != "" && e.TLS.Cert != "" && e.TLS.Key != "",
		section + " needs ca, cert and key; set all three",
	}, {
		[]string{section + ".peerCert", section + ".peerKey"},
		(e.TLS.PeerCert == e.TLS.Cert) == (e.TLS.PeerKey == e.TLS.Key),
		section + ".peerCert (" + e.TLS.PeerCert + ") and " + section + ".peerKey (" + e.TLS.PeerKey +
			") go together; set both or neither",
	}}
	for _, u := range []struct{ path, from, value string }{
		{"etcd.listenClientURL", "etcd.clientURL", e.ListenClientURL},
		{"etcd.listenPeerURL", "etcd.peerURL", e.ListenPeerURL},
	} {
		rules = append(rules, rule{
			[]string{section, u.path, u.from},
			scheme(u.value) == "https" || u.value == "",
			section + " is given, but " + d.show(u.path, u.value) + " is not https; write https, or remove the section",
		})
	}
	for _, name := range slices.Sorted(maps.Keys(e.TLS.environment())) {
		rules = append(rules, rule{
			[]string{section, "etcd.environment"},
			e.Environment[name] == "",
			"etcd.environment has " + name + ", which etcd.tls sets; remove it from one of the two",
		})
	}
	return rules
}

// listenNameRule covers a URL to listen on that comes from the advertised one, where names are allowed.
func (d *decoder) listenNameRule(listen, advertised, value string) rule {
	_, err := parseURL(value, true)
	return rule{
		[]string{listen, advertised},
		value == "" || err == nil,
		fmt.Sprintf("%s is not set, so it is %s; but %s, in %s", listen, advertised, listenNeedsIP(value), listen),
	}
}

// addressRules say that every listener has an address and port of its own.
func (d *decoder) addressRules(c *Config) []rule {
	listeners := []struct{ path, from, value string }{
		{"etcd.listenClientURL", "etcd.clientURL", c.Etcd.ListenClientURL},
		{"etcd.listenPeerURL", "etcd.peerURL", c.Etcd.ListenPeerURL},
		{"etcd.metricsURL", "etcd.metricsURL", c.Etcd.MetricsURL},
		{"metrics.listen", "metrics.allow", c.Metrics.Listen},
		{"bootstrap.listen", "bootstrap.hosts", c.Bootstrap.Listen},
		{"fleetlock.listen", "fleetlock.listen", c.FleetLock.Listen},
		{"proxy.listen", "proxy.listen", c.Proxy.Listen},
	}
	var rules []rule
	for i, a := range listeners {
		for _, b := range listeners[i+1:] {
			rules = append(rules, rule{
				[]string{a.path, b.path, a.from, b.from},
				!overlap(address(a.value), address(b.value)),
				d.show(a.path, a.value) + " and " + d.show(b.path, b.value) +
					" listen on the same address and port; give one of them another port",
			})
		}
	}
	return append(rules, d.externalRules(c)...)
}

// overlap says whether two listeners want the same address: equal ports, and equal hosts or one that stands for all.
func overlap(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	return portA != "" && portA == portB && (plain(hostA) == plain(hostB) || isAll(hostA) || isAll(hostB))
}

// plain gives the address that localhost is to who listens.
func plain(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

func isAll(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// address gives the host and port of a URL, or of what is one already.
func address(s string) string {
	if _, after, ok := strings.Cut(s, "://"); ok {
		return after
	}
	return s
}

func scheme(s string) string {
	before, _, _ := strings.Cut(s, "://")
	return before
}

// pathRules say that etcd's directories hold nothing of anybody else, because they are moved aside as a whole.
func (d *decoder) pathRules(c *Config) []rule {
	type place struct{ key, path string }
	const data, wal = "etcd.dataDir", "etcd.walDir"
	owned := []place{
		{"etcd.binary", c.Etcd.Binary},
		{"etcd.environmentFile", c.Etcd.EnvironmentFile},
		{"etcd.logFile", c.Etcd.LogFile},
		{"etcd.passwordFile", c.Etcd.PasswordFile},
		{"disk.probeDir", c.Disk.ProbeDir},
		{"control.socket", c.Control.Socket},
		{"metrics.webConfig", c.Metrics.WebConfig},
		{"maintenance.hooks", c.Maintenance.Hooks},
		{"maintenance.veto", c.Maintenance.Veto},
		{"checks.dir", c.Checks.Dir},
		{"cluster.discovery.file", c.Cluster.Discovery.File},
		{"cluster.discovery.program", c.Cluster.Discovery.Program},
		{"paths.state", c.Paths.State},
		{"paths.runtime", c.Paths.Runtime},
	}
	if tls := c.Cluster.TLS; tls != nil {
		owned = append(owned, place{"cluster.tls.ca", tls.CA}, place{"cluster.tls.cert", tls.Cert},
			place{"cluster.tls.key", tls.Key})
	}
	if tls := c.Etcd.TLS; tls != nil {
		all := []place{
			{"etcd.tls.ca", tls.CA},
			{"etcd.tls.cert", tls.Cert},
			{"etcd.tls.key", tls.Key},
			{"etcd.tls.peerCA", tls.PeerCA},
			{"etcd.tls.peerCert", tls.PeerCert},
			{"etcd.tls.peerKey", tls.PeerKey},
		}
		for i, p := range all {
			if i < 3 || p.path != all[i-3].path { // not what is the same by default
				owned = append(owned, p)
			}
		}
	}
	var rules []rule
	for _, p := range owned {
		for _, dir := range []place{{data, c.Etcd.DataDir}, {wal, c.Etcd.WALDir}} {
			rules = append(rules, rule{
				[]string{p.key, dir.key},
				!within(p.path, dir.path),
				d.show(p.key, p.path) + " lies in " + d.show(dir.key, dir.path) +
					", which is etcd's alone and is moved aside as a whole; choose another place",
			})
		}
	}
	return append(rules, rule{
		[]string{wal, data},
		!within(c.Etcd.DataDir, c.Etcd.WALDir),
		d.show(data, c.Etcd.DataDir) + " lies in " + d.show(wal, c.Etcd.WALDir) +
			"; choose another directory for the WAL, or remove walDir",
	})
}

// within says whether path is dir or lies below it. Both are clean; an empty one is nowhere.
func within(path, dir string) bool {
	if path == "" || dir == "" {
		return false
	}
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// warnings remarks on values that are allowed but questionable.
func warnings(c *Config) []string {
	var w []string
	if c.Cluster.Voters == 9 {
		w = append(w,
			"cluster.voters is 9: every write waits for five disks; 5 or 7 voters are faster and hardly less safe")
	}
	if !slices.Contains(c.Cluster.Endpoints, c.Etcd.ClientURL) {
		w = append(w,
			fmt.Sprintf("etcd.clientURL (%s) is not in cluster.endpoints: add it there on every host, or other hosts "+
				"will not ask this one", c.Etcd.ClientURL))
	}
	elsewhere := "quorumd was started with them" // etcd's environment may be more than what quorumd writes
	if c.Etcd.Runner == RunnerSystemd {
		elsewhere = c.Etcd.Unit + " has them of its own (systemctl cat " + c.Etcd.Unit + ")"
	}
	for _, s := range servings(c.Etcd) {
		if c.Etcd.TLS == nil && s.lacks(c.Etcd.Environment) {
			w = append(w, s.says(elsewhere))
		}
	}
	if t := c.Etcd.TLS; t != nil && t.CA != "" && t.PeerCA == t.CA {
		w = append(w, "etcd.tls.peerCA is etcd.tls.ca, so the certificate of any client opens etcd's peer port, where "+
			"etcd's authentication does not apply: give the peers a CA of their own (quorumctl pki rotate "+
			"begin --peers)")
	}
	w = append(w, unprovenWarnings(c)...)
	if c.Cluster.AllowUnsafeVersion {
		w = append(w,
			"cluster.allowUnsafeVersion is set: membership is managed with etcd versions that have known faults")
	}
	if c.Maintenance.AutoReboot && (c.Mode != ModeManage || c.Etcd.Runner == RunnerProcess) {
		w = append(w, "maintenance.autoReboot does nothing here: it takes mode manage, "+
			"and etcd as a systemd unit or run by others")
	}
	if host, _, _ := net.SplitHostPort(c.Metrics.Listen); len(c.Metrics.Allow) == 0 && !isLoopback(host) {
		w = append(w, fmt.Sprintf("metrics.listen (%s) is reachable from other hosts and metrics.allow is empty: "+
			"connections from other hosts are closed → set metrics.allow, or take 127.0.0.1", c.Metrics.Listen))
	}
	if c.Etcd.Runner == RunnerSystemd && within(c.Etcd.EnvironmentFile, c.Paths.State) {
		w = append(w,
			fmt.Sprintf("etcd.environmentFile (%s) lies in paths.state, where quorumd may write and so root does not: "+
				"choose a place in /var/lib/quorumd-etcd, and name it and its .hold in the drop-in of %s",
				c.Etcd.EnvironmentFile, c.Etcd.Unit))
	}
	return w
}

// unprovenWarnings remarks on places whose identity or secrecy nothing proves.
func unprovenWarnings(c *Config) []string {
	var w []string
	if c.Cluster.Discovery.Any() && c.Cluster.TLS != nil && c.Cluster.TLS.CA == "" {
		w = append(
			w,
			"cluster.discovery finds endpoints, and cluster.tls.ca is empty, so every certificate of a public "+
				"CA is trusted: whoever answers DNS or writes that list can name a host of its own; set "+
				"cluster.tls.ca to "+
				"the CA of etcd's servers",
		)
	}
	if c.Etcd.User != "" && c.Etcd.AllowUnencryptedPassword && c.Cluster.Discovery.Any() && c.Cluster.TLS == nil {
		w = append(w, "etcd.allowUnencryptedPassword is set: the password of "+c.Etcd.User+" is sent unencrypted to "+
			"endpoints that cluster.discovery finds")
	}
	if s := c.Backup.Store.S3; s != nil && scheme(s.Endpoint) == "http" && len(c.Backup.EncryptTo) == 0 {
		w = append(
			w,
			"backup.store.s3.endpoint ("+s.Endpoint+") is http, and backup.encryptTo is empty: everything in "+
				"etcd goes over the network unencrypted; use https, or set backup.encryptTo",
		)
	}
	return w
}
