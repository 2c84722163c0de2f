// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	privateDir  = 0o700
	privateFile = 0o600
	sharedFile  = 0o640
	sharedDir   = os.ModeSetgid | 0o770
	// unfinished is the prefix of files that are still being written. The package's List reports them as orphans.
	unfinished = ".unfinished-"
)

// Directory is a store in a directory, local or mounted.
type Directory struct {
	root   *os.Root
	path   string
	shared bool // members of the group that owns the directory may write, too
	space  func(dir string) (Space, error)
}

// OpenDirectory opens the store of a cluster below dir. The directory must exist, so that no snapshot is written below
// a mount point whose file system is not mounted; only the cluster's own directory is created in it. dir must belong to
// the user of this process or to root, and other users may write there only as members of a group of this process (mode
// 2770). Such a group shares the store between hosts on which quorumd's user has different IDs. The cluster's directory
// may then belong to the user of another host.
func OpenDirectory(dir, cluster string) (*Directory, error) {
	cannot := func(err error) error { return fmt.Errorf("cannot use the directory %s: %w", dir, err) }
	if !filepath.IsLocal(cluster) || strings.ContainsRune(cluster, filepath.Separator) {
		return nil, cannot(fmt.Errorf("%q is not a valid directory name", cluster))
	}
	top, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: mount its file system, or create it: install -d -m 0700 -o quorumd %s", err, dir)
	}
	if err != nil {
		return nil, cannot(withRemedy(err, dir))
	}
	defer func() { _ = top.Close() }() // opened read-only
	shared, err := checkDirectory(top, false)
	if err != nil {
		return nil, cannot(err)
	}
	if err := makeIn(top, cluster, shared); err != nil {
		return nil, cannot(withRemedy(err, dir))
	}
	root, err := top.OpenRoot(cluster)
	if err != nil {
		return nil, cannot(err)
	}
	if shared, err = checkDirectory(root, shared); err != nil {
		return nil, cannot(errors.Join(err, root.Close()))
	}
	return &Directory{root: root, path: filepath.Join(dir, cluster), shared: shared, space: SpaceOf}, nil
}

// makeIn creates the directory of a cluster if it is missing. If the parent directory is shared, the new directory gets
// the parent's group and is shared, too.
func makeIn(top *os.Root, cluster string, shared bool) error {
	mode := os.FileMode(privateDir)
	if shared {
		mode = sharedDir.Perm() // the kernel adds the setgid bit; the sandbox rejects an explicit request for it
	}
	err := top.Mkdir(cluster, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil || !shared {
		return err
	}
	made, err := top.Stat(cluster)
	if err == nil && made.Mode()&(os.ModePerm|os.ModeSetgid) != sharedDir { // the umask may have cleared bits
		err = top.Chmod(cluster, sharedDir)
	}
	return err
}

// Close closes the directory.
func (d *Directory) Close() error { return d.root.Close() }

// withRemedy adds the remedy to an error about missing write access to a directory.
func withRemedy(err error, dir string) error {
	switch {
	case errors.Is(err, syscall.EROFS): // the systemd unit makes paths outside ReadWritePaths= read-only
		return fmt.Errorf("%w: mount it read-write, and add ReadWritePaths=%s to the service in a drop-in "+
			"(systemctl edit quorumd)", err, dir)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: let the user that quorumd runs as write there: chown quorumd %s", err, dir)
	}
	return err
}

// checkDirectory returns an error if others could change the content of a directory, and reports whether a group of
// this process shares it. A directory inside a shared one may belong to the user of another host.
func checkDirectory(root *os.Root, inShared bool) (shared bool, err error) {
	info, err := root.Stat(".")
	if err != nil {
		return false, err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return false, fmt.Errorf("the owner of %s is unknown", root.Name())
	}
	groups, err := os.Getgroups()
	if err != nil {
		return false, err
	}
	mine := int(owner.Gid) == os.Getegid() || slices.Contains(groups, int(owner.Gid))
	shared = mine && info.Mode()&0o020 != 0 && info.Mode()&os.ModeSetgid != 0
	const forAll = ", or share it with a group that quorumd belongs to on all hosts: chgrp GROUP, chmod 2770"
	switch {
	case owner.Uid != 0 && int(owner.Uid) != os.Geteuid() && (!shared || !inShared):
		return false, fmt.Errorf("%s belongs to another user: chown it to the user that quorumd runs as%s", root.Name(),
			strings.Replace(forAll, "chgrp", "chown root, chgrp", 1))
	case info.Mode()&0o002 != 0, info.Mode()&0o020 != 0 && !shared:
		return false, fmt.Errorf("%s is writable by users other than its owner: chmod go-w %s%s", root.Name(),
			root.Name(), forAll)
	}
	return shared, nil
}

// Get opens an object.
func (d *Directory) Get(_ context.Context, name string) (io.ReadCloser, error) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoSnapshot
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// List returns all regular files, including unfinished ones.
func (d *Directory) List(ctx context.Context) ([]Object, error) {
	dir, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var all []Object
	for {
		entries, err := dir.ReadDir(1000)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		for _, entry := range entries {
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) { // another agent has just removed the file
				continue
			}
			if err != nil {
				return nil, err
			}
			if info.Mode().IsRegular() {
				all = append(all, Object{Name: entry.Name(), Size: info.Size(), Modified: info.ModTime()})
			}
		}
		if len(all) > MaxObjects {
			return nil, fmt.Errorf("%s holds more than %d files", d.path, MaxObjects)
		}
	}
}

