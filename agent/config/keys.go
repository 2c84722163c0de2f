// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// The comment of a field documents the key in the reference (quorumd.yaml), so it is written for operators. The tags
// are the rest of the declaration:
//
//	yaml      name of the key
//	default   value when the key is not set, written as in the file
//	derived   description of a default that is computed
//	required  "true": the key must be set
//	example   value that the reference shows when there is no default
//	          (in default and example, semicolons separate the entries of a list; a list with a
//	          default may be empty)
//	is        format of a string, see formats in format.go
//	unit      what a number counts
//	oneOf     the allowed values, separated by spaces; hint explains the restriction
//	min, max  bounds of a number, or lower bound of a duration (otherwise above zero)

// Config is a whole configuration: checked, with every default except that of host.id filled in.
type Config struct {
	// observe: quorumd measures, derives health states, reports what it would do, and changes nothing. manage: it
	// also adds, promotes and removes members, and drives the local etcd.
	Mode Mode `yaml:"mode" default:"observe" oneOf:"observe manage"`

	// The identity of this host.
	Host Host `yaml:"host"`

	// The etcd cluster this host belongs to.
	Cluster Cluster `yaml:"cluster"`

	// Hosts that confirm to each other, before the cluster is created, that they never had one. Without this section
	// quorumctl bootstrap asks no other host. It must be the same on all hosts.
	Bootstrap Bootstrap `yaml:"bootstrap"`

	// The etcd member of this host and how it is run.
	Etcd Etcd `yaml:"etcd"`

	// How the disk under the etcd WAL is measured and judged.
	Disk Disk `yaml:"disk"`

	// External checks: the operator's own programs, in addition to quorumd's checks.
	Checks Checks `yaml:"checks"`

	// Internal timings. They are checked against each other; each rule is listed at the key that it limits. The
	// defaults suit most clusters.
	Timing Timing `yaml:"timing"`

	// How this host is taken down for a restart, a reboot or repairs.
	Maintenance Maintenance `yaml:"maintenance"`

	// When a dead or unhealthy voter is replaced. It should be the same on all hosts of a cluster.
	Repair Repair `yaml:"repair"`

	// What quorumd does when etcd's databases fill up. It should be the same on all hosts of a cluster.
	Space Space `yaml:"space"`

	// Snapshots of etcd's database, and where they are stored. It should be the same on all hosts of a cluster.
	Backup Backup `yaml:"backup"`

	// The listener for reboot agents that speak FleetLock, such as Zincati.
	FleetLock FleetLock `yaml:"fleetlock"`

	// The TCP proxy for etcd clients on this host. It runs as a separate unit, quorumd-proxy.service.
	Proxy Proxy `yaml:"proxy"`

	// The control socket, which quorumctl connects to.
	Control Control `yaml:"control"`

	// The listener for metrics and the status page.
	Metrics Metrics `yaml:"metrics"`

	// Where quorumd keeps its own files.
	Paths Paths `yaml:"paths"`

	// Warnings are remarks about values that are allowed but questionable, one sentence each.
	Warnings []string `yaml:"-"`
}

// Mode limits what quorumd may do.
type Mode string

// The modes.
const (
	ModeObserve Mode = "observe" // reports what it would do, changes nothing
	ModeManage  Mode = "manage"  // takes steps
)

// Host is the identity of this host.
type Host struct {
	// Name of this host and of its etcd member. Unique in the cluster.
	Name string `yaml:"name" derived:"the machine's host name up to the first dot" example:"n1" is:"name"`

	// Identity of this host in the cluster's records. It must be unique and must never change. Set it only if
	// machines are cloned with the same /etc/machine-id.
	ID string `yaml:"id" derived:"from /etc/machine-id" is:"id"`

	// Failure domain. Hosts with the same value share a rack, a power feed or a switch.
	Domain string `yaml:"domain" default:"" is:"name"`

	// true: this host may become a voter although another voter runs on the same machine or disk, as in a test. The
	// failure of one machine or disk may then cost several voters, and quorumd does not report it.
	AllowSharedHardware bool `yaml:"allowSharedHardware" default:"false"`

	// member: a voter, a standby or a spare, as the cluster needs. learner: a permanent learner, which serves stale
	// reads and never votes. It needs etcd 3.6, and ETCD_MAX_LEARNERS on every host. A voter stays a voter.
	Role Role `yaml:"role" default:"member" oneOf:"member learner"`
}

