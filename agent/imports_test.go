// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers lists every package of quorumd above the packages that it may import, so that an upward import, or a cycle,
// cannot even be listed. Packages below agent are named without the prefix "agent/". Of contrib, the list includes only
// the runbooks that quorumd serves.
func layers() []layer {
	return []layer{
		{"cmd/quorumctl", "cmd/quorumctl/supportbundle cmd/quorumctl/pki cmd/quorumctl/qualify cmd/quorumctl/setup " +
			"display fileaccess journalcatalog control config recovery policy record etcddb child disk health " +
			"systemd durationfmt"},
		{"cmd/quorumctl/setup", "policy config execshim fileaccess disk/atomicfile"},
		{"cmd/quorumctl/qualify", "health/sensors disk disk/blockdevice health durationfmt"},
		{"cmd/quorumctl/pki", "disk/atomicfile"},
		{"cmd/quorumctl/supportbundle", "durationfmt"},
		{"cmd/quorumd", "cmd/quorumd/daemon journalcatalog systemd"},
		{
			"cmd/quorumd/daemon",
			"agent operate observe page bootstrap fleetlock connlimit shutdown fileaccess journalcatalog " +
				"externalcheck backup/restoretest backup discovery " +
				"proxy recovery/rebuild hoststate policy config autoreboot control/server cluster network hooks " +
				"execshim nextetcd peertls " +
				"datadir defrag record " +
				"etcddb child health/sensors health/smart health/kernellog health/certificates health/etcdflags " +
				"health/etcdmetrics " +
				"systemd/roothelper systemd/runas systemd/rootfile disk disk/blockdevice health systemd " +
				"disk/atomicfile contrib/prometheus",
		},
		{"packaging/build", "journalcatalog"},
		{"packaging", ""},
		{"sim", "agent observe hoststate policy config control cluster network hooks datadir recovery record " +
			"sim/keyspace disk health systemd"},
		{"sim/keyspace", ""},
		{"policy/model", "policy record health"},
		{"agent", "operate publish act observe persist round hoststate policy config control proxy " +
			"cluster hooks datadir recovery record disk health systemd"},
		{"operate", "publish round hoststate poll policy config control cluster hooks recovery backup record health " +
			"durationfmt"},
		{"publish", "diskrecord round hoststate poll policy config control cluster network proxy record disk health"},
		{"diskrecord", "record health"},
		{"act", "round hoststate policy config cluster lock hooks recovery record disk systemd durationfmt"},
		{"observe", "round hoststate poll policy config cluster network hooks datadir recovery record disk " +
			"disk/blockdevice health " +
			"systemd durationfmt"},
		{"persist", "round hoststate poll policy config control cluster record"},
		{"round", "hoststate policy cluster network hooks datadir recovery record disk health systemd"},
		{"hoststate", "policy control hooks recovery record disk/atomicfile health"},
		{"shutdown", "policy control"},
		{"journalcatalog", "policy health"},
		{"fileaccess", "config child durationfmt"},
		{"page", "display control"},
		{"display", "policy control record health durationfmt"},
		{"fleetlock", "connlimit control policy"},
		{"connlimit", ""},
		{"poll", ""},
		{"peertls", "child config"},
		{"defrag", "hooks child etcddb"},
		{"config", "durationfmt window socketpath smallfile disk"},
		{"autoreboot", "control policy execshim window durationfmt"},
		{"window", ""},
		{"control/server", "control control/internal/errtext hooks recovery policy record socketpath health " +
			"durationfmt"},
		{"control", "control/internal/errtext recovery policy socketpath record health"},
		{"control/internal/errtext", ""},
		{"cluster", "lock execshim smallfile durationfmt"},
		{"lock", "record durationfmt"},
		{"network", "record"},
		{"bootstrap", "policy"},
		{"proxy", "disk/atomicfile"},
		{"hooks", "disk/atomicfile durationfmt"},
		{"recovery/rebuild", "datadir recovery scratchetcd record etcddb child disk/atomicfile durationfmt"},
		{"datadir", "child disk/atomicfile"},
		{"externalcheck", "execshim health durationfmt"},
		{"discovery", "durationfmt"},
		{"backup/restoretest", "backup scratchetcd etcddb record"},
		{"backup", "record etcddb child smallfile durationfmt"},
		{"nextetcd", "execshim health/etcdflags"},
		{"execshim", ""},
		{"recovery", "policy record"},
		{"policy", "record health durationfmt"},
		{"scratchetcd", "etcddb socketpath durationfmt"},
		{"etcddb", "record"},
		{"record", ""},
		{"child", ""},
		{"socketpath", ""},
		{"durationfmt", ""},
		{"health/sensors", "disk health"},
		{"health/smart", "health systemd/rootfile"},
		{"health/kernellog", "disk health systemd/rootfile"},
		{"health/certificates", "health"},
		{"health/etcdflags", "smallfile health systemd"},
		{"smallfile", ""},
		{"health/etcdmetrics", "health"},
		{"systemd/roothelper", "systemd"},
		{"systemd/runas", ""},
		{"systemd/rootfile", ""},
		{"health", "disk"},
		{"disk", ""},
		{"disk/blockdevice", ""},
		{"systemd", "disk/atomicfile"},
		{"disk/atomicfile", ""},
	}
}

