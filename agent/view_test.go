// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Only observe/observer.go writes the view on which a decision is based.
func TestOnlyTheObserverWritesTheViewOfARound(t *testing.T) {
	t.Parallel()
	observer := filepath.Join("observe", "observer.go")
	found := 0
	for _, r := range layers() {
		files, err := filepath.Glob(filepath.Join(r.dir(), "*.go"))
		must(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			must(t, err)
			for _, at := range writesOf(parsed, "View") {
				if found++; file != observer {
					t.Errorf("%s writes into the view of a round", set.Position(at))
				}
			}
		}
	}
	if found == 0 {
		t.Errorf("no file writes a view, not even %s", observer)
	}
}

// writesOf returns where a file assigns to a field of that name, or to a part of it, or takes its address.
func writesOf(file *ast.File, field string) (at []token.Pos) {
	look := func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == field {
			at = append(at, s.Pos())
		}
		return true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				ast.Inspect(to, look)
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				look(n.X)
			}
		}
		return true
	})
	return at
}