// Role is what a host may become.
type Role string

// The roles.
const (
	RoleMember  Role = "member"
	RoleLearner Role = "learner" // a permanent learner
)

// Bootstrap names the hosts that ask each other before the cluster is created.
type Bootstrap struct {
	// 0: quorumctl bootstrap creates the cluster. If hosts are listed below, the requesting host first asks all others.
	// It creates the cluster only when each answers that it has neither a cluster nor a request for one. Of two
	// requests, the one on the host whose name sorts first is kept. Any other value must be the number of hosts below,
	// which then create the cluster automatically. The host whose name sorts first creates it, and only when every
	// listed host answers that it has no data and never had any, has the same list, and has recorded this attempt
	// durably. The others join as usual.
	Expect int `yaml:"expect" default:"0" unit:"hosts" min:"0" max:"9"`

	// The hosts that may create the cluster, including this one, each as host.name=URL. At its URL, each host's quorumd
	// answers the others until the cluster exists. For https it serves the certificate of metrics.webConfig, which must
	// be valid for that URL. The others verify it against cluster.tls.ca, if that is set. A machine that can answer in
	// a host's place can falsely report that host as new: use https if you do not trust the network.
	Hosts []string `yaml:"hosts" default:"" is:"namedURL"`

	// Address on which this host answers the others. Nothing else is served on it, and metrics.allow does not apply to
	// it.
	Listen string `yaml:"listen" derived:"the port of this host's URL in hosts" example:"" is:"hostport"`
}

// Cluster describes the etcd cluster.
type Cluster struct {
	// Name of the cluster, the same on every host. Its records in etcd are below /quorumd/<name>/.
	Name string `yaml:"name" required:"true" example:"prod" is:"id"`

	// Cluster ID of etcd in hexadecimal, as in etcd's log ("cluster-id"). If set, quorumd refuses a cluster with a
	// different ID. Empty: quorumd remembers the first cluster ID that it sees.
	ID string `yaml:"id" default:"" is:"hex"`

	// Number of voters of a new cluster. Three survive one failure, five survive two. Later, quorumctl cluster resize
	// records a different number in etcd, which then applies instead.
	Voters int `yaml:"voters" default:"3" oneOf:"1 3 5 7 9" hint:"an even number has the same fault tolerance as one voter fewer, and more than 9 slow down every write"`

	// Number of standbys: caught-up learners, ready to replace a voter.
	Standbys int `yaml:"standbys" default:"1" oneOf:"0 1" hint:"etcd accepts one learner at a time"`

	// Client URLs of all hosts that may hold a member, including this one.
	Endpoints []string `yaml:"endpoints" required:"true" example:"http://192.0.2.1:2379; http://192.0.2.2:2379; http://192.0.2.3:2379" is:"url"`

	// A further source of endpoints. Set one of srv, file and program, or none.
	Discovery Discovery `yaml:"discovery"`

	// Warn about etcd versions below the safe floor or newer than the newest tested one, instead of refusing them.
	AllowUnsafeVersion bool `yaml:"allowUnsafeVersion" default:"false"`

	// How quorumd connects to https endpoints. To use https, uncomment these lines, and see etcd.tls. "tls: {}" uses
	// the system's CAs and no client certificate.
	TLS *TLS `yaml:"tls"`
}

// Discovery is an additional source of endpoints: DNS, a file, a program, or none. It only finds endpoints; etcd
// decides who is a member. A lookup that fails, or finds fewer endpoints, removes none. A result whose scheme differs
// from cluster.endpoints is refused as a whole. With https the certificates must be valid for the discovered names.
type Discovery struct {
	// Domain, such as example.com, whose SRV records list the endpoints: _etcd-client-ssl._tcp below it, or
	// _etcd-client._tcp for http.
	SRV string `yaml:"srv" default:"" is:"name"`

	// File with one URL per line. Lines that begin with # are ignored.
	File string `yaml:"file" default:"" is:"path"`

	// Program that prints one URL per line and exits with 0. It runs as quorumd's own user. It must be writable only by
	// root or that user, and so must all directories above it.
	Program string `yaml:"program" default:"" is:"path"`

	// Time between two lookups.
	Interval time.Duration `yaml:"interval" default:"30s" min:"1s"`

	// Time limit of one lookup, at most interval. A program that takes longer is killed with its process group.
	Timeout time.Duration `yaml:"timeout" default:"10s" min:"1s"`
}