// Put writes a file. It fails if the file system would have too little free space left, because etcd may use the same
// file system.
func (d *Directory) Put(ctx context.Context, name string, content io.Reader) error {
	return d.put(ctx, name, &room{
		r: content, dir: d.path, space: d.space,
		remedy: "free some space, or set backup.store.directory to a directory on another file system",
	})
}

// put writes a temporary file completely, then links it to the object's name.
func (d *Directory) put(ctx context.Context, name string, content io.Reader) error {
	temporary := unfinished + rand.Text() // unique, even if another process writes the same name
	if err := d.write(ctx, temporary, content); err != nil {
		return errors.Join(err, d.Delete(ctx, temporary))
	}
	// A link fails if the name exists, on network file systems too. A rename would replace the file.
	linkErr := d.root.Link(temporary, name)
	removeErr := d.Delete(ctx, temporary)
	return errors.Join(linkErr, removeErr, d.sync())
}

// PutIfAbsent writes a small file like Put, but does not check the free space.
func (d *Directory) PutIfAbsent(ctx context.Context, name string, content []byte) error {
	return d.put(ctx, name, strings.NewReader(string(content)))
}

// Replace writes the whole file before it replaces the previous one.
func (d *Directory) Replace(ctx context.Context, name string, content []byte) error {
	temporary := unfinished + rand.Text()
	err := d.write(ctx, temporary, strings.NewReader(string(content)))
	if err == nil {
		err = d.root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, d.Delete(ctx, temporary))
	}
	return d.sync()
}

func (d *Directory) write(ctx context.Context, name string, content io.Reader) error {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, privateFile)
	if err == nil && d.shared { // the umask may have cleared bits
		if err = f.Chmod(sharedFile); err != nil {
			_ = f.Close() // an error does not matter, because the file is empty
		}
	}
	if err != nil {
		return fmt.Errorf("cannot write into %s: %w", d.path, withRemedy(err, d.path))
	}
	to := &writeBehind{file: f, forget: true} // the read-back must come from the disk
	_, err = io.Copy(to, whileWanted{ctx, content})
	return errors.Join(err, to.sync(), f.Close())
}

// sync makes new and removed names durable.
func (d *Directory) sync() error {
	dir, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Delete removes a file.
func (d *Directory) Delete(_ context.Context, name string) error {
	if err := d.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// whileWanted is a reader that fails when the context ends.
type whileWanted struct {
	ctx context.Context //nolint:containedctx // lives as long as one copy
	r   io.Reader
}

func (w whileWanted) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.r.Read(p)
}
