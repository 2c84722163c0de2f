// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/quorumd/quorumd/agent/smallfile"
)

// partSize limits the memory for an upload of unknown length, because the upload holds one part at a time. With at most
// 10,000 parts, a snapshot can be up to 156 GiB.
const partSize = 16 << 20

// tries is how many times a request is tried if it fails for a transient reason.
const tries = 3

// maxCredentials limits the size of the credentials file, and maxCAs that of the CA file, in bytes.
const (
	maxCredentials = 16 << 10
	maxCAs         = 1 << 20
)

// S3Options configure access to an S3-compatible store.
type S3Options struct {
	Endpoint    *url.URL // scheme, host and port
	Bucket      string   // must exist
	Prefix      string   // prefix of all object names, before the cluster's name; may be empty
	Cluster     string
	Region      string // if empty, the client asks the store
	Credentials string // path of the file with the keys
	CA          string // path of the CA certificates; if empty, the system's CAs
}

// S3 is a store with the S3 protocol.
type S3 struct {
	client *minio.Core
	bucket string
	prefix string
	file   string // the file with the credentials, for errors
}

// OpenS3 opens the store of a cluster. It reads the files named in the options, and does not connect yet.
func OpenS3(o S3Options) (*S3, error) {
	cannot := func(err error) error { return fmt.Errorf("cannot use the store %s: %w", o.Endpoint.Host, err) }
	key, secret, err := readCredentials(o.Credentials)
	if err != nil {
		return nil, cannot(fmt.Errorf("credentials file %s: %w", o.Credentials, err))
	}
	secure := o.Endpoint.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, cannot(err)
	}
	transport.MaxResponseHeaderBytes = maxHeader
	if o.CA != "" {
		if transport.TLSClientConfig.RootCAs, err = readCAs(o.CA); err != nil {
			return nil, cannot(fmt.Errorf("CA file %s: %w", o.CA, err))
		}
	}
	client, err := minio.NewCore(o.Endpoint.Host, &minio.Options{
		Creds: credentials.NewStaticV4(key, secret, ""), Secure: secure, Region: o.Region,
		Transport:  boundedAnswers{transport},
		MaxRetries: tries,
	})
	if err != nil {
		return nil, cannot(err)
	}
	prefix := o.Cluster + "/"
	if o.Prefix != "" {
		prefix = o.Prefix + "/" + prefix
	}
	return &S3{client: client, bucket: o.Bucket, prefix: prefix, file: o.Credentials}, nil
}

const (
	maxHeader = 64 << 10 // the header contains an object's metadata
	// maxAnswer limits an answer that is read into memory, such as a page of a listing: 1000 objects with names of up
	// to 1 KiB each.
	maxAnswer = 4 << 20
)

// boundedAnswers limits all answers of a store except for the contents of objects, which are streamed.
type boundedAnswers struct{ http.RoundTripper }

func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err != nil ||
		r.Method == http.MethodGet && r.URL.RawQuery == "" && answer.StatusCode < http.StatusMultipleChoices {
		return answer, err
	}
	answer.Body = &boundedBody{answer.Body, maxAnswer}
	return answer, nil
}

// boundedBody fails beyond its limit.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("an answer from the store has more than %d bytes", maxAnswer)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Get opens an object.
func (s *S3) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, _, _, err := s.client.GetObject(ctx, s.bucket, s.prefix+name, minio.GetObjectOptions{})
	return r, s.explain(err)
}

// List returns the objects of the cluster.
func (s *S3) List(ctx context.Context) ([]Object, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // stops the listing if not all of it is read
	var all []Object
	for o := range s.client.Client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix}) {
		if o.Err != nil {
			return nil, s.explain(o.Err)
		}
		if all = append(all, Object{
			Name: strings.TrimPrefix(o.Key, s.prefix), Size: o.Size, Modified: o.LastModified,
		}); len(all) > MaxObjects {
			return nil, fmt.Errorf("the bucket %s holds more than %d objects below %s", s.bucket, MaxObjects, s.prefix)
		}
	}
	return all, ctx.Err()
}

