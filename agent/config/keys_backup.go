// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "time"

// Backup describes snapshots of etcd's database.
type Backup struct {
	// Maximum age of the newest snapshot before the next one is taken. off: only quorumctl snapshot save takes one.
	Every Grace `yaml:"every" default:"off"`

	// Maximum age of the last restore test. A host fetches the newest snapshot, serves it from a separate etcd that no
	// client can reach, compares all keys with what was saved, and then deletes its copy. The best host is a spare,
	// then a standby, then a voter that does not lead. It needs free space below paths.state: twice the database, or
	// four times on the disk of a member's data. off: only on quorumctl snapshot test-restore.
	RestoreTest Grace `yaml:"restoreTest" default:"off"`

	// Hours in which snapshots are taken, as in maintenance.windows. Empty: at any time.
	Windows []string `yaml:"windows" default:"" is:"window"`

	// Maximum bytes per second while a snapshot is taken or verified, because it may share etcd's disk. Every byte
	// is processed five times: 1 GiB takes up to 80 s at 64MiB. The limit applies to a restore test only if it
	// shares the disk with a member's data.
	Rate Size `yaml:"rate" default:"64MiB"`

	// Which snapshots are kept by quorumctl snapshot prune, and by the schedule after each new snapshot. The last
	// snapshot that was verified and the last that passed a restore test are always kept.
	Keep BackupKeep `yaml:"keep"`

	// Where snapshots are stored.
	Store BackupStore `yaml:"store"`

	// age recipients (https://age-encryption.org) that snapshots are encrypted to. Empty: they are not encrypted,
	// and everyone who can read the store can read all of etcd.
	EncryptTo []string `yaml:"encryptTo" default:"" is:"recipient"`

	// File with age identities to decrypt snapshots. Only quorumd's user may read it: chmod 0400. Only hosts that
	// verify, test or restore snapshots need it. Empty: this host cannot read encrypted snapshots.
	IdentityFile string `yaml:"identityFile" default:"" is:"path"`
}

// BackupKeep selects the snapshots to keep.
type BackupKeep struct {
	// How many of the newest snapshots to keep.
	Count int `yaml:"count" default:"7" unit:"snapshots" min:"1" max:"5000"`

	// Snapshots younger than this are kept as well. 0s: none is kept because of its age.
	Age time.Duration `yaml:"age" default:"168h" min:"0s"`
}

// BackupStore is where snapshots are stored: a directory or an S3-compatible store.
type BackupStore struct {
	// Directory on this host or mounted here. It must exist, belong to quorumd's user or to root, and not be
	// writable by others, except by a group of quorumd's user that shares it (mode 2770). quorumd's unit must allow
	// writes to it: ReadWritePaths= in a drop-in. Empty: none.
	Directory string `yaml:"directory" default:"" is:"path"`

	// S3-compatible store, instead of directory. To use it, uncomment these lines.
	S3 *S3 `yaml:"s3"`
}

// S3 configures access to an S3-compatible store.
type S3 struct {
	// URL of the store, with its port. Required.
	Endpoint string `yaml:"endpoint" default:"" example:"https://s3.example.com:443" is:"url"`

	// Bucket. Required; it must exist.
	Bucket string `yaml:"bucket" default:"" example:"etcd-snapshots" is:"id"`

	// Prefix of all object names, before the cluster's name. Empty: none.
	Prefix string `yaml:"prefix" default:"" is:"name"`

	// Region. Empty: quorumd asks the store.
	Region string `yaml:"region" default:"" is:"id"`

	// File with the lines aws_access_key_id = KEY and aws_secret_access_key = SECRET. Only quorumd's user may read
	// it: chmod 0400. Required. quorumd reads it again for each snapshot.
	CredentialsFile string `yaml:"credentialsFile" default:"" example:"/etc/quorumd/s3-credentials" is:"path"`

	// CAs that signed the store's certificate, PEM. Empty: the system's CAs.
	CA string `yaml:"ca" default:"" is:"path"`
}
