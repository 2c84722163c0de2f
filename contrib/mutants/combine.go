// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// Linking a test binary takes seconds, but running its tests takes only milliseconds. So one binary contains as many
// mutants as possible: each function has a copy for each of its mutants, and calls the copy that an environment
// variable selects.

// selectedBy is the environment variable with the number of the selected mutant.
const selectedBy = "QUORUMD_MUTANT"

// selectorSource returns a source file for the changed package. It reads the number of the selected mutant from the
// environment variable.
func selectorSource(pkg string) []byte {
	return fmt.Appendf(nil, `package %s

import (
	"os"
	"strconv"
)

var selectedMutant = func() int {
	n, _ := strconv.Atoi(os.Getenv(%q))
	return n
}()
`, pkg, selectedBy)
}

type numbered struct {
	mutant
	number int
}

// combine returns a source file that contains the given mutants, the name of its package, and the numbers of the
// mutants that the file cannot contain: those outside functions, and those in a function that callOf does not support.
func combine(name string, source []byte, of []numbered) (whole []byte, pkg string, outside []int, err error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	offset := set.File(tree.Pos()).Offset
	var out, copies bytes.Buffer
	done := 0
	held := map[int]bool{}
	for _, decl := range tree.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		call, ok := callOf(f)
		begin, end := offset(f.Pos()), offset(f.End())
		inside := slices.DeleteFunc(slices.Clone(of), func(m numbered) bool { return m.from < begin || m.to > end })
		if !ok || len(inside) == 0 {
			continue
		}
		body := offset(f.Body.Lbrace) + 1
		out.Write(source[done:body])
		done = body
		fmt.Fprintf(&out, " switch selectedMutant {")
		for _, m := range inside {
			held[m.number] = true
			fmt.Fprintf(&out, " case %d: %s;", m.number, fmt.Sprintf(call, m.number))
			// with this line directive, the compiler names the mutant in its errors
			at := offset(f.Name.End())
			fmt.Fprintf(&copies, "\n//line mutant%d.go:1\n", m.number)
			copies.Write(source[begin:at])
			fmt.Fprintf(&copies, "_mutant%d", m.number)
			copies.Write(source[at:m.from])
			copies.WriteString(m.now)
			copies.Write(source[m.to:end])
			copies.WriteString("\n")
		}
		out.WriteString(" };")
	}
	out.Write(source[done:])
	out.Write(copies.Bytes())
	for _, m := range of {
		if !held[m.number] {
			outside = append(outside, m.number)
		}
	}
	return out.Bytes(), tree.Name.Name, outside, nil
}

// callOf returns the statement with which a function calls its copy; %d is the number of the mutant. It returns false
// for a generic function, and for one with unnamed parameters or an unnamed receiver.
func callOf(f *ast.FuncDecl) (string, bool) {
	text := f.Name.Name + "_mutant%d("
	if f.Recv != nil {
		if len(f.Recv.List[0].Names) == 0 {
			return "", false
		}
		text = f.Recv.List[0].Names[0].Name + "." + text
	}
	var names []string
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
		if len(field.Names) == 0 {
			return "", false
		}
		if _, variadic := field.Type.(*ast.Ellipsis); variadic {
			names[len(names)-1] += "..."
		}
	}
	if f.Type.TypeParams != nil || slices.Contains(names, "_") || strings.HasPrefix(text, "_.") {
		return "", false
	}
	text += strings.Join(names, ", ") + ")"
	if f.Type.Results == nil {
		return text + "; return", true
	}
	return "return " + text, true
}
