// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestEndlessListingIsNotReadIntoMemory(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<ListBucketResult><IsTruncated>false</IsTruncated>")
		object := fmt.Sprintf("<Contents><Key>backups/prod/%s</Key></Contents>", strings.Repeat("x", 32<<10))
		for sent.Load() < 64<<20 {
			n, err := io.WriteString(w, object)
			if sent.Add(int64(n)); err != nil {
				return // the client has stopped reading
			}
		}
		_, _ = io.WriteString(w, "</ListBucketResult>")
	}))
	t.Cleanup(server.Close)
	s, err := OpenS3(S3Options{
		Endpoint: &url.URL{Scheme: "http", Host: strings.TrimPrefix(server.URL, "http://")}, Bucket: testbed.S3Bucket,
		Prefix: "backups", Cluster: "prod", Region: "us-east-1", Credentials: testbed.S3Credentials(t, "secret"),
	})
	must(t, err)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	if _, err := s.List(t.Context()); err == nil || !strings.Contains(err.Error(), "has more than 4194304 bytes") {
		t.Errorf("listed: %v", err)
	}
	if sent.Load() >= 64<<20 {
		t.Errorf("%d bytes were taken", sent.Load())
	}
}
