// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quorumd/quorumd/agent/policy"
)

// declared returns the names of a type's constants in the source of the policy, by value. It parses the source because
// a hand-written table might lack a constant.
func declared(t *testing.T, name string) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of the policy: %v", err)
	}
	found := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != name {
				return true
			}
			for i, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok {
					text, _ := strconv.Unquote(literal.Value)
					found[text] = spec.Names[i].Name
				}
			}
			return true
		})
	}
	return found
}

func TestEveryStepOfThePolicyIsDeclaredAndModelled(t *testing.T) {
	t.Parallel()
	all := declared(t, "StepKind")
	if len(all) < len(Steps()) {
		t.Fatalf("found only %d steps in the source", len(all))
	}
	for text, name := range all {
		kind := policy.StepKind(text)
		if kind != policy.StepNone && (Steps()[kind] == "" || kind.Info().Calls == 0) {
			t.Errorf("%s is not modelled, or not declared: see coverage.go, and Steps of the policy", name)
		}
	}
}

func TestThePolicyAndTheModelAgreeOnLockedSteps(t *testing.T) {
	t.Parallel()
	for step := takeLock; step <= beginReaddress; step++ {
		if kind := kindOf(step); kind.Info().Locked != underLock(step) {
			t.Errorf("the policy declares for %s that Locked is %v; in the model it is %v", kind, kind.Info().Locked,
				underLock(step))
		}
	}
	if !policy.StepRunHooks.Info().Locked { // no explored world has hooks
		t.Error("the policy declares that hooks run without the lock")
	}
}

func TestEveryReasonOfThePolicyIsDeclaredAndModelled(t *testing.T) {
	t.Parallel()
	all := declared(t, "ReasonCode")
	if len(all) < len(Reasons()) {
		t.Fatalf("found only %d reasons in the source", len(all))
	}
	for text, name := range all {
		code := policy.ReasonCode(text)
		if Reasons()[code] == "" || code.Info().Meaning == "" {
			t.Errorf("%s is not modelled, or not declared: see coverage.go, and Reasons of the policy", name)
		}
	}
}
