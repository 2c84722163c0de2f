// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/contrib/testbed"
)

func TestAKeyReadableByOthersIsLoggedAsAnErrorAndTheAgentStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, err := testbed.NewCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.Issue("quorumd", testbed.CertOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "quorumd.yaml")
	text := fmt.Sprintf("host: {name: n1, id: n1}\ncluster: {name: prod, endpoints: [\"https://192.0.2.1:2379\"], "+
		"tls: {ca: %s, cert: %s, key: %s}}\n", files.CA, files.Cert, files.Key) +
		"etcd: {clientURL: \"https://192.0.2.1:2379\", peerURL: \"https://192.0.2.1:2380\"}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, open := range map[os.FileMode]bool{0o400: false, 0o644: true} {
		if err := os.Chmod(files.Key, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		if _, err := loadConfig(path, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Errorf("mode %o: %v", mode, err)
		}
		if said := log.String(); strings.Contains(said,
			"level=ERROR msg=\"configuration error\" problem=\"cluster.tls.key: "+files.Key) != open {
			t.Errorf("mode %o: the log has %s", mode, said)
		} else if open && os.Geteuid() == 0 && !strings.Contains(said, "chown quorumd: ") {
			t.Errorf("the advice for root would make the key unreadable for the service: %s", said)
		}
	}
}