// Any reports whether endpoints are discovered.
func (d Discovery) Any() bool { return d.SRV+d.File+d.Program != "" }

// Disk configures how the disk is measured and judged. The limits follow etcd: its tuning guide asks for a 99th
// percentile of WAL fsync below 10 ms, a heartbeat is due every 100 ms, and an election begins after 1 s.
type Disk struct {
	// Directory that the probe writes to. It must be on the file system of the etcd WAL. Set it if the data
	// directory is a mount point.
	ProbeDir string `yaml:"probeDir" derived:".quorumd-probe next to walDir, or next to dataDir if that holds the WAL" example:"/var/lib/etcd/.quorumd-probe" is:"path"`

	// Time between two direct writes. Each writes one block, bypasses the page cache, and is flushed to the device.
	DirectInterval time.Duration `yaml:"directInterval" default:"1s"`

	// Time between two WAL writes: an append and fdatasync, as etcd does it.
	WALInterval time.Duration `yaml:"walInterval" default:"10s"`

	// Number of WAL writes in the qualifying run, which a disk must pass before its host may join for the first time.
	// At least window.
	QualifySamples int `yaml:"qualifySamples" default:"3000" unit:"syncs" min:"20" max:"1000000"`

	// Rate of the writes in the qualifying run. Only a host without a member makes them.
	QualifyRate int `yaml:"qualifyRate" default:"50" unit:"syncs per second" min:"1" max:"50"`

	// A slower fsync counts against the health state OK. Six in a row, spread over 5s or more, make the disk WARM.
	FsyncWarm time.Duration `yaml:"fsyncWarm" default:"10ms"`

	// A slower fsync counts towards the health state SLOW. Three in a row make the disk WARM, as do two within 10m
	// that take five times as long. More than fsyncWarm.
	FsyncSlow time.Duration `yaml:"fsyncSlow" default:"100ms"`

	// The disk becomes OK again when fsyncs are faster than this. Less than fsyncWarm, so that a disk near the limit
	// does not flap.
	FsyncClear time.Duration `yaml:"fsyncClear" default:"5ms"`

	// An fsync in flight for longer than this makes the disk STALLED. More than fsyncSlow; etcd's election timeout is a
	// good value.
	Stall time.Duration `yaml:"stall" default:"1s"`

	// An fsync in flight for longer than this makes the disk FAILED. More than stall; the NVMe timeout of Linux is 30s.
	Fail time.Duration `yaml:"fail" default:"30s"`

	// The host is WARM if CPU starvation spoils more than this percentage of a minute's fsyncs. 100: never.
	Starved int `yaml:"starved" default:"20" unit:"%" min:"1" max:"100"`

	// true: a battery or capacitors protect the write caches under etcd's data. A disk whose flushes are disabled
	// (nobarrier, or 'write through' in queue/write_cache) then does not keep this host from joining.
	ProtectedCache bool `yaml:"protectedCache" default:"false"`

	// Free space that a join requires on the file system of the data directory, even if the database is small.
	MinFree Size `yaml:"minFree" default:"1GiB"`

	// Number of samples behind a health state. At least 300 samples, none of them slow, prove a p99 below fsyncWarm.
	Window int `yaml:"window" default:"300" unit:"samples" min:"20" max:"100000"`
}

