// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/display"
)

func (a *app) retireCommand() *cobra.Command {
	var req control.RetireRequest
	var w waitFlags
	var c confirmation
	cmd := a.prints(&cobra.Command{
		Use:     "retire [HOST]",
		GroupID: groupOperate,
		Short:   "List the retired hosts, or retire a host for good",
		Long: "Keep a host out of the cluster for good, whether or not it is healthy. If it has a voter, another\n" +
			"host joins first; then leadership is transferred, if the voter leads, and the voter leaves: proxies\n" +
			"stop using it, its member is removed, etcd is stopped and its data is moved aside. A standby leaves\n" +
			"at once. The retirement is recorded in etcd, so the host stays out across reboots and reinstallations\n" +
			"until it is undone. Before the voter has left, --undo keeps it; afterwards --undo lets the host join\n" +
			"again as a new member.\n\n" +
			"With --lost, retire a host that an operation, such as maintenance or a reboot, has taken down and that\n" +
			"will not return. Power it off first. Its operation ends at once, its member is removed, and then\n" +
			"another host joins. --lost is refused while quorumd runs on it.\n\n" +
			"Without HOST, list the retired hosts, and show which can be switched off.\n\n" +
			"With --wait, show the progress until the host can be switched off. The exit status is 75 if --wait\n" +
			"timed out; the retirement then continues.",
		Example: examples("quorumctl retire n3 --reason 'end of lease' --wait",
			"quorumctl retire n3 --lost --reason 'mainboard is dead'", "quorumctl retire n3 --undo"),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeRetire(&req.Undo),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listRetired(cmd)
			}
			req.Host = args[0]
			if req.Reason == "" && !req.Undo {
				return usage("quorumctl retire "+req.Host+" --reason '<why>'", "cannot retire %s: --reason is required",
					req.Host)
			}
			if err := w.check("retire " + req.Host); err != nil {
				return err
			}
			return a.retire(cmd, req, w, c)
		},
	}, printed{name: "retirement", of: control.Retirement{}, with: "HOST"},
		printed{name: "retired", of: control.RetiredHosts{}})
	flags := cmd.Flags()
	flags.StringVar(&req.Reason, "reason", "", "why, in one line ("+inHistory+"); optional with --undo")
	flags.BoolVar(&req.Undo, "undo", false, "let the host join again")
	flags.BoolVar(&req.Lost, "lost", false, "an operation took the host down, and the host will not return")
	w.onlyWait(cmd)
	cmd.MarkFlagsMutuallyExclusive("undo", "wait")
	cmd.MarkFlagsMutuallyExclusive("undo", "lost")
	c.flags(cmd)
	return cmd
}

