// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/recovery"
	"github.com/quorumd/quorumd/cmd/quorumctl/pki"
)

// hostNames returns the names of all hosts, or none if quorumd does not answer within a second.
func (a *app) hostNames(ctx context.Context) []string {
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s, err := a.client().Status(bounded)
	if err != nil {
		return nil
	}
	var names []string
	for _, h := range s.Hosts {
		names = append(names, h.Name)
	}
	return names
}

// completeHosts offers hosts for a comma-separated list.
func (a *app) completeHosts(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	return completeList(a.hostNames(cmd.Context()), toComplete)
}

func (a *app) completeCodeOrHost(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return append(a.hostNames(cmd.Context()), codeNames()...), cobra.ShellCompDirectiveNoFileComp
}

// completeGone offers the members that the given fact files mention, except the hosts whose facts they contain.
func completeGone(_ *cobra.Command, files []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	facts := readableFacts(files)
	var gone []string
	for _, f := range facts {
		for _, m := range slices.Concat(f.Members, f.Log.Members) {
			if m.Name != "" && !slices.Contains(gone, m.Name) && !slices.Contains(factHosts(facts), m.Name) {
				gone = append(gone, m.Name)
			}
		}
	}
	return completeList(gone, toComplete)
}

// completeSurvivor offers the hosts whose facts are given.
func completeSurvivor(_ *cobra.Command, files []string, _ string) ([]string, cobra.ShellCompDirective) {
	return factHosts(readableFacts(files)), cobra.ShellCompDirectiveNoFileComp
}

// completeCertified offers the hosts with certificates in a directory, as the first argument.
func completeCertified(dir *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, _ := pki.HostsIn(*dir) // no names if the directory cannot be read
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeCertifiedList offers the hosts with certificates in a directory, for a comma-separated list.
func completeCertifiedList(dir *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		names, _ := pki.HostsIn(*dir) // no names if the directory cannot be read
		return completeList(names, toComplete)
	}
}

// readableFacts reads fact files, and skips those that it cannot read.
func readableFacts(files []string) []recovery.Facts {
	var all []recovery.Facts
	for _, name := range files {
		if f, err := readFacts(name); err == nil {
			all = append(all, f)
		}
	}
	return all
}

func factHosts(facts []recovery.Facts) []string {
	var names []string
	for _, f := range facts {
		names = append(names, f.Host)
	}
	return names
}

// completeList offers the names that a comma-separated list does not contain yet.
func completeList(names []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	head := toComplete[:strings.LastIndex(toComplete, ",")+1]
	var offers []string
	for _, name := range names {
		if !strings.Contains(","+head, ","+name+",") {
			offers = append(offers, head+name)
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeWith registers a completion function for a flag.
func completeWith(cmd *cobra.Command, flag string, offers cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, offers); err != nil {
		panic(err) // the flag does not exist, which is a bug
	}
}
