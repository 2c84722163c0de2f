// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	return parent(&cobra.Command{
		Use:     "recover",
		GroupID: groupOperate,
		Short:   "Recover a cluster that has lost quorum for good",
		Long: "Recover a cluster that has lost quorum for good, in three steps: collect the facts of every " +
			"remaining\n" +
			"host, make a plan from them, and apply the plan on each of these hosts, in any order. etcd does\n" +
			"not have to run. One host, the survivor, continues alone with its whole log and a new cluster\n" +
			"ID. The others move their data aside (nothing is deleted) and join it as new members.",
		Example: examples("quorumctl recover collect > n1.json", "quorumctl recover plan --gone n3 n1.json n2.json",
			"quorumctl recover apply plan.json"),
	}, a.recoverCollectCommand(), a.recoverPlanCommand(), a.recoverApplyCommand(), a.recoverStatusCommand(),
		a.recoverGiveUpCommand())
}

func (a *app) recoverCollectCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:   "collect",
		Short: "Print this host's facts for recover plan, as JSON",
		Long: "Print the facts about this host that recover plan needs, as JSON: the last entry of its log, its\n" +
			"members, its versions, and whether it sees a quorum. Nothing is changed; etcd may be running.",
		Example: examples("quorumctl recover collect > n1.json", "quorumctl recover collect | jq .log"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var facts recovery.Facts
			err := retryWhileReading(cmd.Context(), func(ctx context.Context) (err error) {
				facts, err = a.client().RecoveryFacts(ctx)
				return err
			})
			if err != nil {
				return cannot("collect the facts", err)
			}
			text, err := asJSON(facts)
			if err != nil {
				return cannot("encode the facts", err)
			}
			return a.write(text)
		},
	}, printed{name: "recovery-facts", of: recovery.Facts{}})
}

// readTimeout is how long quorumctl waits while quorumd reads the log.
const readTimeout = 15 * time.Minute

// retryWhileReading repeats a request while quorumd is still reading the log. It does not pause between two requests,
// because quorumd delays its answer while it reads.
func retryWhileReading(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for {
		err := ask(ctx)
		if e, is := errors.AsType[*control.Error](err); !is || e.Code != control.CodeReading || ctx.Err() != nil {
			return err
		}
	}
}

func (a *app) recoverPlanCommand() *cobra.Command {
	var choice recovery.Choice
	var out, snapshot string
	var unproven bool
	cmd := a.prints(&cobra.Command{
		Use:   "plan FACTS...",
		Short: "Compare the hosts' facts and write a recovery plan",
		Long: "Compare the facts of the remaining hosts, show what the cluster would lose with each of them as the\n" +
			"survivor, and propose the host with the most advanced log. The plan is written after you have typed\n" +
			"the name of the cluster, or passed it with --cluster.\n\n" +
			"Use --gone to name every voter without facts. These hosts must never start again with their data:\n" +
			"several of them could form the old cluster again. If a host is the survivor of an earlier plan that\n" +
			"was not given up, no plan is made unless --kept-off names that host.\n\n" +
			"If no host has data, --from-snapshot names a snapshot in this host's store (or \"newest\"), or a file\n" +
			"from etcdctl snapshot save, with a / in its path. If it is a file, run this command on the survivor.",
		Example: examples("quorumctl recover plan --gone n3 n1.json n2.json",
			"quorumctl recover plan --survivor n2 --gone n3 n1.json n2.json",
			"quorumctl recover plan --from-snapshot newest n1.json n2.json n3.json"),
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			facts, err := readAllFacts(args)
			if err != nil {
				return err
			}
			if snapshot != "" {
				if choice.Snapshot, err = a.findSnapshot(cmd.Context(), snapshot, facts, unproven); err != nil {
					return err
				}
			}
			return a.recoverPlan(facts, choice, out, cmd.InOrStdin())
		},
	}, printed{instead: "a file for quorumd"})
	flags := cmd.Flags()
	flags.StringVar(&choice.Cluster, "cluster", "", "name of the cluster, instead of typing it")
	flags.StringSliceVar(&choice.Gone, "gone", nil, "voters that will never start again, by name or ID")
	flags.StringSliceVar(&choice.KeptOff, "kept-off", nil,
		"survivors of earlier plans that will never start again, by name")
	flags.StringVar(&choice.Survivor, "survivor", "", "name of the survivor (default: the host with the most advanced "+
		"log)")
	flags.StringVar(&snapshot, "from-snapshot", "", "snapshot to restore if no host has data")
	flags.BoolVar(&unproven, "unproven-origin", false,
		"accept a snapshot without a recorded hash, which may be forged")
	flags.StringVar(&out, "out", "plan.json", "file to write; it must not exist")
	completeWith(cmd, "gone", completeGone)
	completeWith(cmd, "survivor", completeSurvivor)
	return cmd
}

func readAllFacts(names []string) ([]recovery.Facts, error) {
	facts := make([]recovery.Facts, 0, len(names))
	for _, name := range names {
		f, err := readFacts(name)
		if err != nil {
			return nil, usage("on the host of these facts: quorumctl recover collect > "+name,
				"cannot plan the recovery: %s: %v", name, err)
		}
		facts = append(facts, f)
	}
	return facts, nil
}

