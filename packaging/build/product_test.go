// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const checkout = "../.."

// packed returns the files that the recipe of a product installs on a host, and the recipe.
func packed(t *testing.T, p product) (on []string, recipe string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, p.recipe))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range regexp.MustCompile(`dst: "?(/[^,"}]+)`).FindAllStringSubmatch(string(text), -1) {
		on = append(on, entry[1])
	}
	return on, string(text)
}

func TestEveryBuiltProgramIsPackagedAndHasAPage(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"quorumd": {"quorumctl", "quorumd"}, "etcd": {"etcd", "etcdctl", "etcdutl"},
	} {
		p := products()[name]
		if got := slices.Sorted(maps.Keys(p.programs)); !slices.Equal(got, want) {
			t.Errorf("package %s builds %v, want %v", p.name, got, want)
		}
		on, recipe := packed(t, p)
		for _, program := range want {
			if !slices.Contains(on, "/usr/bin/"+program) {
				t.Errorf("package %s has no %s", p.name, program)
			}
			pages, err := filepath.Glob(filepath.Join(checkout, filepath.Dir(p.pages), program+".[1-8].md"))
			if err != nil || len(pages) != 1 {
				t.Errorf("%s has %d manual pages: %v", program, len(pages), err)
				continue
			}
			page := strings.TrimSuffix(filepath.Base(pages[0]), ".md") + ".gz"
			for _, packager := range []string{"deb", "rpm"} {
				if !regexp.MustCompile(`/` + regexp.QuoteMeta(page) + `, packager: ` + packager).MatchString(recipe) {
					t.Errorf("the %s of %s has no page of %s", packager, p.name, program)
				}
			}
		}
	}
}

// TestTheProgramsOfEtcdHaveOneVersion checks the versions that contrib/etcd pins.
func TestTheProgramsOfEtcdHaveOneVersion(t *testing.T) {
	t.Parallel()
	p := products()["etcd"]
	mod, err := os.ReadFile(filepath.Join(checkout, p.dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, program := range p.programs {
		found := regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(program) + ` (v\S+)`).FindSubmatch(mod)
		if found == nil {
			t.Errorf("%s does not pin %s", p.dir, program)
			continue
		}
		versions[string(found[1])] = program
	}
	if len(versions) != 1 {
		t.Errorf("their versions are %v", versions)
	}
}

// TestPathsNamedByPagesArePackaged checks every path of quorumd and etcd below /usr/share and /usr/lib that a page
// names.
func TestPathsNamedByPagesArePackaged(t *testing.T) {
	t.Parallel()
	var on []string
	for _, p := range products() {
		more, _ := packed(t, p)
		on = append(on, more...)
	}
	named := regexp.MustCompile(`/usr/(?:share|lib)/[A-Za-z0-9@._/-]*(?:quorumd|etcd)[A-Za-z0-9@._/-]*`)
	seen := map[string]bool{}
	for _, pattern := range []string{"README.md", "packaging/man/*.md", "packaging/etcd/*.md", "contrib/docs/*.md"} {
		files, err := filepath.Glob(filepath.Join(checkout, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range named.FindAllString(string(text), -1) {
				path = strings.TrimRight(path, "./")
				seen[path] = true
				if !slices.ContainsFunc(on, func(dst string) bool {
					dst = strings.TrimRight(dst, "/")
					return dst == path || strings.HasPrefix(dst, path+"/") || strings.HasPrefix(path, dst+"/")
				}) {
					t.Errorf("%s names %s, which no package has", filepath.Base(file), path)
				}
			}
		}
	}
	for _, dst := range on { // a file that an operator copies is useful only if a page names it
		if strings.HasPrefix(dst, "/usr/share/quorumd/") && !slices.ContainsFunc(slices.Collect(maps.Keys(seen)),
			func(path string) bool { return path == dst || strings.HasPrefix(dst, path+"/") }) {
			t.Errorf("no page names %s", dst)
		}
	}
}
