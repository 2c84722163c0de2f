// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// isNotice matches the files that must be distributed together with a module.
var isNotice = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

// source is Go itself, or a module with a linked package.
type source struct {
	name string // path and version
	root string
	dirs map[string]bool // directories of the linked packages
}

// notice is the text of a notice, with the sources that it covers.
type notice struct {
	text string
	of   []string
}

// licences stages the notices of everything that is linked into the programs. It runs after the programs are built,
// because it checks that it covers every module that they report.
func (j job) licences(ctx context.Context) error {
	var all []source
	for _, arch := range j.arches {
		linked, err := linkedBy(ctx, j.product.dir, arch, slices.Collect(maps.Values(j.product.programs))...)
		if err != nil {
			return err
		}
		all = merge(all, linked)
	}
	for _, arch := range j.arches {
		for program := range j.product.programs {
			if err := checkModules(all, filepath.Join(j.stage, arch, program)); err != nil {
				return err
			}
		}
	}
	var text bytes.Buffer
	text.WriteString(j.product.notice + "\n\n")
	if err := writeNotices(&text, all); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(j.stage, "third-party"), text.Bytes(), 0o644)
}

// linkedBy returns the sources from which the packages are linked on an architecture, except the main module: sorted,
// Go first.
func linkedBy(ctx context.Context, dir, arch string, packages ...string) ([]source, error) {
	args := append([]string{"list", "-deps", "-json=Dir,Standard,Module"}, packages...)
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	listed, err := output(c)
	if err != nil {
		return nil, err
	}
	golang, err := goItself(ctx, dir)
	if err != nil {
		return nil, err
	}
	all := []source{golang}
	for decoder := json.NewDecoder(bytes.NewReader(listed)); ; {
		var p struct {
			Dir      string
			Standard bool
			Module   *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return merge(nil, all), nil
		} else if err != nil {
			return nil, fmt.Errorf("cannot parse the output of go list: %w", err)
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		m := source{
			name: p.Module.Path + " " + p.Module.Version, root: p.Module.Dir,
			dirs: map[string]bool{p.Dir: true},
		}
		all = append(all, m)
	}
}

// goItself returns Go's standard library and runtime, which are part of every program.
func goItself(ctx context.Context, dir string) (source, error) {
	c := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION")
	c.Dir = dir
	out, err := output(c)
	if err != nil {
		return source{}, err
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return source{name: "Go " + version, root: root, dirs: map[string]bool{root: true}}, nil
}

// merge returns each source once, sorted, Go first.
func merge(a, b []source) []source {
	byName := map[string]source{}
	for _, s := range slices.Concat(a, b) {
		if known, ok := byName[s.name]; ok {
			maps.Copy(known.dirs, s.dirs)
		} else {
			byName[s.name] = s
		}
	}
	isGo := func(s source) int {
		if strings.HasPrefix(s.name, "Go ") {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Values(byName), func(x, y source) int {
		return cmp.Or(cmp.Compare(isGo(x), isGo(y)), strings.Compare(x.name, y.name))
	})
}

// checkModules returns an error unless all modules from which a program was built are among the sources.
func checkModules(all []source, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("cannot read the build information of %s: %w", program, err)
	}
	for _, m := range info.Deps {
		if !slices.ContainsFunc(all, func(s source) bool { return s.name == m.Path+" "+m.Version }) {
			return fmt.Errorf("%s contains %s %s, which go list does not report: its licence would be missing", program,
				m.Path, m.Version)
		}
	}
	return nil
}

// notices returns the notices of a source: those in its root, and those next to or above a linked package, because
// individual packages can have other licences.
func (s source) notices() (map[string]string, error) {
	found := map[string]string{}
	for dir := range s.dirs {
		for {
			if err := noticesIn(dir, s.root, found); err != nil {
				return nil, err
			}
			if dir == s.root || len(dir) <= len(s.root) {
				break
			}
			dir = filepath.Dir(dir)
		}
	}
	for name := range found {
		if !strings.Contains(name, "/") {
			return found, nil
		}
	}
	return nil, fmt.Errorf("%s has no licence file in %s: it cannot be packaged", s.name, s.root)
}

func noticesIn(dir, root string, found map[string]string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isNotice.MatchString(e.Name()) || !e.Type().IsRegular() || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := fs.ReadFile(os.DirFS(dir), e.Name())
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found[name] = strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
	}
	return nil
}

// writeNotices writes a list of the sources, then each text once, with its sources.
func writeNotices(w *bytes.Buffer, all []source) error {
	var texts []notice
	for _, s := range all {
		found, err := s.notices()
		if err != nil {
			return err
		}
		files := slices.Sorted(maps.Keys(found))
		fmt.Fprintf(w, "%s: %s\n", s.name, strings.Join(files, ", "))
		for _, file := range files {
			of := s.name + ": " + file
			if i := slices.IndexFunc(texts, func(n notice) bool { return n.text == found[file] }); i >= 0 {
				texts[i].of = append(texts[i].of, of)
			} else {
				texts = append(texts, notice{text: found[file], of: []string{of}})
			}
		}
	}
	rule := strings.Repeat("=", 80)
	for _, n := range texts {
		fmt.Fprintf(w, "\n%s\n%s\n%s\n\n%s\n", rule, strings.Join(n.of, "\n"), rule, n.text)
	}
	return nil
}
