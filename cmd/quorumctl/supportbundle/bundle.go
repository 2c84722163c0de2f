// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Package supportbundle packs what people need to see who are asked for help with a host: one bundle of small files. It
// promises:
//
//   - No secret goes into the bundle that can be told from other text: what stands in the files of keys, passwords and
//     tokens that the configuration names, and whatever looks like one (see [Redactor]).
//   - The bundle is bounded, and so is each of its files and the time that it takes to get it; what is cut off or
//     missing is said in the first file, [Contents].
//   - It changes nothing, and waits for nothing that hangs.
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

// The bounds of a bundle.
const (
	MaxFile   = 2 << 20  // bytes of one file
	MaxBundle = 16 << 20 // bytes of all of them
	// maxRead is what is read of a source to make one file of it: secrets are removed before it is cut.
	maxRead = 2 * MaxFile
	// patience is how long one source may take.
	patience = 10 * time.Second
	atOnce   = 4
)

// Contents is the name of the first file, which lists the others.
const Contents = "CONTENTS.txt"

// Source is where one file of the bundle comes from.
type Source struct {
	Name string
	// Get gives the text; with an error it may give what there is. It must end with the context.
	Get func(ctx context.Context) ([]byte, error)
	// End tells that the end of a text that is too long says more than its beginning.
	End bool
}

// File is one file of the bundle.
type File struct {
	Name    string
	Text    []byte
	Cut     int // bytes that were cut off
	Removed int // secrets
	Err     error
}

// Collect asks all sources, and gives what goes into the bundle, in their order.
func Collect(ctx context.Context, sources []Source, r *Redactor) []File {
	files := make([]File, len(sources))
	turn := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i, s := range sources {
		wait.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			files[i] = one(ctx, s, r)
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

func one(ctx context.Context, s Source, r *Redactor) File {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type answer struct {
		text []byte
		err  error
	}
	told := make(chan answer, 1)
	go func() {
		text, err := s.Get(ctx)
		told <- answer{text, err}
	}()
	var a answer
	select {
	case a = <-told:
	case <-ctx.Done(): // a disk that hangs is not waited for
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

// cut keeps a file to its bound.
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

// Missing counts the files of which there is an error.
func Missing(files []File) (n int) {
	for _, f := range files {
		if f.Err != nil {
			n++
		}
	}
	return n
}

// Write writes a bundle as a compressed archive, with all files below a directory of that name.
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

// contents lists what is in the bundle, and what is not.
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