// Timing holds the internal timings of the agent.
type Timing struct {
	// Time between two rounds of the control loop. At most renewEvery. Events start a round early.
	Interval time.Duration `yaml:"interval" default:"2s"`

	// Time limit of one call to one etcd endpoint.
	CallTimeout time.Duration `yaml:"callTimeout" default:"2s"`

	// How long the lock outlives its holder. Whole seconds. More than renewGiveUp + stepMargin. Nine tenths of it must
	// be at least 3 x callTimeout + stepMargin + renewEvery.
	LockTTL time.Duration `yaml:"lockTTL" default:"30s"`

	// Time between two renewals of the lock. Less than half of renewGiveUp.
	RenewEvery time.Duration `yaml:"renewEvery" default:"5s"`

	// The holder stops acting after this long without a successful renewal.
	RenewGiveUp time.Duration `yaml:"renewGiveUp" default:"15s"`

	// Time that the lock must stay valid beyond the time limit of a step, or the step does not start.
	StepMargin time.Duration `yaml:"stepMargin" default:"5s"`

	// How long the record of a silent host stays in etcd. Whole seconds, at least 4 x interval.
	HostRecordTTL time.Duration `yaml:"hostRecordTTL" default:"60s"`

	// Time between two membership changes. etcd requires its members to be connected for 5s before the next one.
	Settle time.Duration `yaml:"settle" default:"6s"`

	// A learner must be ready for this long before it is promoted. At least steadyLag.
	PromoteStable time.Duration `yaml:"promoteStable" default:"60s"`

	// Maximum lag behind the leader at which a learner is promoted.
	PromoteLag int `yaml:"promoteLag" default:"100" unit:"log entries" min:"1" max:"1000000"`

	// A learner's lag must stay within promoteLag for this long before it is promoted.
	SteadyLag time.Duration `yaml:"steadyLag" default:"30s"`

	// A learner without progress for this long is removed. Less than learnerMax.
	LearnerStall time.Duration `yaml:"learnerStall" default:"5m"`

	// A learner that is not promoted after this long is removed, even if it makes progress.
	LearnerMax time.Duration `yaml:"learnerMax" default:"2h"`

	// Pause after an operation before the next one begins on any host. 0s: none.
	Cooldown time.Duration `yaml:"cooldown" default:"60s" min:"0s"`

	// If leadership cannot be transferred for this long before a host is taken down, quorumd reports it. Maintenance,
	// with an operator waiting at the machine, then continues; a restart or a reboot waits. At least interval + 2 x
	// callTimeout.
	TransferTimeout time.Duration `yaml:"transferTimeout" default:"30s"`

	// An unhealthy leader, for example a leader with a slow disk, transfers leadership to a healthy voter. The next
	// transfer waits at least this long, and each further transfer twice as long as the one before. After a start
	// quorumd first waits this long, too. From interval + callTimeout to 1h.
	TransferInterval time.Duration `yaml:"transferInterval" default:"1m"`

	// A member that was taken down is back when it has been caught up and has served for this long.
	ReturnStable time.Duration `yaml:"returnStable" default:"15s"`

	// A member that is not back after this long is reported. Its operation continues: no other host is taken down.
	ReturnMax time.Duration `yaml:"returnMax" default:"10m"`

	// If the disk of a member that was taken down is still FAILED this long after the work ended, the operation ends
	// with HEALTH_BAD. The default leaves enough time for a repaired disk to pass a complete qualifying run.
	ReturnGiveUp time.Duration `yaml:"returnGiveUp" default:"2h"`

	// How long an operation must be without a lock before other hosts may clean up after it. At least 2 x lockTTL,
	// because each election in etcd extends a lease by its full time.
	OrphanGrace time.Duration `yaml:"orphanGrace" derived:"2 x lockTTL + 5s" example:"65s"`

	// Wait after a failed join. It doubles with each failure, up to one hour.
	JoinBackoff time.Duration `yaml:"joinBackoff" default:"1m"`

	// A host with a clock that is off by more than this does not join.
	ClockMaxOffset time.Duration `yaml:"clockMaxOffset" default:"5s"`
}

const (
	// orphanElection is the time an etcd election may add to a lease: with its defaults, a few tries of 1 s to 2 s.
	orphanElection = 5 * time.Second

	// MaxTransferInterval is the longest timing.transferInterval.
	MaxTransferInterval = time.Hour
	// MaxJoinBackoff is the longest wait after a failed join; the wait stops doubling there.
	MaxJoinBackoff = time.Hour
)

