// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestTextThatLooksLikeASecretIsRemoved(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"password: hunter22\n":                                                "password: [removed]\n",
		`"password": "hun\"ter", "name": "n1"`:                                `"password": "[removed]", "name": "n1"`,
		"ETCD_ROOT_PASSWORD='a b c' x":                                        "ETCD_ROOT_PASSWORD='[removed]' x",
		"etcd --auth-token hunter22 -":                                        "etcd --auth-token [removed] -",
		"aws_secret_access_key = hunter22":                                    "aws_secret_access_key = [removed]",
		"key AKIAIOSFODNN7EXAMPLE of":                                         "key [removed] of",
		"https://root:hunter22@n1:2379/v3":                                    "https://[removed]@n1:2379/v3",
		"https://hunter22@n1:2379/v3":                                         "https://[removed]@n1:2379/v3",
		"Authorization: Bearer hunter22":                                      "Authorization: [removed] [removed]",
		"# AGE-SECRET-KEY-1QQQQQQ here":                                       "# [removed] here",
		"jwt eyJhbGciOi.eyJzdWIi.c2ln end":                                    "jwt [removed] end",
		"a -----BEGIN EC PRIVATE KEY-----\nM\n-----END EC PRIVATE KEY----- b": "a [removed] b",
		"a -----BEGIN PRIVATE KEY-----\nMHc\n":                                "a [removed]",
		"MHc\nxyz\n-----END PRIVATE KEY----- b":                               "[removed] b",
		"tok ghp_16C7e42F292c6912E7710c838347Ae178B4a.":                       "tok [removed].",
		"glpat-ABCDEFGHIJKLMNOPQRST and xoxb-123456789012-abcdef":             "[removed] and [removed]",
		"hvs.CAESIJRMabcdefghijklmnop!":                                       "[removed]!",
		"GET https://hooks.slack.com/services/T/B/X":                          "GET https://hooks.slack.com/[removed]",
		"root:$6$saltsalt$abcdefghijk:19000:0":                                "root:[removed]:19000:0",
		"etcdctl --user root:hunter22 get a":                                  "etcdctl --user root:[removed] get a",
		"curl -u bob:hunter22 x":                                              "curl -u bob:[removed] x",
		"ETCDCTL_USER=root:hunter22":                                          "ETCDCTL_USER=root:[removed]",
		"GET /b?X-Amz-Signature=abcdef0123&x=1":                               "GET /b?X-Amz-Signature=[removed]&x=1",
		"-----BEGIN PGP PRIVATE KEY BLOCK-----\nM\n":                          "[removed]",
		"key AIzaSyA1234567890abcdefghijklmnopqrstuv of":                      "key [removed] of",
		// not secrets
		"-u quorumd.service: 3 lines": "-u quorumd.service: 3 lines", "costs $5 and $6": "costs $5 and $6",
		"passwordFile: /etc/quorumd/password": "passwordFile: /etc/quorumd/password",
		`"token": 4711`:                       `"token": 4711`,
		"http://n1:2379 is down":              "http://n1:2379 is down",
		"a token was refused":                 "a token was refused",
		`password: ""`:                        `password: ""`,
	} {
		got, _ := NewRedactor().Clean([]byte(text))
		if string(got) != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		again, n := NewRedactor().Clean(got)
		if !bytes.Equal(again, got) {
			t.Errorf("%q is cleaned again, %d times: %q", got, n, again)
		}
	}
}