// completeRetire offers the hosts that are not retired, or with --undo those that are.
func (a *app) completeRetire(undo *bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
		defer cancel()
		s, err := a.client().Status(ctx)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, h := range s.Retired {
			if *undo {
				names = append(names, h.Label())
			}
		}
		for _, h := range s.Hosts {
			if !*undo && h.Retired == "" {
				names = append(names, h.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// listRetired lists the retired hosts. It refuses the flags that need a host.
func (a *app) listRetired(cmd *cobra.Command) error {
	if name := flagGiven(cmd); name != "" {
		return usage("quorumctl retire HOST, with the same flags", "cannot retire a host: --%s needs a host", name)
	}
	hosts, err := a.client().RetiredHosts(cmd.Context())
	return a.emitResult("list the retired hosts", err, hosts, func(p *page) { writeRetiredHosts(p, hosts.Hosts) })
}

func (a *app) retire(cmd *cobra.Command, req control.RetireRequest, w waitFlags, c confirmation) error {
	what := "retire " + req.Host
	switch {
	case req.Undo:
		what = "undo the retirement of " + req.Host
	case req.Successor != "":
		what = "replace " + req.Host
	}
	send, err := a.confirm(cmd, c, what, func() (preview, error) {
		asks := req
		asks.DryRun = true
		plan, err := a.client().Retire(cmd.Context(), asks)
		return preview{doc: plan, empty: plan.Unchanged && !w.isSet(), text: func(p *page) {
			writeRetirement(p, plan)
		}}, err
	})
	if err != nil || !send {
		return err
	}
	plan, err := a.client().Retire(cmd.Context(), req)
	if err != nil {
		return cannot(what, err)
	}
	if w.isSet() {
		return a.followRetirement(cmd.Context(), plan, w.timeout)
	}
	return a.emit(plan, func(p *page) {
		writeRetirement(p, plan)
		if !plan.Undo {
			p.line("→ quorumctl retire")
		}
	})
}

// followRetirement shows the progress until the host can be switched off.
func (a *app) followRetirement(ctx context.Context, asked control.Retirement, timeout time.Duration) error {
	name := asked.Host.Label()
	f := &follower{
		app: a, progress: a.newProgress(a.out), timeout: timeout, goal: "until " + name + " can be switched off",
		effect: "the retirement continues", hint: "quorumctl retire shows the retired hosts",
	}
	known, undone := false, false
	_, err := f.follow(ctx, asked.Host.Since, func(s control.Status) observation {
		i := slices.IndexFunc(s.Retired, func(h control.Retired) bool {
			return h.ID == asked.Host.ID && h.Since.Equal(asked.Host.Since)
		})
		if i < 0 {
			undone = known && s.Cluster.Reachable
			return observation{state: "retiring", text: votersProgress(s), done: undone, hidden: true}
		}
		known = true
		state, text := s.Retired[i].State, votersProgress(s)
		return observation{
			state: state, text: text, summary: name + " " + state + display.After(", ", text),
			done: s.Cluster.Reachable && state == control.RetiredLeft,
		}
	})
	switch {
	case err != nil:
		return err
	case undone:
		return &failure{
			code: exitFault, hint: "quorumctl history", message: "the retirement of " + name + " was undone meanwhile",
		}
	}
	return a.emit(asked, func(p *page) {
		if asked.Lost {
			p.line("%s is retired, and its member is removed", word{name, bold})
			return
		}
		p.line("%s can be switched off", word{name, bold})
	})
}

func writeRetiredHosts(p *page, hosts []control.Retired) {
	if len(hosts) == 0 {
		p.line("no host is retired")
		return
	}
	t := table{head: []string{"HOST", "STATE", "SINCE", "BY", "REASON"}}
	for _, h := range hosts {
		t.add(word{h.Label(), bold}, retiredState(h), word{Text: retiredSince(h)}, word{Text: h.By},
			word{Text: h.Reason})
	}
	p.table(t)
}

func retiredSince(h control.Retired) string {
	if h.Since.IsZero() {
		return ""
	}
	return display.Timestamp(h.Since)
}

func retiredState(h control.Retired) word {
	switch {
	case h.State == control.RetiredLeft:
		return word{"can be switched off", good}
	case h.State == control.RetiredUnreadable:
		return word{"its record cannot be read", bad}
	case h.Member == "":
		return word{"leaves", warn}
	}
	text := "its " + string(h.Member) + " has not left yet"
	return word{text + display.After("; named to replace it: ", h.Successor), warn}
}

// writeRetirement shows what retiring a host, or undoing it, does or would do.
func writeRetirement(p *page, r control.Retirement) {
	name := word{r.Host.Label(), bold}
	switch {
	case r.Undo && r.Unchanged:
		p.line("nothing to do: %s is not retired", name)
		return
	case r.Undo:
		p.line("%s the retirement of %s: the host can join again", would(r.DryRun, "undo", "undid"), name)
		return
	case r.Unchanged:
		p.line("nothing to record: %s was already retired by %s%s", name, r.Host.By, display.After(": ", r.Host.Reason))
	default:
		p.line("%s %s", would(r.DryRun, "retire", "retiring"), name)
		if r.Host.Successor != "" {
			p.line("    joins    %s, and no other host", r.Host.Successor)
		}
		p.line("    reason   %s", r.Host.Reason)
	}
	if r.Size != nil {
		p.line("    size     %s, recorded with the retirement", display.Count(r.Size.Voters, "voter", "voters"))
	}
	writeSteps(p, r.Steps, nil)
}