// Maintenance configures how a host is taken down, and when quorumd may request a reboot itself.
type Maintenance struct {
	// Directory of the operator's own programs. Those in before.d run before this host is taken down, those in
	// after.d when it is back, in the order of their names. A failure in before.d ends the operation, one in after.d
	// keeps it in flight until an operator ends it. Those in
	// commands.d run when requested by name, while etcd is down.
	Hooks string `yaml:"hooks" default:"/etc/quorumd/hooks" is:"path"`

	// Time limit of each program in before.d and after.d. A program that takes longer is killed and counts as failed.
	HookTimeout time.Duration `yaml:"hookTimeout" default:"5m"`

	// Time limit of a program in commands.d.
	CommandTimeout time.Duration `yaml:"commandTimeout" default:"1h"`

	// Request a reboot of this host when its packages need one: Debian's /run/reboot-required, or needs-restarting
	// if that is installed. At most once a day.
	AutoReboot bool `yaml:"autoReboot" default:"false"`

	// When autoReboot may request a reboot, and space.defrag a defragmentation: days, hours and optionally a time zone,
	// such as "Mon..Fri 02:00-04:00 Europe/Berlin". The default zone is the machine's own. A window that ends before it
	// begins ends on the next day.
	Windows []string `yaml:"windows" default:"daily 02:00-05:00" is:"window"`

	// Days on which autoReboot requests no reboot and space.defrag no defragmentation: dates or ranges, with a year or
	// for every year, such as "2026-11-27" and "12-20..01-06".
	Blackouts []string `yaml:"blackouts" default:"" is:"blackout"`

	// Veto directory: while it contains a file, autoReboot requests no reboot. The file's name and first line are
	// shown.
	Veto string `yaml:"veto" default:"/etc/quorumd/veto.d" is:"path"`
}

// NoSpace is what an agent does after a NOSPACE alarm.
type NoSpace string

// The values of NoSpace.
const (
	NoSpaceAlert     NoSpace = "alert"
	NoSpaceRemediate NoSpace = "remediate"
)

// Defrag is when an agent defragments the database of its own member by itself.
type Defrag string

// The values of Defrag.
const (
	DefragOff     Defrag = "off"
	DefragWindows Defrag = "windows"
)

// Space configures what an agent does when etcd's databases fill up.
type Space struct {
	// After a NOSPACE alarm etcd rejects every write. alert: quorumd reports it. remediate: in mode manage, before an
	// alarm, each agent defragments its own member's database, as maintenance, when the database has reached 90 % of
	// its quota, 32 MiB of it are free, and less than 85 % of the quota is in use. After an alarm, one agent compacts
	// old revisions if the data in use is too large for a defragmentation to help, defragments each database above 90 %
	// of its quota while etcd runs, one at a time, and disarms the alarm. It needs etcd 3.6 and, if etcd's
	// authentication is enabled, the role root.
	NoSpace NoSpace `yaml:"noSpace" default:"alert" oneOf:"alert remediate"`

	// How much history of the keys a compaction after a NOSPACE alarm keeps. A client that continues a watch from an
	// older revision has to read all its keys again. From 1m to 10m.
	Retain time.Duration `yaml:"retain" default:"10m" min:"1m"`

	// windows: in mode manage, each agent requests the defragmentation of its own member when 200 MiB and 40 % of the
	// file are free, or 32 MiB if the file has reached 80 % of its quota. It does so in maintenance.windows, outside of
	// maintenance.blackouts, at most once a day. At 90 % of the quota, it does so at any time, at most once an hour, if
	// the other conditions of noSpace: remediate hold. off: never.
	Defrag Defrag `yaml:"defrag" default:"off" oneOf:"off windows"`
}

// Repair configures when another host replaces a voter.
type Repair struct {
	// In mode manage, a standby or spare replaces a voter that has been dead for this long. A voter is dead when the
	// hosts of all live voters, at least two and including the leader's, report that neither of its ports accepts a
	// connection, and either no quorumd is alive on its host or that host's quorumd reports the data lost. At least
	// 30s and 2 x hostRecordTTL; longer than a machine takes to boot. off: report it, and replace nothing.
	Dead Grace `yaml:"dead" default:"off"`

	// A standby or spare replaces a voter that has been unhealthy for this long. It becomes a voter before the
	// unhealthy one is removed, unless the unhealthy one's disk hangs and it answers no linearizable reads; then that
	// one is removed first. A voter is unhealthy when it reports SLOW for this long (STALLED or FAILED for a minute)
	// and there is other evidence: its etcd's own fsync times, its lag, data that differs from that of a majority, or a
	// disk that hangs while the voter answers no linearizable reads. If a disk is only SLOW and its voter keeps up, the
	// time is six times as long, because most such disks become fast again by themselves. If the disk was SLOW in the
	// last days and became fast again by itself, the time is at least 1.5 times as long as the longest such period.
	// SLOW must last 90 s longer than these times. At least 30s. off: report it, and replace nothing.
	Unhealthy Grace `yaml:"unhealthy" default:"off"`

	// How many voters may be replaced automatically within 24 hours.
	PerDay int `yaml:"maxPerDay" default:"2" unit:"voters" min:"1" max:"9"`

	// A host that was replaced joins again when its health state has been OK or WARM for this long without
	// interruption, while it reached the cluster. The time doubles with each further replacement within 30 days, up
	// to 24h. 0s: immediately.
	CleanFor time.Duration `yaml:"cleanFor" default:"10m" min:"0s"`
}

