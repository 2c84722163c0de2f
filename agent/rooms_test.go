// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// house lists the rooms of the agent, each above those that it may import: an arrow that points up, and so a circle,
// cannot even be written here. What is not listed (the simulation, who speaks to the socket) is imported by no room.
func house() []room {
	return []room{
		{"agent", "operate publish act observe keep round local policy config control lock " +
			"cluster network hooks datadir recovery record disk health systemd"},
		{"operate", "publish round local beside policy config control cluster recovery backup record health"},
		{"publish", "round local beside policy config control cluster network record disk health"},
		{"act", "round local policy config lock cluster hooks recovery record"},
		{"observe", "round local beside policy config cluster network hooks datadir recovery record disk health " +
			"systemd"},
		{"keep", "round local beside policy config control record"},
		{"round", "local policy cluster network hooks datadir recovery record disk health systemd"},
		{"local", "policy hooks record health"},
		{"beside", ""},
		{"policy", "health"},
		{"config", "trigger disk"},
		{"trigger", "control launch"},
		{"control", "hooks recovery"},
		{"lock", "record"},
		{"cluster", "launch"},
		{"network", ""},
		{"hooks", ""},
		{"datadir", ""},
		{"plugins", "launch health"},
		{"backup", ""},
		{"launch", ""},
		{"recovery", "record"},
		{"record", ""},
		{"disk", ""},
		{"health", ""},
		{"systemd", ""},
	}
}

type room struct {
	name    string
	imports string // that it may import of quorumd, all of them further down
}

// dir gives where the room lies, seen from this package.
func (r room) dir() string {
	switch r.name {
	case "agent":
		return "."
	case "disk", "health", "systemd": // which know nothing of an agent
		return filepath.Join("..", r.name)
	}
	return r.name
}

func TestARoomImportsOnlyWhatTheHouseAllows(t *testing.T) {
	t.Parallel()
	below := map[string]bool{}
	for _, r := range slices.Backward(house()) {
		allowed := strings.Fields(r.imports)
		for _, name := range allowed {
			if !below[name] {
				t.Errorf("%s may import %s, which does not stand below it", r.name, name)
			}
		}
		below[r.name] = true
		imported := importsOf(t, r.dir())
		for name, file := range imported {
			if !slices.Contains(allowed, name) {
				t.Errorf("%s imports %s: of quorumd, %s may import no more than %q", file, name, r.name, allowed)
			}
		}
		for _, name := range allowed {
			if imported[name] == "" {
				t.Errorf("%s may import %s and does not: take it off the list", r.name, name)
			}
		}
	}
}

// importsOf gives what the files of a package import of quorumd, tests apart, and one file that does.
func importsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	const module = "github.com/quorumd/quorumd/"
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	must(t, err)
	if len(files) == 0 {
		t.Errorf("there is no room in %s", dir)
	}
	out := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		must(t, err)
		for _, spec := range parsed.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			must(t, err)
			if name, ours := strings.CutPrefix(path, module); ours {
				out[strings.TrimPrefix(name, "agent/")] = file
			}
		}
	}
	return out
}
