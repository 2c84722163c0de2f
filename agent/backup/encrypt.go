// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/quorumd/quorumd/agent/smallfile"
)

// window limits the memory for compression and decompression, because the hosts also run etcd.
const window = 1 << 20

// Recipients are the keys that a snapshot is encrypted to. Without recipients, the snapshot is not encrypted.
type Recipients struct {
	all   []age.Recipient
	names []string // truncated hashes of the recipients, for the manifest
}

// ParseRecipients parses recipients as age writes them ("age1…").
func ParseRecipients(texts []string) (Recipients, error) {
	var r Recipients
	for _, text := range texts {
		one, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil || len(one) != 1 {
			return Recipients{}, fmt.Errorf("%.20q is not an age recipient; age-keygen -y FILE prints one", text)
		}
		sum := sha256.Sum256([]byte(text))
		r.all, r.names = append(r.all, one[0]), append(r.names, hex.EncodeToString(sum[:8]))
	}
	return r, nil
}

// ErrNoIdentity means that this host has no key for a snapshot. It does not mean that the snapshot is damaged.
var ErrNoIdentity = errors.New("this host has no identity to decrypt it")

// Identities decrypt snapshots. They are empty if no file of identities is configured.
type Identities []age.Identity

// maxIdentities limits a file of identities, in bytes.
const maxIdentities = 64 << 10

// ReadIdentities reads a file of identities as age-keygen writes it. Only its owner may have access. Errors do not
// contain its content.
func ReadIdentities(path string) (Identities, error) {
	text, err := smallfile.ReadSecret(path, maxIdentities)
	if err != nil {
		return nil, err
	}
	all, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		return nil, errors.New("it is not a file of age identities: create one with age-keygen")
	}
	return all, nil
}

// seal returns a writer that compresses and encrypts to w. The caller must close it.
func seal(w io.Writer, to Recipients) (io.WriteCloser, error) {
	var s sealing
	if len(to.all) > 0 {
		encrypted, err := age.Encrypt(w, to.all...)
		if err != nil {
			return nil, err
		}
		w, s.encrypted = encrypted, encrypted
	}
	var err error
	s.Encoder, err = zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window),
		zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithLowerEncoderMem(true))
	return s, err
}

type sealing struct {
	*zstd.Encoder

	encrypted io.Closer
}

func (s sealing) Close() error {
	err := s.Encoder.Close()
	if s.encrypted != nil {
		err = errors.Join(err, s.encrypted.Close())
	}
	return err
}

// unseal reverses seal.
func unseal(r io.Reader, encrypted bool, with Identities) (io.ReadCloser, error) {
	if encrypted {
		if len(with) == 0 {
			return nil, fmt.Errorf("it is encrypted, and %w: set backup.identityFile", ErrNoIdentity)
		}
		plain, err := age.Decrypt(r, with...)
		if _, is := errors.AsType[*age.NoIdentityMatchError](err); is {
			return nil, fmt.Errorf("it is encrypted, and %w: add a matching identity to backup.identityFile",
				ErrNoIdentity)
		}
		if err != nil {
			return nil, err
		}
		r = plain
	}
	expanded, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(8*window))
	if err != nil {
		return nil, err
	}
	return expanded.IOReadCloser(), nil
}
