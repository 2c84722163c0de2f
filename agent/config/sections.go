// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// The comment of a field is what the default file says about the key, so it is written for the person who edits
// that file and names keys as the file does. The tags are the rest of the declaration:
//
//	yaml      name of the key
//	default   value when the key is not set, written as in the file
//	derived   in words, the default that is computed from elsewhere
//	required  "true": the key must be set
//	example   value the default file shows when there is no default
//	          (in both, semicolons separate the entries of a list; a list with a default may be empty)
//	is        format of a text, see formats in format.go
//	unit      what a number counts
//	oneOf     the allowed values, separated by spaces; hint says why only these
//	min, max  bounds of a number, or lower bound of a duration (otherwise above zero)

// Config is a whole configuration: checked, with every default filled in.
type Config struct {
	// What quorumd may do. In observe it measures, judges and says what it would do, and changes nothing.
	// In manage it also adds, promotes and removes members and drives the local etcd.
	Mode Mode `yaml:"mode" default:"observe" oneOf:"observe manage"`

	// Who this host is.
	Host Host `yaml:"host"`

	// The etcd cluster this host belongs to.
	Cluster Cluster `yaml:"cluster"`

	// Hosts that ask each other before a cluster is made, once. Without them quorumctl bootstrap asks none. All hosts
	// must say the same.
	Bootstrap Bootstrap `yaml:"bootstrap"`

	// The etcd member of this host and how it is run.
	Etcd Etcd `yaml:"etcd"`

	// How the disk under the etcd WAL is measured and judged.
	Disk Disk `yaml:"disk"`

	// Checks of the operator's own, beside those of quorumd.
	Checks Checks `yaml:"checks"`

	// The clocks. They are checked against each other; the rule stands with the key it binds.
	Timing Timing `yaml:"timing"`

	// How this host is taken down for a restart, a reboot or repairs.
	Maintenance Maintenance `yaml:"maintenance"`

	// What is done about a voter that is lost. All hosts of a cluster should say the same.
	Repair Repair `yaml:"repair"`

	// Snapshots of etcd's database, and where they are kept. All hosts of a cluster should say the same.
	Backup Backup `yaml:"backup"`

	// The listener for reboot agents that speak FleetLock, such as Zincati.
	FleetLock FleetLock `yaml:"fleetlock"`

	// The forwarder for the etcd clients of this host, which is a unit of its own: quorumd-proxy.service.
	Proxy Proxy `yaml:"proxy"`

	// The control socket, which quorumctl speaks to.
	Control Control `yaml:"control"`

	// The metrics listener.
	Metrics Metrics `yaml:"metrics"`

	// Where quorumd keeps its own files.
	Paths Paths `yaml:"paths"`

	// Warnings are remarks about values that are allowed but questionable, one sentence each.
	Warnings []string `yaml:"-"`
}

// Mode says what quorumd may do.
type Mode string

// The modes.
const (
	ModeObserve Mode = "observe" // says what it would do, changes nothing
	ModeManage  Mode = "manage"  // acts
)

// Host says who this host is.
type Host struct {
	// Name of this host for people, and the name of its etcd member. Unique in the cluster.
	Name string `yaml:"name" derived:"the machine's host name up to the first dot" example:"n1" is:"name"`

	// Identity of this host in the cluster's records. It must never change and never be shared, so leave it
	// alone unless machines are cloned with one /etc/machine-id.
	ID string `yaml:"id" derived:"from /etc/machine-id" is:"id"`

	// Failure domain: hosts with the same text share a rack, a power feed or a switch.
	Domain string `yaml:"domain" default:"" is:"name"`
}

