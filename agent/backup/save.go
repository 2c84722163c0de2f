// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
)

// abandon limits the time for the cleanup after a failure.
const abandon = 20 * time.Second

// Stream is a snapshot as a member of etcd sends it: the database, followed by its SHA-256.
type Stream struct {
	io.Reader

	Cluster, ClusterID, Member, Host, EtcdVersion string // as in Manifest

	Size int64 // size in bytes, as the member reports it; 0 if unknown
}

// Options configure how a snapshot is saved, verified or restored.
type Options struct {
	Spool      string      // directory on this host with space for the database; no temporary file is left there
	Recipients Recipients  // keys to encrypt to
	Identities Identities  // keys to decrypt with
	Now        time.Time   // when the snapshot is taken, for its name and manifest
	Progress   func(int64) // called with the number of bytes processed since the last call; may be nil
	Remains    func(int64) // called with the number of bytes left, -1 if unknown; may be nil

	Space func(dir string) (Space, error) // returns the free space; nil for [SpaceOf]
}

func (o Options) progress() func(int64) {
	if o.Progress != nil {
		return o.Progress
	}
	return func(int64) {}
}

// remains reports how many bytes are left.
func (o Options) remains(n int64) {
	if o.Remains != nil {
		o.Remains(n)
	}
}

// How many times a save processes the database, for the expected total of the progress.
const (
	inspections = 2
	storings    = 2 // once to write the snapshot, once to read it back
)

// Save saves a snapshot to the store and returns its manifest. It succeeds only if the stored bytes were read back and
// are identical to the written ones.
func Save(ctx context.Context, store Store, from Stream, o Options) (Manifest, error) {
	m, err := save(ctx, store, from, o)
	if err != nil {
		return Manifest{}, fmt.Errorf("cannot save a snapshot: %w", err)
	}
	return m, nil
}

func save(ctx context.Context, store Store, from Stream, o Options) (Manifest, error) {
	database, whole, err := newSpool(o, from.Size, from, "")
	if err != nil {
		return Manifest{}, err
	}
	defer database.Close()
	o.remains((1 + inspections + storings) * from.Size)
	if err := database.fill(ctx, whole, o.progress()); err != nil {
		return Manifest{}, err
	}
	o.remains((inspections + storings) * database.size)
	m := Manifest{
		Version: Version, Cluster: from.Cluster, ClusterID: from.ClusterID, Member: from.Member, Host: from.Host,
		EtcdVersion: from.EtcdVersion, TakenAt: o.Now.UTC().Truncate(time.Second), Size: database.size,
		EncryptedTo: o.Recipients.names,
	}
	if m.Contents, err = database.inspect(ctx, o.progress()); err != nil {
		return Manifest{}, err
	}
	o.remains(storings * database.size)
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	m.Name = fmt.Sprintf("%s%x", m.namePrefix(), random)
	if !nameOf.MatchString(m.Name) {
		return Manifest{}, fmt.Errorf("%.300q cannot be an object's name, because of the host's name in it", m.Name)
	}
	if err := put(ctx, store, &m, database, o); err != nil {
		// The cleanup has its own time limit, because the context may have ended.
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandon)
		defer cancel()
		return Manifest{}, errors.Join(err, store.Delete(again, m.DataName()))
	}
	return m, nil
}

// put writes the data, reads it back, and writes the manifest.
func put(ctx context.Context, store Store, m *Manifest, database *spool, o Options) error {
	if _, err := database.Seek(0, io.SeekStart); err != nil {
		return err
	}
	stored := &counted{sum: sha256.New()}
	sealed, into := io.Pipe()
	sealing := make(chan struct{})
	go func() {
		defer close(sealing)
		into.CloseWithError(sealInto(into, metered{database, o.progress()}, o.Recipients))
	}()
	stored.r = sealed
	err := store.Put(ctx, m.DataName(), stored)
	sealed.CloseWithError(err) // ends the writer if Put did not read everything
	<-sealing
	if err != nil {
		return err
	}
	m.StoredSize, m.StoredSHA256 = stored.n, hex.EncodeToString(stored.sum.Sum(nil))
	o.remains(m.StoredSize)
	if err := readBack(ctx, store, *m, o.progress()); err != nil {
		return fmt.Errorf("cannot read back the written data: %w", err)
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	m.SHA256 = hexSum(text)
	return store.PutIfAbsent(ctx, m.ManifestName(), text)
}

func sealInto(w io.Writer, database io.Reader, to Recipients) error {
	sealed, err := seal(w, to)
	if err != nil {
		return err
	}
	_, err = io.Copy(sealed, database)
	return errors.Join(err, sealed.Close())
}

// readBack compares the stored bytes with the written ones.
func readBack(ctx context.Context, store Source, m Manifest, progress func(int64)) error {
	object, err := store.Get(ctx, m.DataName())
	if err != nil {
		return err
	}
	defer object.Close()
	stored := &counted{r: io.LimitReader(whileWanted{ctx, object}, m.StoredSize+1), sum: sha256.New()}
	if _, err := io.Copy(io.Discard, metered{stored, progress}); err != nil {
		return err
	}
	return (&opened{manifest: m, stored: stored}).storedWhole()
}

// metered reports the bytes read.
type metered struct {
	r        io.Reader
	progress func(int64)
}

func (t metered) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.progress(int64(n))
	return n, err
}
