// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Command model explores the policy exhaustively in the model of package agent/policy/model, and then checks that the
// model finds every seeded mistake. It exits with 1 if a promise is broken, if a mistake is not found, or if an
// exploration that must be exhaustive stops early. For a broken promise it prints the shortest sequence of events.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"

	"github.com/quorumd/quorumd/agent/policy/model"
)

func main() {
	deep := flag.Bool("deep", false, "explore only the large scopes (hours, much memory), and skip the seeded mistakes")
	short := flag.Bool("short", false, "skip the scopes that take many minutes")
	most := flag.Int("states", 0, "stop each scope after this many states; 0 for no limit")
	only := flag.String("scope", "", "explore only scopes whose name contains this text, and skip the seeded mistakes")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "number of parallel workers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	all := scopes(*deep, *short)
	if *only != "" {
		all = slices.DeleteFunc(all, func(sc model.Scenario) bool { return !strings.Contains(sc.Name, *only) })
	}
	lost := slices.DeleteFunc(quorumLosses(*deep), func(sc model.QuorumLoss) bool {
		return !strings.Contains(sc.Name, *only)
	})
	rolling := slices.DeleteFunc(rollouts(*deep, *short), func(sc model.Rollout) bool {
		return !strings.Contains(sc.Name, *only)
	})
	ok := run(ctx, os.Stdout, all, *deep || *most > 0, *most, *workers)
	ok = walk(ctx, os.Stdout, lost, model.ExploreQuorumLoss, *most) && ok
	ok = walk(ctx, os.Stdout, rolling, model.ExploreRollout, *most) && ok
	if *only == "" && !*deep {
		ok = ok && mistakes(ctx, os.Stdout)
	}
	stop()
	if !ok {
		os.Exit(1)
	}
}

// scopes returns the scopes to explore.
func scopes(deep, short bool) []model.Scenario {
	all := slices.Concat(model.Scenarios(), model.Cycles(), model.Removals(), model.Replacements(),
		model.UnhealthyReplacements(), model.Resizes(), model.Transfers(), model.Learners(), model.Upgrades(),
		model.Readdresses())
	switch {
	case deep:
		return model.Deep()
	case short:
		return slices.DeleteFunc(all, func(sc model.Scenario) bool { return sc.Long })
	}
	return all
}

// quorumLosses returns the scopes with quorum loss to explore.
func quorumLosses(deep bool) []model.QuorumLoss {
	if deep {
		return model.DeepQuorumLosses()
	}
	return model.QuorumLosses()
}

// rollouts returns the scopes with rollouts to explore.
func rollouts(deep, short bool) []model.Rollout {
	switch {
	case deep:
		return model.DeepRollouts()
	case short:
		return model.Rollouts()
	}
	return slices.Concat(model.Rollouts(), model.LongRollouts())
}

// maxWalked is the highest limit of states in walk, whose explorations keep them unpacked in memory.
const maxWalked = 4_000_000

// walk explores scopes of one type, prints the results, and reports whether all promises hold. An exploration without a
// limit must be complete.
func walk[S any](ctx context.Context, out io.Writer, scopes []S,
	explore func(ctx context.Context, sc S, most int) model.Result, most int,
) bool {
	ok := true
	if most > 0 {
		most = min(most, maxWalked)
	}
	for _, sc := range scopes {
		r := explore(ctx, sc, most)
		fmt.Fprintln(out, r)
		printBreach(out, r.Breach)
		ok = ok && r.Breach == nil && (r.Complete || most > 0 && ctx.Err() == nil)
	}
	return ok
}

// run explores scopes, prints the results, and reports whether all promises hold. Unless deep is set, every exploration
// must be complete.
func run(ctx context.Context, out io.Writer, scopes []model.Scenario, deep bool, most, workers int) bool {
	ok := true
	for _, sc := range scopes {
		if deep {
			sc.MaxStates = most
		}
		r := model.Explore(ctx, sc, workers)
		fmt.Fprintln(out, r)
		printBreach(out, r.Breach)
		ok = ok && r.Breach == nil && (r.Complete || (deep && ctx.Err() == nil))
		runtime.GC() // the next exploration needs the memory
	}
	return ok
}

// mistakes prints how every seeded mistake was found, and reports whether all were found.
func mistakes(ctx context.Context, out io.Writer) bool {
	ok := true
	for _, m := range model.Mistakes() {
		ok = mistake(out, m.Name, m.Promise, m.Explore(ctx)) && ok
	}
	for _, m := range model.QuorumLossMistakes() {
		ok = mistake(out, m.Name, m.Promise, m.Explore(ctx)) && ok
	}
	for _, m := range model.RolloutMistakes() {
		ok = mistake(out, m.Name, m.Promise, m.Explore(ctx)) && ok
	}
	return ok
}

// mistake prints how a seeded mistake was found, and reports whether it was found.
func mistake(out io.Writer, name, promise string, r model.Result) bool {
	if r.Breach == nil || r.Breach.Promise != promise {
		fmt.Fprintf(out, "%-72s NOT FOUND as %s\n", name, promise)
		printBreach(out, r.Breach)
		return false
	}
	fmt.Fprintf(out, "%-72s %-8s %6d states %3d deep: %s\n", name, r.Breach.Promise, r.States, r.Depth, r.Breach.Text)
	return true
}

func printBreach(out io.Writer, b *model.Breach) {
	if b != nil {
		fmt.Fprintf(out, "%s: %s\n%s\n", b.Promise, b.Text, b.Trace)
	}
}