// Bootstrap names the hosts that ask each other before a cluster is made.
type Bootstrap struct {
	// 0: quorumctl bootstrap makes the cluster. If hosts are listed below, the host of the request asks all others
	// first, and makes the cluster when each answers that it has neither one nor a request for one. Of two requests,
	// that on the host whose name comes first is kept.
	// The number of hosts below: they make the cluster by themselves. The one whose name comes first makes it, and only
	// when every listed host answers that it has no data and never had any, has the same list, and has noted on its
	// disk that it stands by this attempt, for ever. The others join it in the usual way.
	Expect int `yaml:"expect" default:"0" unit:"hosts" min:"0" max:"9"`

	// These hosts, including this one: host.name of each, =, and the URL at which its quorumd answers the others until
	// the cluster exists. For https it serves the certificate of metrics.webConfig, which must be valid for that URL.
	// The others verify it against cluster.tls.ca, if that is set. A machine that can answer in a host's place can
	// claim that it is new: use https if you do not trust the network.
	Hosts []string `yaml:"hosts" default:"" is:"listed"`

	// Address on which this host answers the others. It serves nothing else, and metrics.allow does not apply to it.
	Listen string `yaml:"listen" derived:"the port of this host's URL in hosts" example:"" is:"hostport"`
}

// Cluster describes the etcd cluster.
type Cluster struct {
	// Name of the cluster. Every host of the cluster has the same one: its records in etcd lie below /quorumd/<name>/.
	Name string `yaml:"name" required:"true" example:"prod" is:"id"`

	// ID of the etcd cluster in hexadecimal, as etcd writes it in its log ("cluster-id").
	// When set, a cluster with another ID is refused. Empty: the first one seen is remembered.
	ID string `yaml:"id" default:"" is:"hex"`

	// How many voters the cluster shall have. Three survive the loss of one, five of two.
	Voters int `yaml:"voters" default:"3" oneOf:"1 3 5 7 9" hint:"an even number survives no more failures than one voter fewer, and more than 9 only slow every write down"`

	// How many caught-up learners are kept ready to take a lost voter's place.
	Standbys int `yaml:"standbys" default:"1" oneOf:"0 1" hint:"etcd accepts one learner at a time"`

	// Client URLs of all hosts that may hold a member, this one included.
	Endpoints []string `yaml:"endpoints" required:"true" example:"http://192.0.2.1:2379; http://192.0.2.2:2379; http://192.0.2.3:2379" is:"url"`

	// Where endpoints are found beside those.
	Discovery Discovery `yaml:"discovery"`

	// Accept etcd versions below the safe floor, and versions newer than the newest tested one, with a warning instead
	// of a refusal.
	AllowUnsafeVersion bool `yaml:"allowUnsafeVersion" default:"false"`

	// How quorumd connects to the endpoints when they are https: remove the # of these lines, and see etcd.environment.
	// Write "tls: {}" for the system's certificate authorities and no client certificate.
	TLS *TLS `yaml:"tls"`
}

// Discovery describes where quorumd finds endpoints beside those of cluster.endpoints: in one of three places, or in
// none. What is found is where to ask; who is a member says etcd. An answer that fails, is empty or is shorter takes
// nothing away, and one with an entry of another scheme than cluster.endpoints is refused as a whole. With https the
// certificates must name what is found.
type Discovery struct {
	// Domain, such as example.com, whose SRV records name the endpoints: _etcd-client-ssl._tcp below it, or
	// _etcd-client._tcp with http.
	SRV string `yaml:"srv" default:"" is:"name"`

	// File with one URL a line; a line with # in front counts for nothing.
	File string `yaml:"file" default:"" is:"path"`

	// Program that writes such lines and exits with 0. It runs as the service's own user. Only what root or that user
	// alone may write is run, and all directories on the way to it must be such.
	Program string `yaml:"program" default:"" is:"path"`

	// Time between two looks.
	Interval time.Duration `yaml:"interval" default:"30s" min:"1s"`

	// How long a look may take; a program is killed then, with its process group. Not more than interval.
	Timeout time.Duration `yaml:"timeout" default:"10s" min:"1s"`
}

// Any tells whether endpoints are discovered.
func (d Discovery) Any() bool { return d.SRV+d.File+d.Program != "" }

// TLS names the files quorumd needs to speak to etcd. They are read again when they change.
type TLS struct {
	// Certificate authorities that signed etcd's server certificates, PEM. Empty: those of the system.
	CA string `yaml:"ca" default:"" example:"/etc/quorumd/tls/ca.crt" is:"path"`

	// Client certificate of quorumd, PEM. Goes with key.
	Cert string `yaml:"cert" default:"" example:"/etc/quorumd/tls/client.crt" is:"path"`

	// Private key of the client certificate, PEM, not encrypted. Goes with cert. For the service's own user alone:
	// chown quorumd: FILE && chmod 0400 FILE. "quorumctl pki install" has it root's, readable for the group quorumd.
	Key string `yaml:"key" default:"" example:"/etc/quorumd/tls/client.key" is:"path"`
}