func TestCommentsOfAConfigurationAreRemoved(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"# call bob\nmode: observe # hunter22\n":  "\nmode: observe\n",
		"a: \"x # y\" # z\n":                      "a: \"x # y\"\n",
		"a: 'it''s # y' # z":                      "a: 'it''s # y'",
		"a: it's # hunter22":                      "a: it's",
		"a: http://x/#frag\r\n  #b\r\n":           "a: http://x/#frag\r\n\r\n",
		"a: \"open # hunter22\nb: 1 # c":          "a: \"open\nb: 1",
		"a: [\"x\", 'y # z'] # hunter22":          "a: [\"x\", 'y # z']",
		"a: \"x \\\" # y\" # z":                   "a: \"x \\\" # y\"",
		"x.yaml:3: no such key\n    | a: 1 # bob": "x.yaml:3: no such key\n    | a: 1",
	} {
		if got := WithoutComments([]byte(text)); string(got) != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestContentOfSecretFilesIsRemovedEverywhere(t *testing.T) {
	t.Parallel()
	r := NewRedactor([]byte("[default]\naws_access_key_id = qwertyuiop\naws_secret_access_key=\"asdf+ghjkl/\"\n"),
		[]byte("correct horse\n"), []byte("-----BEGIN X-----\nMIIBVgIBADANBgkq\n-----END X-----\n"), []byte("ab\n"))
	text := "qwertyuiop said asdf+ghjkl/ to correct horse about MIIBVgIBADANBgkq, ab [default]"
	got, n := r.Clean([]byte(text))
	if string(got) != "[removed] said [removed] to [removed] about [removed], ab [default]" || n != 4 {
		t.Errorf("%d: %q", n, got)
	}
}

// unpack returns the files of a bundle.
func unpack(t *testing.T, text []byte) map[string]string {
	t.Helper()
	packed, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(packed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(all)
	}
}

func TestBundleIsLimitedAndListsTruncatedAndMissingFiles(t *testing.T) {
	t.Parallel()
	give := func(text string, err error) func(context.Context) ([]byte, error) {
		return func(context.Context) ([]byte, error) { return []byte(text), err }
	}
	long := "begin" + strings.Repeat("x", MaxFile) + "end"
	sources := []Source{
		{Name: "small", Get: give("hello", nil)},
		{Name: "dead", Get: give("", errors.New("connection refused, password=hunter22"))},
		{Name: "head", Get: give(long, nil)},
		{Name: "tail", Get: give(long, nil), End: true},
	}
	for range 9 {
		sources = append(sources, Source{Name: "more", Get: give(long, nil)})
	}
	files := Collect(t.Context(), sources, NewRedactor())
	sum := 0
	for _, f := range files {
		sum += len(f.Text)
	}
	if sum > MaxBundle || Missing(files) != 1 {
		t.Errorf("%d bytes, %d missing", sum, Missing(files))
	}
	if !bytes.HasPrefix(files[2].Text, []byte("begin")) || !bytes.HasSuffix(files[3].Text, []byte("end")) {
		t.Error("the wrong end is truncated")
	}
	var b bytes.Buffer
	if err := Write(&b, "dir", files, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	got := unpack(t, b.Bytes())
	list := got["dir/"+Contents]
	for _, want := range []string{"small ", "missing: connection refused, password=[removed]", "8 bytes cut off"} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in %s", want, list)
		}
	}
	if got["dir/small"] != "hello" {
		t.Errorf("%q", got["dir/small"])
	}
}

func TestHangingSourceDoesNotBlockTheBundle(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	free := make(chan struct{})
	t.Cleanup(func() { close(free) })
	files := Collect(ctx, []Source{{Name: "hangs", Get: func(context.Context) ([]byte, error) {
		<-free
		return nil, nil
	}}}, NewRedactor())
	if Missing(files) != 1 {
		t.Errorf("%+v", files)
	}
}

func TestFIFOIsRefusedAndALongFileIsReadFromItsEnd(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := FromFile(fifo, false)(t.Context()); err == nil {
		t.Error("the FIFO is read")
	}
	long := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(long, append(bytes.Repeat([]byte("x"), maxRead), "end"...), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := FromFile(long, true)(t.Context())
	if err != nil || len(text) != maxRead || !bytes.HasSuffix(text, []byte("end")) {
		t.Errorf("%d bytes: %v", len(text), err)
	}
	said, err := Program("sh", "-c", "yes | head -c 9000000; echo end; echo oops >&2; exit 3")(t.Context())
	if err == nil || !strings.Contains(err.Error(), "oops") || len(said) != maxRead ||
		!bytes.HasSuffix(said, []byte("end\n")) {
		t.Errorf("%d bytes: %v", len(said), err)
	}
}