type layer struct {
	name    string
	imports string // packages of quorumd that it may import, all of them further down
}

// dir returns the package's directory, relative to this package.
func (r layer) dir() string {
	if r.name == "agent" {
		return "."
	}
	top, _, _ := strings.Cut(r.name, "/")
	if slices.Contains(topLevel(), top) {
		return filepath.Join("..", r.name)
	}
	return r.name
}

// topLevel returns the top folders outside agent.
func topLevel() []string { return []string{"cmd", "packaging", "disk", "health", "systemd"} }

func TestEveryPackageIsListed(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, r := range layers() {
		listed = append(listed, r.dir())
	}
	roots := []string{"."}
	for _, top := range topLevel() {
		roots = append(roots, filepath.Join("..", top))
	}
	for _, root := range roots {
		must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case !entry.IsDir():
				return nil
			case entry.Name() == "testdata":
				return filepath.SkipDir
			case len(shipped(t, path)) > 0 && !slices.Contains(listed, path):
				t.Errorf("%s is not listed: add it with its imports", path)
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				return filepath.SkipDir // a separate module is not part of quorumd
			}
			return nil
		}))
	}
}

func TestPackagesImportOnlyWhatIsListed(t *testing.T) {
	t.Parallel()
	below := map[string]bool{}
	for _, r := range slices.Backward(layers()) {
		allowed := strings.Fields(r.imports)
		for _, name := range allowed {
			if !below[name] && !strings.HasPrefix(name, "contrib/") {
				t.Errorf("%s may import %s, which is not listed below it", r.name, name)
			}
		}
		below[r.name] = true
		imported := importsOf(t, r.dir())
		for name, file := range imported {
			if !slices.Contains(allowed, name) {
				t.Errorf("%s imports %s: %s may import only %q of quorumd", file, name, r.name, allowed)
			}
		}
		for _, name := range allowed {
			if imported[name] == "" {
				t.Errorf("%s may import %s and does not: remove it from the list", r.name, name)
			}
		}
	}
}

// External programs import agent/control for its documents and its client.
func TestTheClientOfTheSocketHasNoServerDependencies(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./control").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range strings.Fields(string(out)) {
		for _, heavy := range []string{
			"go.etcd.io/", "google.golang.org/", "prometheus/", "godbus/", "agent/etcddb", "agent/cluster",
			"agent/hooks", "agent/control/server",
		} {
			if strings.Contains(name, heavy) {
				t.Errorf("agent/control depends on %s", name)
			}
		}
	}
}

// Only agent/hoststate reads and writes its files: other packages pass on an implementation of Files, but do not call
// it.
func TestOnlyTheHostStateUsesItsFiles(t *testing.T) {
	t.Parallel()
	passed := 0
	for _, r := range layers() {
		if r.name == "hoststate" || r.name == "sim" { // the simulation implements a disk that fails
			continue
		}
		for _, file := range shipped(t, r.dir()) {
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			must(t, err)
			ast.Inspect(tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if made, ok := n.X.(*ast.CompositeLit); ok && isOf(made.Type, "hoststate", "HostFiles") {
						t.Errorf("%s calls %s: add a method to hoststate.State", set.Position(n.Pos()), n.Sel.Name)
					}
				case *ast.CompositeLit:
					if isOf(n.Type, "hoststate", "HostFiles") {
						passed++
					}
				case *ast.Field:
					if isOf(n.Type, "hoststate", "Files") && r.name != "agent" { // agent.Options passes it to Open
						t.Errorf("%s keeps the files of the host's state: use hoststate.State", set.Position(n.Pos()))
					}
				}
				return true
			})
		}
	}
	if passed == 0 {
		t.Error("no package opens the host's state: has hoststate.HostFiles been renamed?")
	}
}

// isOf reports whether an expression names an identifier of a package.
func isOf(e ast.Expr, from, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == from
}

// importsOf returns the quorumd packages that a package imports outside its tests, each with a file that imports it.
func importsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	const module = "github.com/quorumd/quorumd/"
	files := shipped(t, dir)
	if len(files) == 0 {
		t.Errorf("there is no package in %s", dir)
	}
	out := map[string]string{}
	for _, file := range files {
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

// shipped returns the Go files of a folder except tests.
func shipped(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	must(t, err)
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
}

// Outside the policy, a kind of operation may be named only where its record is created. Other code uses the declared
// properties of a kind, so that a new kind needs no changes there. The simulation checks the agent and has its own
// lists.
func TestOnlyThePolicyChecksTheKindOfAnOperation(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, r := range layers() {
		if r.name == "policy" || r.name == "policy/model" || r.name == "sim" {
			continue
		}
		for _, file := range shipped(t, r.dir()) {
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			must(t, err)
			made := map[ast.Expr]bool{}
			ast.Inspect(tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Kind" {
						made[n.Value] = true
					}
				case *ast.SelectorExpr:
					from, _ := n.X.(*ast.Ident)
					if from == nil || from.Name != "policy" || !strings.HasPrefix(n.Sel.Name, "Kind") {
						break
					}
					if looked++; !made[n] {
						t.Errorf("%s checks for %s by name: make the difference a field of its declaration",
							set.Position(n.Pos()), n.Sel.Name)
					}
				}
				return true
			})
		}
	}
	if looked == 0 {
		t.Error("no kind of operation is created anywhere: have they been renamed?")
	}
}