// Etcd describes the etcd member of this host.
type Etcd struct {
	// How etcd is run: as a systemd unit; as a child process of quorumd (containers, development, demo); or by others,
	// such as a kubelet: external. There quorumd sees from etcd's ports whether it runs, starts and stops it only if
	// the programs start and stop lie in etcd.d beside the other hooks, and gives out turns.
	Runner Runner `yaml:"runner" default:"systemd" oneOf:"systemd process external"`

	// The systemd unit that runs etcd.
	Unit string `yaml:"unit" default:"etcd.service" is:"unit"`

	// The etcd program. The process runner starts it; all runners ask it for its version before a join.
	Binary string `yaml:"binary" default:"/usr/bin/etcd" is:"path"`

	// Data directory of etcd. quorumd never deletes it; it is moved aside when a member has to start anew,
	// so no other path of this file may lie in it.
	DataDir string `yaml:"dataDir" default:"/var/lib/etcd/default" is:"path"`

	// WAL directory of etcd. Empty: inside the data directory. On a disk of its own, that disk is the one whose writes
	// are timed; of the database's, its room, its file system and its devices are looked at.
	WALDir string `yaml:"walDir" default:"" is:"path"`

	// File the etcd unit reads (EnvironmentFile=): the ETCD_* variables of the member. Root's helper writes it for
	// quorumd, from this configuration, where only root may write; beside it lies etcd.hold, which keeps the unit from
	// starting.
	EnvironmentFile string `yaml:"environmentFile" default:"/var/lib/quorumd-etcd/etcd.env" is:"path"`

	// User as whom quorumd asks etcd, where etcd has authentication on. Empty: nobody, or whom the client certificate
	// names (its common name). What it must be allowed is in quorumd(8).
	User string `yaml:"user" default:"" is:"name"`

	// File with the password of user, and nothing else. Only the user that runs quorumd may read it (mode 0400 or
	// 0600). It is read again when it changes.
	PasswordFile string `yaml:"passwordFile" default:"" is:"path"`

	// Send that password unencrypted to discovered http endpoints. A forged DNS answer, or a change to the file of
	// cluster.discovery, then reveals the password.
	AllowUnencryptedPassword bool `yaml:"allowUnencryptedPassword" default:"false"`

	// URL at which clients reach the member of this host. It belongs in cluster.endpoints too.
	ClientURL string `yaml:"clientURL" required:"true" example:"http://192.0.2.1:2379" is:"url"`

	// URL at which the other members reach the member of this host.
	PeerURL string `yaml:"peerURL" required:"true" example:"http://192.0.2.1:2380" is:"url"`

	// URL etcd listens on for clients. Its host is an IP address or localhost; etcd refuses other names.
	ListenClientURL string `yaml:"listenClientURL" derived:"same as clientURL" example:"http://192.0.2.1:2379" is:"listenURL"`

	// URL etcd listens on for its peers. Its host is an IP address or localhost; etcd refuses other names.
	ListenPeerURL string `yaml:"listenPeerURL" derived:"same as peerURL" example:"http://192.0.2.1:2380" is:"listenURL"`

	// URL etcd serves its metrics on, beside the client URL. Empty: only there.
	MetricsURL string `yaml:"metricsURL" default:"" is:"listenURL"`

	// Files with which etcd serves https, to clients and to peers: remove the # of these lines. Whoever connects needs
	// a certificate of its ca. quorumd gives them to etcd when that joins or begins a cluster; etcd's user must be able
	// to read them. 'quorumctl pki' makes them. Without this section use environment, or etcd's own unit.
	TLS *EtcdTLS `yaml:"tls"`

	// More ETCD_* variables for etcd, such as ETCD_QUOTA_BACKEND_BYTES. With an https clientURL etcd needs
	// ETCD_CERT_FILE and ETCD_KEY_FILE, with an https peerURL ETCD_PEER_CERT_FILE and ETCD_PEER_KEY_FILE: from tls,
	// here or in its own unit. Variables that quorumd sets itself (name, URLs, directories, initial cluster) are
	// refused.
	Environment map[string]string `yaml:"environment" default:"{}"`

	// Log file of etcd. Only the process runner writes it; under systemd the journal has the log.
	LogFile string `yaml:"logFile" default:"/var/log/quorumd/etcd.log" is:"path"`

	// How long etcd may take to stop before it is killed.
	StopTimeout time.Duration `yaml:"stopTimeout" default:"30s"`
}

