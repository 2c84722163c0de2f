// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package supportbundle collects the information that is needed to diagnose a host, in one bundle of small files. It
// promises:
//
//   - The bundle contains no secret that can be recognized: neither the contents of the key, password and token files
//     that the configuration names, nor text that looks like a secret (see [Redactor]).
//   - The sizes of the bundle and of each file, and the time to collect it, are limited. The first file, [Contents],
//     lists truncated and missing files.
//   - It changes nothing on the host, and abandons a source that hangs.
package supportbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"
	"time"

	"github.com/quorumd/quorumd/agent/durationfmt"
)

// The limits of a bundle.
const (
	MaxFile   = 2 << 20  // bytes of one file
	MaxBundle = 16 << 20 // bytes of all files together
	// maxRead limits how much of a file or of a program's output is kept. It is larger than MaxFile because secrets are
	// removed before the text is truncated.
	maxRead = 2 * MaxFile
	// patience is the timeout of one source.
	patience = 10 * time.Second
	atOnce   = 4
)

// Contents is the name of the first file, which lists the others.
const Contents = "CONTENTS.txt"

// Source provides one file of the bundle.
type Source struct {
	Name string
	// Get returns the text; with an error, it may return a part of the text. It should return when the context ends.
	Get func(ctx context.Context) ([]byte, error)
	// End keeps the end of a text that is too long, instead of its beginning.
	End bool
}

// File is one file of the bundle.
type File struct {
	Name    string
	Text    []byte
	Cut     int // bytes removed from a text that was too long
	Removed int // number of secrets removed
	Err     error
}

// Collect reads all sources and returns the files of the bundle, in the same order.
func Collect(ctx context.Context, sources []Source, r *Redactor) []File {
	files := make([]File, len(sources))
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i, s := range sources {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			files[i] = collectOne(ctx, s, r)
		})
	}
	wait.Wait()
	left := MaxBundle
	for i := range files {
		files[i].cut(min(left, MaxFile), sources[i].End)
		left -= len(files[i].Text)
	}
	return files
}

// collectOne reads one source and removes the secrets.
func collectOne(ctx context.Context, s Source, r *Redactor) File {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type answer struct {
		text []byte
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		text, err := s.Get(ctx)
		answered <- answer{text, err}
	}()
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done(): // do not wait for a source on a hanging disk
		a.err = fmt.Errorf("no answer within %s", durationfmt.Text(patience))
	}
	f := File{Name: s.Name, Err: a.err}
	if a.err != nil {
		clean, _ := r.Clean([]byte(a.err.Error()))
		f.Err = errors.New(string(clean))
	}
	f.Text, f.Removed = r.Clean(a.text)
	return f
}

// cut truncates a text that has more bytes than most, and keeps its end if end is set.
func (f *File) cut(most int, end bool) {
	if f.Cut = len(f.Text) - most; f.Cut <= 0 {
		f.Cut = 0
		return
	}
	if end {
		f.Text = f.Text[f.Cut:]
		return
	}
	f.Text = f.Text[:most]
}

// Missing counts the files with an error.
func Missing(files []File) (n int) {
	for _, f := range files {
		if f.Err != nil {
			n++
		}
	}
	return n
}

// Write writes a bundle as a compressed tar archive, with all files in the directory dir.
func Write(w io.Writer, dir string, files []File, at time.Time) error {
	packed := gzip.NewWriter(w)
	archive := tar.NewWriter(packed)
	all := append([]File{{Name: Contents, Text: contents(files)}}, files...)
	for _, f := range all {
		if f.Err != nil && len(f.Text) == 0 {
			continue
		}
		err := archive.WriteHeader(&tar.Header{
			Name: path.Join(dir, f.Name), Mode: 0o600, Size: int64(len(f.Text)), ModTime: at, Format: tar.FormatPAX,
		})
		if err != nil {
			return err
		}
		if _, err := archive.Write(f.Text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), packed.Close())
}

// contents returns a list of the files in the bundle and of the missing files.
func contents(files []File) []byte {
	var b bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&b, "%-28s %8d bytes", f.Name, len(f.Text))
		if f.Cut > 0 {
			fmt.Fprintf(&b, ", %d bytes cut off", f.Cut)
		}
		if f.Removed > 0 {
			fmt.Fprintf(&b, ", %d secrets removed", f.Removed)
		}
		if f.Err != nil {
			fmt.Fprintf(&b, ", missing: %v", f.Err)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}