// Grace is how long a condition must last before quorumd acts; 0, written as off, if it never acts.
type Grace time.Duration

// String returns the grace as it is written in the file.
func (g Grace) String() string {
	if g == 0 {
		return graceOff
	}
	return durationfmt.Parseable(time.Duration(g))
}

const graceOff = "off"

// Checks configures external checks.
type Checks struct {
	// Directory of programs that follow the Nagios plugin convention: exit code, one line of text, and figures after
	// a "|". They run as quorumd's own user. Each must be writable only by root or that user, and so must all
	// directories above it. quorumd runs those that exist when it starts: at most 32, with names of letters, digits,
	// dash and underscore.
	Dir string `yaml:"dir" default:"/etc/quorumd/checks.d" is:"path"`

	// Time between two runs of each program.
	Interval time.Duration `yaml:"interval" default:"60s" min:"1s"`

	// Time limit of each run, at most interval. A program that takes longer is killed with its process group.
	Timeout time.Duration `yaml:"timeout" default:"10s" min:"1s"`

	// Programs whose findings keep this host from becoming a member and a voter. A program that is in none of the
	// three lists is advisory.
	Joins []string `yaml:"joins" default:"" is:"check"`

	// Programs whose findings keep this host from becoming the leader.
	Leadership []string `yaml:"leadership" default:"" is:"check"`

	// Programs whose findings keep other voters from being taken down, because the cluster then depends on this host.
	Maintenance []string `yaml:"maintenance" default:"" is:"check"`
}

// FleetLock describes the listener for reboot agents.
type FleetLock struct {
	// Loopback address to listen on. The protocol has no password: any user who can connect can make quorumd stop etcd
	// on this host. Empty: do not listen.
	Listen string `yaml:"listen" default:"" is:"loopback"`
}

// Proxy describes the TCP proxy for local clients.
type Proxy struct {
	// Loopback address to listen on, such as 127.0.0.1:2379. Connections go to a live and healthy voter, if there is
	// one. The address must be free: an etcd on this host may already be using it. Empty: quorumd writes no list of
	// voters for quorumd-proxy.service, which does not start unless learnerListen is set.
	Listen string `yaml:"listen" default:"" is:"loopback"`

	// Loopback address for serializable reads from this host's permanent learner, such as 127.0.0.1:2381. Needs
	// host.role: learner. Reads are stale. etcd refuses writes and linearizable reads there. Empty: off.
	LearnerListen string `yaml:"learnerListen" default:"" is:"loopback"`
}

// Control describes the control socket.
type Control struct {
	// Path of the unix socket. Every user may read from it.
	Socket string `yaml:"socket" default:"/run/quorumd/control.sock" is:"socket"`

	// Members of this group may make changes through the socket, as root may. The group must own no files, above all
	// not the client key, because that key grants full access to etcd.
	Group string `yaml:"group" default:"quorumd-admin" is:"group"`
}

// Metrics describes the metrics listener.
type Metrics struct {
	// Address on which to serve /metrics and the status page. Without a host part: all addresses.
	Listen string `yaml:"listen" derived:"127.0.0.1:9379, or :9379 if allow names networks" example:"127.0.0.1:9379" is:"hostport"`

	// Networks that may connect, such as the network of Prometheus. This host always may. Connections from other
	// networks are closed. 4 of the 128 connections are reserved for each network. Empty: this host only. Every host
	// that can connect can read everything that is served.
	Allow []string `yaml:"allow" default:"" is:"network"`

	// Web configuration file for TLS and passwords, in the format of the Prometheus exporters. Empty: neither.
	WebConfig string `yaml:"webConfig" default:"" is:"path"`
}

// Paths names the directories of quorumd's own files.
type Paths struct {
	// State that must survive a reboot.
	State string `yaml:"state" default:"/var/lib/quorumd" is:"path"`

	// State that a reboot may clear.
	Runtime string `yaml:"runtime" default:"/run/quorumd" is:"path"`
}