// EtcdTLS names the files with which the etcd of this host serves https. It reads them again when they change, but for
// the authorities.
type EtcdTLS struct {
	// Certificate authorities of those who may connect as clients, quorumd among them, PEM.
	CA string `yaml:"ca" default:"" example:"/etc/quorumd/tls/ca.crt" is:"path"`

	// Certificate that clients are shown, PEM. It must be good for the host of clientURL.
	Cert string `yaml:"cert" default:"" example:"/etc/quorumd/tls/server.crt" is:"path"`

	// Private key of cert, PEM, not encrypted.
	Key string `yaml:"key" default:"" example:"/etc/quorumd/tls/server.key" is:"path"`

	// CAs of the other members, PEM. Every certificate from these CAs opens etcd's peer port, where etcd's
	// authentication does not apply. With the CA of the clients, every client can open it.
	PeerCA string `yaml:"peerCA" derived:"same as ca" example:"/etc/quorumd/tls/peer-ca.crt" is:"path"`

	// Certificate that the other members are shown, as a server and as a client, PEM. It must be good for the host of
	// peerURL.
	PeerCert string `yaml:"peerCert" derived:"same as cert" example:"/etc/quorumd/tls/peer.crt" is:"path"`

	// Private key of peerCert, PEM, not encrypted.
	PeerKey string `yaml:"peerKey" derived:"same as key" example:"/etc/quorumd/tls/peer.key" is:"path"`
}

// Runner says how etcd is run.
type Runner string

// The runners.
const (
	RunnerSystemd  Runner = "systemd"  // a systemd unit, over D-Bus
	RunnerProcess  Runner = "process"  // a child process of quorumd
	RunnerExternal Runner = "external" // by others, such as a kubelet
)

// probeDir is the default of disk.probeDir: beside the directory that holds the WAL, because its file system is what
// must be measured, and not in it, because etcd's directories are etcd's alone.
func (e Etcd) probeDir() string {
	holdsWAL := e.DataDir
	if e.WALDir != "" && !within(e.WALDir, e.DataDir) {
		holdsWAL = e.WALDir
	}
	return filepath.Join(filepath.Dir(holdsWAL), ".quorumd-probe")
}

