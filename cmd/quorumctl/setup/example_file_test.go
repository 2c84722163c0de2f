// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/config"
)

var update = flag.Bool("update", false, "rewrite the shipped example configuration")

// example is the configuration that the packages install in /usr/share/doc.
const example = "../../../packaging/examples/quorumd.yaml"

func TestShippedExampleIsWhatInitWrites(t *testing.T) {
	t.Parallel()
	a := Answers{
		Name: "n1", Hosts: []string{"n1=192.0.2.1", "n2=192.0.2.2", "n3=192.0.2.3"}, Cluster: "prod", Mode: "observe",
	}
	want, err := a.Text()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(example, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shipped, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	if string(shipped) != string(want) {
		t.Errorf("init writes\n%s\nand the packages ship\n%s", want, shipped)
	}
	if lines := strings.Count(string(want), "\n"); lines > 50 {
		t.Errorf("the example has %d lines, at most 50 are allowed", lines)
	}
	if strings.Contains(string(want), "timing") {
		t.Error("the example shows internal timings")
	}
}

func TestExampleAddressesAreRefused(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("quorumd.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	refused := Missing(t.Context(), example, c).Error()
	for _, key := range []string{"etcd.clientURL", "etcd.peerURL", "cluster.endpoints"} {
		if !strings.Contains(refused, key+": 192.0.2.1 is a documentation address") {
			t.Errorf("%s is not refused in\n%s", key, refused)
		}
	}
}

func TestCommentedSectionsOfTheExampleAreValid(t *testing.T) {
	t.Parallel()
	a := answers()
	text, err := a.Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range []string{"backup", "metrics"} {
		before, after, found := strings.Cut(string(text), "\n#"+section+":\n")
		if !found {
			t.Fatalf("no commented section %s in\n%s", section, text)
		}
		after, _, _ = strings.Cut(after, "\n\n")
		whole := before + "\n" + section + ":\n" + strings.ReplaceAll(strings.TrimPrefix(after, "#"), "\n#", "\n")
		if _, err := config.Parse("quorumd.yaml", []byte(whole)); err != nil {
			t.Errorf("%s: %v\n%s", section, err, whole)
		}
	}
}
