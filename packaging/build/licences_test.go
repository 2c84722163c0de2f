// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheNoticesNameAllLinkedModulesWithTheirLicences(t *testing.T) {
	t.Parallel()
	all, err := linkedBy(t.Context(), "../..", "amd64", "./cmd/quorumd", "./cmd/quorumctl")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := writeNotices(&text, all); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{
		"\nGo go1.", "\ngoogle.golang.org/grpc v", "\ngo.etcd.io/etcd/client/v3 v",
		"\ngithub.com/prometheus/client_golang v",
		"LICENSE, NOTICE", "Apache License", "Redistribution and use in source and binary forms",
		"Permission is hereby granted, free of charge",
	} {
		if !strings.Contains(text.String(), wanted) {
			t.Errorf("the notices lack %q", wanted)
		}
	}
	// Only tests link the first two modules; the third is the main module.
	for _, unwanted := range []string{"go.uber.org/goleak", "github.com/google/go-cmp", "github.com/quorumd/quorumd"} {
		if strings.Contains(text.String(), "\n"+unwanted) {
			t.Errorf("the notices name %s, which is not linked", unwanted)
		}
	}
	// More than one copy is allowed, because copies differ in spacing.
	if same := strings.Count(text.String(), "TERMS AND CONDITIONS FOR USE, REPRODUCTION"); same > 8 {
		t.Errorf("the Apache License appears %d times", same)
	}
}

// moduleWith writes a main module that links a package of a second module. The second module contains the files.
func moduleWith(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("main/go.mod",
		"module example.com/main\n\ngo 1.26\n\nrequire example.com/other v1.0.0\n\nreplace example.com/other => "+
			"../other\n")
	write("main/main.go", "package main\n\nimport _ \"example.com/other/inner/linked\"\n\nfunc main() {}\n")
	write("other/go.mod", "module example.com/other\n\ngo 1.26\n")
	write("other/inner/linked/linked.go", "package linked\n")
	write("other/unused/unused.go", "package unused\n")
	for _, file := range files {
		write("other/"+file, "the text of "+file+"\n")
	}
	return filepath.Join(dir, "main")
}

func TestAModuleWithoutALicenceIsNotPackaged(t *testing.T) {
	t.Parallel()
	all, err := linkedBy(t.Context(), moduleWith(t, "README", "inner/linked/LICENSE"), "amd64", ".")
	if err != nil {
		t.Fatal(err)
	}
	if err := writeNotices(&bytes.Buffer{}, all); err == nil ||
		!strings.Contains(err.Error(), "example.com/other v1.0.0 has no licence") {
		t.Errorf("the error is %v", err)
	}
}

func TestOnlyLicencesNextToLinkedPackagesAreIncluded(t *testing.T) {
	t.Parallel()
	all, err := linkedBy(t.Context(), moduleWith(t, "LICENSE.md", "inner/COPYING", "inner/linked/NOTICE",
		"unused/LICENSE"), "amd64", ".")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := writeNotices(&text, all); err != nil {
		t.Fatal(err)
	}
	if wanted := "\nexample.com/other v1.0.0: LICENSE.md, inner/COPYING, inner/linked/NOTICE\n"; !strings.Contains(
		text.String(), wanted) {
		t.Errorf("no line %q in\n%.2000s", wanted, text.String())
	}
	for file, wanted := range map[string]bool{
		"LICENSE.md": true, "inner/COPYING": true, "inner/linked/NOTICE": true,
		"unused/LICENSE": false,
	} {
		if strings.Contains(text.String(), "the text of "+file) != wanted {
			t.Errorf("the text of %s: wanted %v", file, wanted)
		}
	}
}

func TestAProgramWithAnUnlistedModuleIsRefused(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all, err := linkedBy(t.Context(), ".", "amd64", ".")
	if err != nil {
		t.Fatal(err)
	}
	if err := checkModules(all, self); err != nil {
		t.Error(err)
	}
	if err := checkModules(all[:1], self); err == nil ||
		!strings.Contains(err.Error(), "its licence would be missing") {
		t.Errorf("the error is %v", err)
	}
}