// Disk says how the disk is measured and judged. The latencies are etcd's own yardsticks: its tuning guide wants a
// 99th percentile of WAL fsync below 10 ms, a heartbeat is due every 100 ms, and an election begins after 1 s.
type Disk struct {
	// Directory the probe writes in. It must be on the file system of the etcd WAL; set it when the data
	// directory is a mount point itself.
	ProbeDir string `yaml:"probeDir" derived:".quorumd-probe beside walDir, or beside dataDir when that holds the WAL" example:"/var/lib/etcd/.quorumd-probe" is:"path"`

	// Time between two writes of the direct lane: one block written past the page cache and flushed.
	DirectInterval time.Duration `yaml:"directInterval" default:"1s"`

	// Time between two writes of the WAL lane: an append and fdatasync, as etcd does it.
	WALInterval time.Duration `yaml:"walInterval" default:"10s"`

	// How many syncs of the WAL lane a disk must pass before its host may join for the first time. At least window.
	QualifySamples int `yaml:"qualifySamples" default:"3000" unit:"syncs" min:"20" max:"1000000"`

	// How fast these syncs are done. Only a host without a member does this.
	QualifyRate int `yaml:"qualifyRate" default:"50" unit:"syncs per second" min:"1" max:"50"`

	// A sync that takes longer counts against the verdict OK. Six in a row, for 5s, make the disk WARM.
	FsyncWarm time.Duration `yaml:"fsyncWarm" default:"10ms"`

	// A sync that takes longer counts towards the verdict SLOW. Three in a row make the disk WARM, as do two within 10m
	// that take five times as long. More than fsyncWarm.
	FsyncSlow time.Duration `yaml:"fsyncSlow" default:"100ms"`

	// Syncs must be faster than this for the verdict to become OK again. Less than fsyncWarm, so that a disk
	// at the edge does not flap.
	FsyncLeave time.Duration `yaml:"fsyncLeave" default:"5ms"`

	// A sync in flight for longer makes the disk STALLED. More than fsyncSlow; etcd's election timeout fits.
	Stall time.Duration `yaml:"stall" default:"1s"`

	// A sync in flight for longer makes the disk FAILED. More than stall; Linux gives an NVMe command 30s.
	Fail time.Duration `yaml:"fail" default:"30s"`

	// Percentage of a minute's syncs that a lack of processor time may spoil before the host is WARM. 100: all.
	Starved int `yaml:"starved" default:"20" unit:"%" min:"1" max:"100"`

	// Free space the file system of the data directory must have for a join, however small the database is.
	MinFree Size `yaml:"minFree" default:"1GiB"`

	// How many samples a verdict looks back on. 300 clean ones are the fewest that show p99 below fsyncWarm.
	Window int `yaml:"window" default:"300" unit:"samples" min:"20" max:"100000"`
}

// Timing holds the clocks of the agent.
type Timing struct {
	// Time between two rounds of the control loop. At most renewEvery. Events wake it early.
	Interval time.Duration `yaml:"interval" default:"2s"`

	// How long one call to one etcd endpoint may take.
	CallTimeout time.Duration `yaml:"callTimeout" default:"2s"`

	// How long the lock outlives its holder. Whole seconds. More than renewGiveUp + stepMargin, and more than
	// 3 x callTimeout + stepMargin + renewEvery.
	LockTTL time.Duration `yaml:"lockTTL" default:"30s"`

	// Time between two renewals of the lock. Less than half of renewGiveUp.
	RenewEvery time.Duration `yaml:"renewEvery" default:"5s"`

	// After this long without a successful renewal the holder stops acting.
	RenewGiveUp time.Duration `yaml:"renewGiveUp" default:"15s"`

	// How much validity the lock must have left beyond what a step may take before the step starts.
	StepMargin time.Duration `yaml:"stepMargin" default:"5s"`

	// How long a host that fell silent is still listed as present. Whole seconds, at least 4 x interval.
	PresenceTTL time.Duration `yaml:"presenceTTL" default:"60s"`

	// Quiet time between two membership changes. etcd wants its members connected for 5s before the next.
	Settle time.Duration `yaml:"settle" default:"6s"`

	// How long a learner must look fit before it is promoted. At least steadyLag.
	PromoteStable time.Duration `yaml:"promoteStable" default:"60s"`

	// How far a learner may lag behind the leader to be promoted.
	PromoteLag int `yaml:"promoteLag" default:"100" unit:"log entries" min:"1" max:"1000000"`

	// How long a learner's lag must have stayed within promoteLag before it is promoted.
	SteadyLag time.Duration `yaml:"steadyLag" default:"30s"`

	// A learner that makes no progress for this long is removed. Less than learnerMax.
	LearnerStall time.Duration `yaml:"learnerStall" default:"5m"`

	// A learner that is not promoted after this long is removed, whatever its progress.
	LearnerMax time.Duration `yaml:"learnerMax" default:"2h"`

	// Rest after an operation before the next one begins, on any host. 0s for none.
	Cooldown time.Duration `yaml:"cooldown" default:"60s" min:"0s"`

	// Leadership that cannot be moved for so long, before a host is taken down, is reported. A person who waits at
	// the machine is not kept waiting for longer; a restart or a reboot is.
	HandOver time.Duration `yaml:"handOver" default:"30s"`

	// A leader that is not well, as by a slow disk, hands the leadership over to a voter that is. It does so again only
	// after this time, and each further time after twice as long as before. When quorumd has just started it waits as
	// long.
	GiveWay time.Duration `yaml:"giveWay" default:"1m"`

	// A member that was taken down counts as back when it has served, caught up, for so long.
	ReturnStable time.Duration `yaml:"returnStable" default:"15s"`

	// A member that has not come back for so long is reported. Its turn is kept: no other host is taken down.
	ReturnMax time.Duration `yaml:"returnMax" default:"10m"`

	// If the disk of a member that was taken down is still FAILED this long after the work ended, the operation ends
	// with HEALTH_BAD. The default leaves enough time for a disk that works again to pass a whole qualifying run.
	ReturnGiveUp time.Duration `yaml:"returnGiveUp" default:"2h"`

	// How long the lock of an operation must be gone before others may tidy up behind it. At least 2 x lockTTL,
	// because every change of etcd's leader gives a lease its full time again.
	OrphanGrace time.Duration `yaml:"orphanGrace" derived:"2 x lockTTL + 5s" example:"65s"`

	// Wait after a failed join. It doubles with each failure, up to one hour.
	JoinBackoff time.Duration `yaml:"joinBackoff" default:"1m"`

	// A clock that is off by more keeps its host from joining.
	ClockMaxOffset time.Duration `yaml:"clockMaxOffset" default:"5s"`
}

