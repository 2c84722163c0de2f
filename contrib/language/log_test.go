// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package language

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// snakeCase is how attributes of log lines are named.
var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$`)

// logArgs returns the arguments of a call to a logger, from the message on, or nil.
func logArgs(call *ast.CallExpr) []ast.Expr {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	logger := ""
	switch x := method.X.(type) {
	case *ast.Ident:
		logger = x.Name
	case *ast.SelectorExpr:
		logger = x.Sel.Name
	}
	if !slices.Contains([]string{"log", "Logger", "slog"}, logger) {
		return nil
	}
	skip, ok := map[string]int{
		"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "Log": 2,
		"DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1,
	}[method.Sel.Name]
	if !ok || len(call.Args) <= skip {
		return nil
	}
	return call.Args[skip:]
}

// constantText returns the text of a string literal, or of several that are joined.
func constantText(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := constantText(e.X)
		right, also := constantText(e.Y)
		return left + right, ok && also
	}
	return "", false
}

// logProblems returns what is wrong with the log lines of a file. It accepts an identifier as the message: usually a
// parameter to which the callers pass a constant.
func logProblems(t *testing.T, file string) []string {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var problems []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		args := logArgs(call)
		if len(args) == 0 {
			return true
		}
		if _, constant := constantText(args[0]); !constant {
			if _, passed := args[0].(*ast.Ident); !passed {
				problems = append(problems, files.Position(call.Pos()).String()+": the message is not constant")
			}
		}
		for i := 1; i < len(args); i += 2 {
			if key, ok := constantText(args[i]); ok && !snakeCase.MatchString(key) {
				problems = append(problems, files.Position(call.Pos()).String()+": the key "+key+" is not snake_case")
			}
		}
		return true
	})
	return problems
}

func TestLogLinesHaveConstantMessagesAndSnakeCaseKeys(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "dist", "testdata"}, entry.Name()):
			return fs.SkipDir
		case strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go"):
			for _, problem := range logProblems(t, file) {
				t.Error(problem)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