// planExists returns the error for a plan file that exists. An existing plan is not overwritten, because a host may
// have applied it.
func planExists(out string) error {
	return usage("if no host has applied that plan, move it away; otherwise use --out FILE",
		"cannot write the plan: %s exists", out)
}

func (a *app) recoverPlan(facts []recovery.Facts, choice recovery.Choice, out string, in io.Reader) error {
	choice.At = time.Now()
	typed := choice.Cluster
	if typed == "" { // the plan is shown before the operator types the name
		choice.Cluster = facts[0].Cluster
	}
	choice.ID = strings.ToLower(rand.Text()[:12])
	choice.New = randomID()
	plan, err := recovery.NewPlan(facts, choice)
	shown := a.showComparison(facts, plan)
	switch {
	case shown != nil:
		return shown
	case err != nil:
		return &failure{code: exitFault, message: err.Error(), hint: "see QUORUM LOSS in quorumctl(1)"}
	}
	if _, err := os.Lstat(out); err == nil { // fail before asking for the name
		return planExists(out)
	}
	if typed == "" {
		typed = a.askName(in)
	}
	if typed != choice.Cluster {
		return usage("to write the plan, type the name of the cluster or add --cluster NAME",
			"cannot plan the recovery: not confirmed, so no plan was written")
	}
	return a.writePlan(out, plan)
}

// askName asks for the name of the cluster. It returns "" if the input is not a terminal.
func (a *app) askName(in io.Reader) string {
	if !isTerminal(in) {
		return ""
	}
	return ask(in, a.out, "\nTo write the plan, type the name of the cluster: ")
}

func readFacts(name string) (recovery.Facts, error) {
	file, err := os.Open(name)
	if err != nil {
		return recovery.Facts{}, err
	}
	defer file.Close() // the file was only read, so no data can be lost
	return recovery.ReadFacts(file)
}

func (a *app) writePlan(out string, plan recovery.Plan) error {
	text, err := asJSON(plan)
	if err != nil {
		return cannot("encode the plan", err)
	}
	if len(text) > recovery.MaxSize {
		return cannot("write the plan", fmt.Errorf("it has %d bytes; the limit is %d", len(text),
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
	p.line("wrote plan %s to %s; nothing has changed yet", plan.ID, out)
	p.line("→ on every remaining host, in any order: quorumctl recover apply %s", out)
	return a.write([]byte(p.String()))
}

func (a *app) recoverApplyCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:   "apply PLAN",
		Short: "Apply a recovery plan on this host",
		Long: "Apply a recovery plan on this host. quorumd accepts the plan only if it contains facts about this\n" +
			"host, this host's data has not changed since they were collected, and quorumd sees no quorum. Applying\n" +
			"the same plan again continues it. Use - to read the plan from standard input.",
		Example: examples("quorumctl recover apply plan.json", "quorumctl recover apply /root/plan.json"),
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.recoverApply(cmd.Context(), args[0], cmd.InOrStdin())
		},
	}, printed{name: "recovery", of: control.Recovery{}})
}

func (a *app) recoverApply(ctx context.Context, name string, in io.Reader) error {
	plan, err := readPlan(name, in)
	if err != nil {
		return usage("quorumctl recover plan writes a plan", "cannot apply the plan: %v", err)
	}
	var r control.Recovery
	err = retryWhileReading(ctx, func(ctx context.Context) (err error) {
		r, err = a.client().ApplyRecovery(ctx, plan)
		return err
	})
	return a.emitResult("apply the plan", err, r, func(p *page) {
		switch {
		case r.Done:
			p.line("plan %s is already complete on this host", r.Plan)
		case r.Alone:
			p.line("accepted plan %s: this host is the survivor%s and continues as cluster %s", r.Plan, withSnapshot(r),
				r.New)
		default:
			p.line("accepted plan %s: this host moves its data aside and joins %s", r.Plan, r.Survivor)
		}
		p.line("→ quorumctl recover status")
	})
}

// readPlan reads a plan from a file, or from in if the name is "-".
func readPlan(name string, in io.Reader) (recovery.Plan, error) {
	if name == "-" {
		return recovery.ReadPlan(in)
	}
	file, err := os.Open(name)
	if err != nil {
		return recovery.Plan{}, err
	}
	defer file.Close() // the file was only read, so no data can be lost
	return recovery.ReadPlan(file)
}

func (a *app) recoverGiveUpCommand() *cobra.Command {
	return a.prints(&cobra.Command{
		Use:   "give-up",
		Short: "Give up the plan on this host before its data is moved",
		Long: "Give up the current plan on this host. quorumd then starts etcd again on the old data. This is\n" +
			"possible until the host begins to move that data aside. It affects this host only: repeat it on the\n" +
			"others.",
		Example: examples("quorumctl recover give-up", "quorumctl recover give-up && quorumctl recover status"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.client().AbandonRecovery(cmd.Context())
			return a.emitResult("give up the plan", err, r, func(p *page) {
				p.line("gave up plan %s on this host: etcd starts again on its old data", r.Plan)
				if r.Alone {
					p.line("a partial copy, if there is one, stays in quorumd-recover-%s in etcd's data directory",
						r.Plan)
				}
				p.line("the plan still applies on other hosts: give it up there, too, or they wait for this host")
				p.line("→ quorumctl recover status")
			})
		},
	}, printed{name: "recovery", of: control.Recovery{}})
}