const (
	// orphanElection is the time an etcd election may add to a lease: with its defaults, a few tries of 1 s to 2 s.
	orphanElection = 5 * time.Second

	// MaxGiveWay is the longest timing.giveWay.
	MaxGiveWay = time.Hour
	// MaxJoinBackoff is where the doubling of timing.joinBackoff ends.
	MaxJoinBackoff = time.Hour
)

// Maintenance says how a host is taken down, and when it may ask for that by itself.
type Maintenance struct {
	// Directory of the operator's own programs. Those in before.d run before this host is taken down, those in after.d
	// when it is back, in the order of their names. The first one that fails stops the operation. Those in commands.d
	// run when they are asked for by their name, while etcd is down.
	Hooks string `yaml:"hooks" default:"/etc/quorumd/hooks" is:"path"`

	// How long each of these programs may take before it is killed and counts as failed.
	HookTimeout time.Duration `yaml:"hookTimeout" default:"5m"`

	// The same for a program of commands.d.
	CommandTimeout time.Duration `yaml:"commandTimeout" default:"1h"`

	// Ask for a reboot of this host when its packages want one: Debian's /run/reboot-required, or needs-restarting
	// where that is installed. At most once a day.
	AutoReboot bool `yaml:"autoReboot" default:"false"`

	// When autoReboot may ask: days, hours and perhaps a time zone, as in "Mon..Fri 02:00-04:00 Europe/Berlin". Without
	// a zone the machine's own counts. A window that ends before it begins ends on the next day.
	Windows []string `yaml:"windows" default:"daily 02:00-05:00" is:"window"`

	// Days on which autoReboot does not ask: dates or ranges, of one year or, without it, of every year, as in
	// "2026-11-27" and "12-20..01-06".
	Blackouts []string `yaml:"blackouts" default:"" is:"blackout"`

	// Directory of vetoes: while any file lies in it, autoReboot does not ask. Its name and first line are shown.
	Veto string `yaml:"veto" default:"/etc/quorumd/veto.d" is:"path"`
}

// Repair says when a voter that is lost gives way to another host.
type Repair struct {
	// After how long a dead voter is replaced by a standby or spare, in mode manage. Dead is one of which all live
	// voters' hosts, two at least and the leader's among them, say that neither of its ports takes a connection, while
	// no quorumd is alive on its host. At least 30s and 2 x presenceTTL; longer than a machine takes to boot.
	// Off: that is told, and nothing is done.
	Dead Grace `yaml:"dead" default:"off"`

	// After how long a sick voter is replaced in the same way, but that the other host votes before the sick one is
	// removed. Sick is one that is SLOW by its own verdict for so long (STALLED for a minute is enough, FAILED needs no
	// time), while something else says so, too: its etcd's own count of its syncs, how far it is behind, or that it
	// hangs and answers no linearizable read. At least 30s. Off: that is told, and nothing is done.
	Sick Grace `yaml:"sick" default:"off"`

	// How many voters are replaced within 24 hours without a person's word.
	PerDay int `yaml:"perDay" default:"2" unit:"voters" min:"1" max:"9"`

	// A host whose place was taken joins again when its own verdict has been OK or WARM for so long without a break,
	// while it reached the cluster; twice as long for each further time within 30 days, but at most 24h. 0s: at once.
	CleanFor time.Duration `yaml:"cleanFor" default:"10m" min:"0s"`
}

