// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package config

import "time"

// Backup describes snapshots of etcd's database.
type Backup struct {
	// How old the newest snapshot may get before the next one is taken; off: only when quorumctl snapshot save asks.
	Every Grace `yaml:"every" default:"off"`

	// How old the last proof of a restore may get: a host fetches the newest snapshot, has an etcd of its own serve it
	// that no client reaches, compares all keys with what was saved, and removes it. A spare does it, else a standby,
	// else a voter that does not lead, with room below paths.state: twice the database, and four times beside a
	// member's data. off: only when quorumctl snapshot drill asks.
	Drill Grace `yaml:"drill" default:"off"`

	// Hours in which snapshots are taken, as in maintenance.windows. Empty: at any time.
	Windows []string `yaml:"windows" default:"" is:"window"`

	// How many bytes in a second at most are read, looked at and written while a snapshot is taken or verified: the
	// disk may be etcd's, too. Each is gone through five times: 1 GiB takes up to 80 s at 64MiB. A restore test is held
	// to it only beside a member's data.
	Rate Size `yaml:"rate" default:"64MiB"`

	// Which snapshots quorumctl snapshot prune, and the schedule after each new one, leave where they are. The last one
	// that was verified always stays, and the last one that was proven to restore.
	Keep BackupKeep `yaml:"keep"`

	// Where they are kept.
	Store BackupStore `yaml:"store"`

	// Recipients of age (https://age-encryption.org) to whom snapshots are encrypted. Empty: they are not encrypted,
	// and whoever reads the store reads all of etcd.
	EncryptTo []string `yaml:"encryptTo" default:"" is:"recipient"`

	// File of age's identities to read encrypted snapshots with, for the service's own user alone: chmod 0400. Only
	// who verifies, drills or restores needs it. Empty: encrypted snapshots cannot be read on this host.
	IdentityFile string `yaml:"identityFile" default:"" is:"path"`
}

// BackupKeep says which snapshots are kept.
type BackupKeep struct {
	// The newest so many are kept.
	Count int `yaml:"count" default:"7" unit:"snapshots" min:"1" max:"5000"`

	// And all that are younger. 0s: none for its age alone.
	Age time.Duration `yaml:"age" default:"168h" min:"0s"`
}

// BackupStore says where snapshots are kept: in a directory, or in an S3-compatible store.
type BackupStore struct {
	// Directory, on this host or mounted here. It must be there, belong to the service's own user, and be closed to
	// others for writing; the service must be let write there: ReadWritePaths= in a drop-in of its unit. Empty: none.
	Directory string `yaml:"directory" default:"" is:"path"`

	// S3-compatible store; not beside directory. Remove the # of these lines.
	S3 *S3 `yaml:"s3"`
}

// S3 says how an S3-compatible store is reached.
type S3 struct {
	// URL of the store, with its port. Needed.
	Endpoint string `yaml:"endpoint" default:"" example:"https://s3.example.com:443" is:"url"`

	// Bucket. Needed, and it must be there.
	Bucket string `yaml:"bucket" default:"" example:"etcd-snapshots" is:"id"`

	// What the names of all objects begin with, before the cluster's name. Empty: nothing.
	Prefix string `yaml:"prefix" default:"" is:"name"`

	// Region. Empty: the store is asked for it.
	Region string `yaml:"region" default:"" is:"id"`

	// File with the lines aws_access_key_id = KEY and aws_secret_access_key = SECRET, for the service's own user alone:
	// chmod 0400. Needed. It is read again for each snapshot.
	CredentialsFile string `yaml:"credentialsFile" default:"" example:"/etc/quorumd/s3-credentials" is:"path"`

	// Certificate authorities that signed the store's certificate, PEM. Empty: those of the system.
	CA string `yaml:"ca" default:"" is:"path"`
}
