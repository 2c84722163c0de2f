// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// mutant is a small change of a source file: it replaces the text between two offsets.
type mutant struct {
	file     string // base name of the source file
	function string // the enclosing function; "" if none
	line     int
	from, to int    // byte offsets in the file
	was, now string // the old text and the new text
	context  string // the line of source, without its indentation
}

// String returns the name of a mutant: its file and function, the change, and the text of its source line. The name
// contains no line number, so that it survives changes elsewhere in the file.
func (m mutant) String() string {
	now := m.now
	if now == "" {
		now = "(nothing)"
	}
	return fmt.Sprintf("%s %s: %s → %s in: %s", m.file, m.function, m.was, now, m.context)
}

// apply returns the changed source.
func (m mutant) apply(source []byte) []byte {
	out := append([]byte(nil), source[:m.from]...)
	out = append(out, m.now...)
	return append(out, source[m.to:]...)
}

// replacement returns the operator that replaces the given one. An ordering comparison gains or loses equality; other
// operators are replaced by their opposites.
func replacement(op token.Token) (token.Token, bool) {
	to, ok := map[token.Token]token.Token{
		token.EQL: token.NEQ, token.NEQ: token.EQL,
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
		token.LAND: token.LOR, token.LOR: token.LAND,
		token.ADD: token.SUB, token.SUB: token.ADD,
	}[op]
	return to, ok
}

// mutants returns every mutant of a source file. Some do not compile; only the compiler can find these.
func mutants(name string, source []byte) ([]mutant, error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	c := &collector{file: name, source: source, set: files.File(tree.Pos())}
	for _, decl := range tree.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			c.function = f.Name.Name
		} else {
			c.function = ""
		}
		ast.Inspect(decl, c.visit)
	}
	return c.found, nil
}

type collector struct {
	file     string
	source   []byte
	set      *token.File
	function string
	found    []mutant
}

func (c *collector) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if to, ok := replacement(n.Op); ok {
			c.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to.String())
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			c.add(n.OpPos, n.OpPos+1, "")
		}
	case *ast.Ident:
		switch n.Name {
		case "true":
			c.add(n.Pos(), n.End(), "false")
		case "false":
			c.add(n.Pos(), n.End(), "true")
		}
	case *ast.BasicLit:
		if i, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
			c.add(n.Pos(), n.End(), strconv.Itoa(i+1))
		}
	case *ast.IfStmt:
		c.condition(n)
	case *ast.CompositeLit:
		c.rows(n)
	case *ast.BlockStmt:
		c.statements(n)
	case *ast.ImportSpec:
		return false
	}
	return true
}

// condition adds one mutant whose condition is never true and one whose condition is always true. Both still evaluate
// the condition, so that its variables stay used.
func (c *collector) condition(n *ast.IfStmt) {
	text := string(c.source[c.set.Offset(n.Cond.Pos()):c.set.Offset(n.Cond.End())])
	c.add(n.Cond.Pos(), n.Cond.End(), "("+text+") && false")
	c.add(n.Cond.Pos(), n.Cond.End(), "("+text+") || true")
}

// rows adds mutants without one element of a composite literal: a row of a table, or a field.
func (c *collector) rows(n *ast.CompositeLit) {
	for i, e := range n.Elts {
		end := n.Rbrace
		if i+1 < len(n.Elts) {
			end = n.Elts[i+1].Pos()
		}
		c.add(e.Pos(), end, "")
	}
}

// statements adds mutants without one statement: a call, or an assignment to an existing variable.
func (c *collector) statements(n *ast.BlockStmt) {
	for _, s := range n.List {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt:
			c.add(s.Pos(), s.End(), "")
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				c.add(s.Pos(), s.End(), "")
			}
		}
	}
}

func (c *collector) add(from, to token.Pos, now string) {
	m := mutant{
		file: c.file, function: c.function, line: c.set.Line(from), from: c.set.Offset(from),
		to: c.set.Offset(to), now: now,
	}
	m.was = strings.Join(strings.Fields(string(c.source[m.from:m.to])), " ")
	m.context = strings.TrimSpace(c.lineOf(m.from))
	c.found = append(c.found, m)
}

func (c *collector) lineOf(offset int) string {
	begin := strings.LastIndexByte(string(c.source[:offset]), '\n') + 1
	line, _, _ := strings.Cut(string(c.source[begin:]), "\n")
	return line
}