// Grace is for how long something must last before quorumd acts by itself; 0 when it does not, written as off.
type Grace time.Duration

// String writes the grace as the file does.
func (g Grace) String() string {
	if g == 0 {
		return graceOff
	}
	return durationfmt.Typed(time.Duration(g))
}

const graceOff = "off"

// Checks describes the operator's own checks.
type Checks struct {
	// Directory of programs that say how things are as Nagios plugins do: by their exit code, a line of text, and
	// figures behind a "|". They run as the service's own user. Only what root or that user alone may write is run, and
	// all directories on the way to it must be such; and only what lies there when quorumd starts: at most 32, of
	// letters, digits, dash and underscore.
	Dir string `yaml:"dir" default:"/etc/quorumd/checks.d" is:"path"`

	// Time between two runs of each.
	Interval time.Duration `yaml:"interval" default:"60s" min:"1s"`

	// How long each may take before it is killed, with its process group. Not more than interval.
	Timeout time.Duration `yaml:"timeout" default:"10s" min:"1s"`

	// What these find keeps this host from becoming a member and a voter. What is in none of the three lists advises
	// only.
	Joins []string `yaml:"joins" default:"" is:"check"`

	// What these find keeps this host from being given the leadership.
	Leadership []string `yaml:"leadership" default:"" is:"check"`

	// What these find keeps other voters from being taken down while this one has to serve.
	Maintenance []string `yaml:"maintenance" default:"" is:"check"`
}

// FleetLock describes the listener for reboot agents.
type FleetLock struct {
	// Address to listen on, of the loopback only: the protocol knows no password, and whoever may connect may have
	// etcd stopped on this host. Empty: do not listen.
	Listen string `yaml:"listen" default:"" is:"loopback"`
}

// Proxy describes the forwarder for local clients.
type Proxy struct {
	// Address to listen on, of the loopback only, such as 127.0.0.1:2379. Connections to it go to a voter that lives
	// and is not SLOW. Nobody may listen there already, such as an etcd on this host. Empty: quorumd-proxy.service
	// does not start, and quorumd writes no list of voters for it.
	Listen string `yaml:"listen" default:"" is:"loopback"`
}

// Control describes the control socket.
type Control struct {
	// Path of the unix socket. Everyone may read from it.
	Socket string `yaml:"socket" default:"/run/quorumd/control.sock" is:"socket"`

	// Members of this group may change things through it, as root may. It must own nothing: the client key, above all,
	// is for the service's own user, because whoever has it may do anything in etcd.
	Group string `yaml:"group" default:"quorumd-admin" is:"group"`
}

// Metrics describes the metrics listener.
type Metrics struct {
	// Address on which to serve /metrics and the status page. Without a host: all addresses.
	Listen string `yaml:"listen" derived:"127.0.0.1:9379, or :9379 if allow names networks" example:"127.0.0.1:9379" is:"hostport"`

	// Networks from which other hosts may connect, such as the network of Prometheus. This host always may.
	// Connections from other networks are closed. 4 of the 128 connections are reserved for each network. Empty: this
	// host only. Every host that may connect can read everything that is served.
	Allow []string `yaml:"allow" default:"" is:"network"`

	// Web configuration file in the format of the Prometheus exporters, for TLS and passwords. Empty: neither.
	WebConfig string `yaml:"webConfig" default:"" is:"path"`
}

// Paths says where quorumd keeps its own files.
type Paths struct {
	// What must survive a reboot.
	State string `yaml:"state" default:"/var/lib/quorumd" is:"path"`

	// What need not.
	Runtime string `yaml:"runtime" default:"/run/quorumd" is:"path"`
}
