// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"archive/tar"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// files maps the names of a host's files to their contents.
type files map[string][]byte

// caFiles lists the files with the CAs that a host trusts.
func caFiles() []string { return []string{caCert, peerCACert} }

// fileNames lists the files of a bundle, in order.
func fileNames() []string {
	names := caFiles()
	for _, l := range leaves() {
		names = append(names, l.name+".crt", l.name+".key")
	}
	return names
}

// modeOf returns the mode of a file, before an installation allows a group to read it.
func modeOf(name string) fs.FileMode {
	if strings.HasSuffix(name, ".key") {
		return 0o600
	}
	return 0o644
}

// pack returns a tar archive of the files with these names.
func (f files) pack(names []string, now time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range names {
		err := w.WriteHeader(&tar.Header{
			Name: name, Mode: int64(modeOf(name)), Size: int64(len(f[name])), ModTime: now.Truncate(time.Second),
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil { // Close writes the end-of-archive marker
		return nil, err
	}
	return out.Bytes(), nil
}

// readBundle reads a bundle that belongs to one of these users. It refuses a bundle that other users can read, because
// it contains keys.
func readBundle(path string, users []int) (files, error) {
	data, info, err := readBounded(path, maxBundle)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, mistyped("create one with 'quorumctl pki host', and copy it here", "there is no %s", path)
	}
	if err != nil {
		return nil, err
	}
	if err := checkOwner(path, info, users); err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, refused("create a new one with 'quorumctl pki renew'; if no one else had access, chmod 0600 "+path,
			"%s has mode %04o: other users may have read the keys in it", path, mode)
	}
	f, err := unpack(data, fileNames())
	if err != nil {
		return nil, refused("copy it here again; 'quorumctl pki host' and 'renew' create bundles",
			"%s is not a bundle: %v", path, err)
	}
	return f, nil
}

// unpack reads a tar that must contain exactly these files, each once.
func unpack(data []byte, names []string) (files, error) {
	f := files{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if _, twice := f[h.Name]; twice || h.Typeflag != tar.TypeReg || !slices.Contains(names, h.Name) ||
			h.Size > maxFile {
			return nil, fmt.Errorf("unexpected entry %.40q", h.Name)
		}
		if f[h.Name], err = io.ReadAll(io.LimitReader(r, maxFile)); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if len(f[name]) == 0 {
			return nil, fmt.Errorf("%s is missing", name)
		}
	}
	return f, nil
}

// host identifies the host of a bundle, from its certificates.
type host struct {
	name   string
	peer   *x509.Certificate
	server *x509.Certificate
}

// check verifies that the files match each other, and that each certificate is valid now and for its purpose.
func (f files) check(now time.Time) (host, error) {
	roots := map[string]*x509.CertPool{}
	for _, file := range caFiles() {
		trusted, err := parseCertificates(file, f[file])
		if err != nil {
			return host{}, refused("create a new bundle", "%v", err)
		}
		roots[file] = x509.NewCertPool()
		for _, c := range trusted {
			roots[file].AddCert(c)
		}
	}
	certs := map[string]*x509.Certificate{}
	for _, l := range leaves() {
		file := l.name + ".crt"
		pair, err := tls.X509KeyPair(f[file], f[l.name+".key"])
		if err != nil {
			return host{}, refused("create a new bundle", "%s does not match %s.key: %s", file, l.name,
				strings.TrimPrefix(err.Error(), "tls: "))
		}
		if err := inTime(file, pair.Leaf, now); err != nil {
			return host{}, err
		}
		// one call per usage: Verify accepts a certificate that has any one of the usages
		for _, usage := range l.usages {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{
				Roots: roots[l.ca], CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage},
			}); err != nil {
				return host{}, refused("create a new bundle with 'quorumctl pki renew'", "%s cannot be used: %s", file,
					strings.TrimPrefix(err.Error(), "x509: "))
			}
		}
		certs[l.name] = pair.Leaf
	}
	return host{certs["peer"].Subject.CommonName, certs["peer"], certs["server"]}, nil
}
