// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/recovery"
)

func (a *app) recoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "recover",
		GroupID: groupOperate,
		Short:   "Bring back a cluster whose majority is lost for good",
		Long: "Bring back a cluster whose majority is lost for good, in three steps: the facts of every host that\n" +
			"is left, a plan made of them, and the plan applied on each of these hosts, in any order. etcd need\n" +
			"not run. One host continues alone with all that is in its log, under a new cluster ID; the others\n" +
			"move their data aside, which deletes nothing, and join it again as they always do.",
		Args: onlySubcommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(a.recoverFactsCommand(), a.recoverPlanCommand(), a.recoverApplyCommand(), a.recoverStatusCommand(),
		a.recoverGiveUpCommand())
	return cmd
}

func (a *app) recoverFactsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "facts",
		Short: "Write what this host knows, as JSON: quorumctl recover facts > n1.json",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var facts recovery.Facts
			err := whileReading(cmd.Context(), func(ctx context.Context) (err error) {
				facts, err = a.client().RecoveryFacts(ctx)
				return err
			})
			if err != nil {
				return cannot("tell the facts", err)
			}
			text, err := asJSON(facts)
			if err != nil {
				return cannot("encode the facts", err)
			}
			return a.write(text)
		},
	}
}

// readsFor is for how long a log is waited for that is being read.
const readsFor = 15 * time.Minute

// whileReading asks again while quorumd says that it is still reading the log; each time it answers only after a while.
func whileReading(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readsFor)
	defer cancel()
	for {
		err := ask(ctx)
		if e, is := errors.AsType[*control.Error](err); !is || e.Code != control.CodeReading || ctx.Err() != nil {
			return err
		}
	}
}

func (a *app) recoverPlanCommand() *cobra.Command {
	var wish recovery.Choice
	var out, snapshot string
	var unproven bool
	cmd := &cobra.Command{
		Use:   "plan FACTS...",
		Short: "Compare the hosts' facts, and make a plan of them",
		Long: "Compare the facts of the hosts that are left, show what each of them would lose as the survivor,\n" +
			"and propose the one whose log is the most advanced. The plan is written once the cluster's name was\n" +
			"typed, or given with --cluster. Every voter of which there are no facts must be named with --gone:\n" +
			"such a host must never come back as it is, since several of them could form the old cluster again\n" +
			"beside the new one. So it is with a host that continues alone by an earlier plan and has not given it\n" +
			"up: no other plan is made, unless that host is named with --kept-off. Where no data are left a host\n" +
			"goes on with a snapshot: --from-snapshot names one in the store of this host, newest for the newest,\n" +
			"or a file that etcdctl snapshot save has written, with a / in its path, which lies on the host that\n" +
			"goes on and is this one.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			facts, err := readAllFacts(args)
			if err != nil {
				return err
			}
			if snapshot != "" {
				if wish.Snapshot, err = a.findSnapshot(cmd.Context(), snapshot, facts, unproven); err != nil {
					return err
				}
			}
			return a.recoverPlan(facts, wish, out, cmd.InOrStdin())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&wish.Cluster, "cluster", "", "the cluster's name, where nobody can be asked to type it")
	flags.StringSliceVar(&wish.Gone, "gone", nil, "voters that never come back, by name or ID")
	flags.StringSliceVar(&wish.KeptOff, "kept-off", nil,
		"hosts that an earlier plan lets go on alone and that never start again as they are, by name")
	flags.StringVar(&wish.Survivor, "survivor", "", "another host than the most advanced, by name")
	flags.StringVar(&snapshot, "from-snapshot", "", "a snapshot to go on with, where no data are left")
	flags.BoolVar(&unproven, "unproven-origin", false,
		"accept a snapshot that no host has a record of: it may be forged")
	flags.StringVar(&out, "out", "plan.json", "the file to write; it must not exist")
	completesBy(cmd, "gone", completeGone)
	completesBy(cmd, "survivor", completeSurvivor)
	return cmd
}

// readAllFacts reads the files before anything else is asked.
func readAllFacts(names []string) ([]recovery.Facts, error) {
	facts := make([]recovery.Facts, 0, len(names))
	for _, name := range names {
		f, err := readFacts(name)
		if err != nil {
			return nil, usage("quorumctl recover facts > "+name+", on that host", "cannot plan the recovery: %s: %v",
				name, err)
		}
		facts = append(facts, f)
	}
	return facts, nil
}

// planExists is the error for a plan file that is there already: a plan may be in force, and is never overwritten.
func planExists(out string) error {
	return usage("if no host has applied that plan, move it away; otherwise keep it and write this one to --out FILE",
		"cannot write the plan: %s exists", out)
}