// Put writes an object of unknown length in parts. If it fails, it tries to remove the parts.
func (s *S3) Put(ctx context.Context, name string, content io.Reader) error {
	_, err := s.client.Client.PutObject(ctx, s.bucket, s.prefix+name, content, -1, minio.PutObjectOptions{
		PartSize: partSize, NumThreads: 1, ContentType: "application/octet-stream",
	})
	if err != nil {
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandon)
		defer cancel()
		_ = s.client.RemoveIncompleteUpload(again, s.bucket, s.prefix+name) // best effort
		return s.explain(err)
	}
	return nil
}

// PutIfAbsent passes the object's length to the library, which would otherwise not send the condition.
func (s *S3) PutIfAbsent(ctx context.Context, name string, content []byte) error {
	o := minio.PutObjectOptions{DisableMultipart: true, ContentType: "application/octet-stream"}
	o.SetMatchETagExcept("*")
	_, err := s.client.Client.PutObject(ctx, s.bucket, s.prefix+name, bytes.NewReader(content), int64(len(content)), o)
	if minio.ToErrorResponse(err).Code == minio.PreconditionFailed && s.holds(ctx, name, content) {
		return nil // the answer to the first try was lost
	}
	return s.explain(err)
}

// Replace overwrites an object, which the store does atomically.
func (s *S3) Replace(ctx context.Context, name string, content []byte) error {
	o := minio.PutObjectOptions{DisableMultipart: true, ContentType: "application/octet-stream"}
	_, err := s.client.Client.PutObject(ctx, s.bucket, s.prefix+name, bytes.NewReader(content), int64(len(content)), o)
	return s.explain(err)
}

// holds reports whether an object exists with exactly the given content.
func (s *S3) holds(ctx context.Context, name string, content []byte) bool {
	r, err := s.Get(ctx, name)
	if err != nil {
		return false
	}
	defer r.Close()
	there, err := io.ReadAll(io.LimitReader(r, int64(len(content))+1))
	return err == nil && bytes.Equal(there, content)
}

// Delete removes an object.
func (s *S3) Delete(ctx context.Context, name string) error {
	err := s.client.RemoveObject(ctx, s.bucket, s.prefix+name, minio.RemoveObjectOptions{})
	if err = s.explain(err); errors.Is(err, ErrNoSnapshot) {
		return nil
	}
	return err
}

// explain explains an error that the store returned. It does not change any other error.
func (s *S3) explain(err error) error {
	answer, is := errors.AsType[minio.ErrorResponse](err)
	if !is {
		return err
	}
	switch answer.Code {
	case minio.NoSuchKey:
		return ErrNoSnapshot
	case minio.NoSuchBucket:
		return fmt.Errorf("the store has no bucket %s: create it, or correct backup.store.s3.bucket", s.bucket)
	case minio.PreconditionFailed:
		return errors.New("the store already has an object of that name")
	case minio.AccessDenied, "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return fmt.Errorf("the store refuses the keys in %s (%s): use keys that may read, write, list and delete "+
			"objects in the bucket %s", s.file, answer.Code, s.bucket)
	case "RequestTimeTooSkewed":
		return fmt.Errorf("the store's clock and this host's differ by too much (%s; it is %s here): correct the "+
			"wrong clock", answer.Code, time.Now().UTC().Format(time.RFC3339))
	case "InsufficientStorage", "QuotaExceeded":
		return fmt.Errorf("the store is full (%s): make room in the bucket %s, or keep fewer snapshots (backup.keep)",
			answer.Code, s.bucket)
	}
	return fmt.Errorf("the store answers %s: %w", answer.Code, err)
}

// readCredentials reads the two keys from a file. Its errors do not contain the file's content.
func readCredentials(path string) (key, secret string, err error) {
	text, err := smallfile.ReadSecret(path, maxCredentials)
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, "=")
		switch strings.TrimSpace(name) {
		case "aws_access_key_id":
			key = strings.TrimSpace(value)
		case "aws_secret_access_key":
			secret = strings.TrimSpace(value)
		}
	}
	if key == "" || secret == "" {
		return "", "", errors.New("it must hold the lines aws_access_key_id = KEY and aws_secret_access_key = SECRET")
	}
	return key, secret, nil
}

func readCAs(path string) (*x509.CertPool, error) {
	text, err := smallfile.Read(path, maxCAs)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("it contains no certificate")
	}
	return pool, nil
}
