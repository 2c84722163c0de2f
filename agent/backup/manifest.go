// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/quorumd/quorumd/agent/record"
)

// Version is the version of the manifests that this package writes, and the only one that it reads.
const Version = 1

// maxManifest bounds a manifest, in bytes.
const maxManifest = 64 << 10

// ErrNoSnapshot means that the store holds no snapshot or object of that name, or no snapshot at all.
var ErrNoSnapshot = errors.New("no such snapshot")

// Manifest describes a snapshot.
type Manifest struct {
	Version int    `json:"version"`
	Name    string `json:"name"` // name of the snapshot's two objects, without extensions

	Cluster     string    `json:"cluster"`     // the cluster's name in quorumd
	ClusterID   string    `json:"clusterID"`   // the cluster's ID in etcd, in hexadecimal
	Member      string    `json:"member"`      // ID of the member that sent the snapshot, in hexadecimal
	Host        string    `json:"host"`        // name of the host that saved the snapshot
	EtcdVersion string    `json:"etcdVersion"` // etcd version of the member
	TakenAt     time.Time `json:"takenAt"`     // by the clock of the host

	record.Contents

	Size         int64    `json:"size"`         // size of the database with its checksum, in bytes
	StoredSize   int64    `json:"storedSize"`   // size of the data object, in bytes
	StoredSHA256 string   `json:"storedSha256"` // hash of the data object, in hexadecimal
	EncryptedTo  []string `json:"encryptedTo,omitempty"`

	// SHA256 is the hash of the manifest itself as stored, in hexadecimal.
	SHA256 string `json:"-"`
}

// Encrypted reports whether an identity is needed to read the data.
func (m Manifest) Encrypted() bool { return len(m.EncryptedTo) > 0 }

// DataName returns the name of the data object.
func (m Manifest) DataName() string { return m.Name + dataEnding }

// ManifestName returns the name of the manifest object.
func (m Manifest) ManifestName() string { return m.Name + manifestEnding }

// check returns an error if this package cannot have written the manifest under the given name.
func (m Manifest) check(name string) error {
	sum, err := hex.DecodeString(m.StoredSHA256)
	switch {
	case m.Version != Version:
		return fmt.Errorf("the manifest has version %d, but this quorumd reads only version %d", m.Version, Version)
	case m.Name != name:
		return fmt.Errorf("%w: its manifest is that of %q", ErrReplaced, m.Name)
	case !strings.HasPrefix(name, m.namePrefix()):
		return fmt.Errorf("%w: its manifest is that of a snapshot whose name begins with %q", ErrReplaced,
			m.namePrefix())
	case err != nil || len(sum) != 32:
		return errors.New("the checksum in the manifest is invalid")
	case m.Size <= 0 || m.StoredSize <= 0 || m.Revision < 0 || m.Keys < 0:
		return errors.New("the sizes, revision or number of keys in the manifest are invalid")
	}
	return nil
}

// namePrefix returns the part of the snapshot's name that the manifest determines.
func (m Manifest) namePrefix() string {
	return fmt.Sprintf("%019d-%s-%s-", m.Revision, m.TakenAt.UTC().Format("20060102T150405Z"), m.Host)
}

func hexSum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func (m Manifest) encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil && len(text) >= maxManifest {
		err = fmt.Errorf("its manifest has %d bytes; the limit is %d", len(text), maxManifest)
	}
	return append(text, '\n'), err
}

// nameOf matches the names of snapshots.
var nameOf = regexp.MustCompile(`^[0-9]{19}-[0-9]{8}T[0-9]{6}Z-[A-Za-z0-9._-]{1,255}-[0-9a-f]{16}$`)

// ReadManifest reads the manifest of a snapshot by name. It returns an error if this package cannot have written it,
// and [ErrNoSnapshot] if there is none.
func ReadManifest(ctx context.Context, store Source, name string) (Manifest, error) {
	if !nameOf.MatchString(name) {
		return Manifest{}, fmt.Errorf("%w: %.300q is not the name of a snapshot", ErrNoSnapshot, name)
	}
	m, err := readManifest(ctx, store, name)
	if err != nil {
		return Manifest{}, fmt.Errorf("cannot read the manifest of %s: %w", name, err)
	}
	return m, nil
}

func readManifest(ctx context.Context, store Source, name string) (Manifest, error) {
	r, err := store.Get(ctx, name+manifestEnding)
	if err != nil {
		return Manifest{}, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return Manifest{}, err
	}
	if len(text) > maxManifest {
		return Manifest{}, fmt.Errorf("it has more than %d bytes", maxManifest)
	}
	m := Manifest{SHA256: hexSum(text)}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&m); err != nil {
		return Manifest{}, err
	}
	return m, m.check(name)
}