func (a *app) recoverPlan(facts []recovery.Facts, wish recovery.Choice, out string, in io.Reader) error {
	wish.At = time.Now()
	typed := wish.Cluster
	if typed == "" { // it is only shown
		wish.Cluster = facts[0].Cluster
	}
	wish.ID = strings.ToLower(rand.Text()[:12])
	wish.New = randomID()
	plan, err := recovery.NewPlan(facts, wish)
	shown := a.showComparison(facts, plan)
	switch {
	case shown != nil:
		return shown
	case err != nil:
		return &failure{code: exitFault, message: err.Error(), hint: "see MAJORITY LOST in quorumctl(1)"}
	}
	if _, err := os.Lstat(out); err == nil { // before the operator types the name in vain
		return planExists(out)
	}
	if typed == "" {
		typed = a.askName(in)
	}
	if typed != wish.Cluster {
		return usage("type the name of the cluster, or add --cluster NAME, to write the plan",
			"cannot plan the recovery: not confirmed, no plan was written")
	}
	return a.writePlan(out, plan)
}

// maxTyped bounds what is read of a terminal, in bytes.
const maxTyped = 1024

// askName asks who sits at the terminal for the name of the cluster; nobody else is asked.
func (a *app) askName(in io.Reader) string {
	terminal, is := in.(*os.File)
	if !is || !isTerminal(terminal) {
		return ""
	}
	fmt.Fprint(a.out, "\nThe name of the cluster, to write the plan: ")
	line, err := bufio.NewReader(io.LimitReader(terminal, maxTyped)).ReadString('\n')
	if err != nil {
		return ""
	}
	return strings.TrimSpace(line)
}

func readFacts(name string) (recovery.Facts, error) {
	file, err := os.Open(name)
	if err != nil {
		return recovery.Facts{}, err
	}
	defer file.Close() // it was only read
	return recovery.ReadFacts(file)
}

func (a *app) writePlan(out string, plan recovery.Plan) error {
	text, err := asJSON(plan)
	if err != nil {
		return cannot("encode the plan", err)
	}
	if len(text) > recovery.MaxSize {
		return cannot("write the plan", fmt.Errorf("it has %d bytes, and a host takes %d at most", len(text),
			recovery.MaxSize))
	}
	file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return planExists(out)
	}
	if err != nil {
		return cannot("write the plan", err)
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return cannot("write the plan", err)
	}
	p := &page{coloured: a.coloured()}
	p.line("plan %s is written to %s. Nothing was changed yet.", plan.ID, out)
	p.line("→ on every host that is left, in any order: quorumctl recover apply %s", out)
	return a.write([]byte(p.String()))
}

func (a *app) recoverApplyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "apply PLAN",
		Short: "Have this host do its part of a plan",
		Long: "Have this host do its part of a plan. It obeys only if the plan names this host's own facts, its\n" +
			"data have not changed since, and it sees no quorum. Applied again it goes on, or is done already.\n" +
			"With - for PLAN it is read from the standard input, as ssh gives it.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.recoverApply(cmd.Context(), args[0], cmd.InOrStdin())
		},
	}
}

func (a *app) recoverApply(ctx context.Context, name string, in io.Reader) error {
	plan, err := readPlan(name, in)
	if err != nil {
		return usage("quorumctl recover plan writes it", "cannot apply the plan: %v", err)
	}
	var r control.Recovery
	err = whileReading(ctx, func(ctx context.Context) (err error) {
		r, err = a.client().ApplyRecovery(ctx, plan)
		return err
	})
	if err != nil {
		return cannot("apply the plan", err)
	}
	return a.emit(r, func(p *page) {
		switch {
		case r.Done:
			p.line("plan %s is carried out on this host already", r.Plan)
		case r.Alone:
			p.line("accepted: this host continues alone%s as cluster %s, by plan %s", withSnapshot(r), r.New, r.Plan)
		default:
			p.line("accepted: this host moves its data aside and joins %s again, by plan %s", r.Survivor, r.Plan)
		}
		p.line("→ quorumctl recover status")
	})
}

// readPlan reads the file of that name, or for "-" what is given by in.
func readPlan(name string, in io.Reader) (recovery.Plan, error) {
	if name == "-" {
		return recovery.ReadPlan(in)
	}
	file, err := os.Open(name)
	if err != nil {
		return recovery.Plan{}, err
	}
	defer file.Close() // it was only read
	return recovery.ReadPlan(file)
}

func (a *app) recoverGiveUpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "give-up",
		Short: "Give up the plan on this host, while it has its data",
		Long: "Give up the plan that is in force on this host, as long as this host has not begun to part with its\n" +
			"old data. etcd is started again on them. Other hosts are not told: give it up on each.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.client().AbandonRecovery(cmd.Context())
			if err != nil {
				return cannot("give the plan up", err)
			}
			return a.emit(r, func(p *page) {
				p.line("plan %s is given up on this host: etcd starts again on the data that it had", r.Plan)
				if r.Alone {
					p.line("not undone: what was copied so far stays in quorumd-recover-%s in etcd's data directory",
						r.Plan)
				}
				p.line("not undone: the plan on other hosts; give it up on each, unless they are to wait for it")
				p.line("→ quorumctl recover status")
			})
		},
	}
}
