// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

// Command quorumd is the agent that runs on every host that may hold an etcd member.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quorumd/quorumd/agent/journalcatalog"
	"github.com/quorumd/quorumd/cmd/quorumd/daemon"
	"github.com/quorumd/quorumd/systemd"
)

const (
	exitUsage     = 64
	gcPercent     = 200 // growth of the heap, in percent, that starts a garbage collection
	defaultConfig = "/etc/quorumd/quorumd.yaml"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if code, is := daemon.Child(args); is {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	code := 0
	root := &cobra.Command{
		Use: "quorumd", Short: "manage the etcd member of a bare-metal host",
		Version: daemon.Version(), SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(runCommand(&code), proxyCommand(&code))
	root.SetArgs(args)
	// an error means invalid arguments; for any other error, the command sets code and returns nil
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "quorumd: %v\n", err)
		return exitUsage
	}
	return code
}

func runCommand(code *int) *cobra.Command {
	var config, runAs, helper, level string
	command := &cobra.Command{
		Use: "run", Short: "run the agent", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var at slog.Level
			if err := at.UnmarshalText([]byte(level)); err != nil {
				return fmt.Errorf("invalid --log-level %q: use debug, info, warn or error", level)
			}
			// quorumd is idle nearly all the time. On more than one processor (Go uses all by default), its threads
			// wake each other for every response, which costs a fifth of the CPU time of an idle agent.
			runtime.GOMAXPROCS(1)
			if os.Getenv("GOGC") == "" { // half as many collections cost 3 MB and save a twentieth of the CPU time
				debug.SetGCPercent(gcPercent)
			}
			log := slog.New(systemd.LogHandler(os.Stderr, at, journalcatalog.ID))
			signals := make(chan os.Signal, 1)
			signal.Notify(signals, syscall.SIGHUP)
			again, err := daemon.Serve(command.Context(),
				daemon.Options{
					Config: config, RunAs: runAs, Helper: helper, Version: daemon.Version(),
					Logger: log,
				}, signals)
			if again {
				err = restart()
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "quorumd: %v\n", err)
			}
			*code = daemon.ExitCode(err)
			return nil
		},
	}
	command.Flags().StringVar(&config, "config", defaultConfig, "configuration file")
	command.Flags().StringVar(&runAs, "runas", "",
		"socket of the service that runs as etcd's user (default: access etcd's files as this user)")
	command.Flags().StringVar(&helper, "helper", "",
		"socket of the service that runs as root (default: act as this user)")
	command.Flags().StringVar(&level, "log-level", "info", "debug, info, warn or error")
	return command
}

func proxyCommand(code *int) *cobra.Command {
	var config string
	command := &cobra.Command{
		Use: "proxy", Short: "forward this host's etcd clients to the voters", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			// Up to two threads copy data. One more Go processor serves everything else, because a thread that finds
			// no free processor after a system call has to wait.
			runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0)) + 1)
			log := slog.New(systemd.LogHandler(os.Stderr, slog.LevelInfo, journalcatalog.ID))
			err := daemon.Proxy(command.Context(), config, log)
			if err != nil {
				fmt.Fprintf(os.Stderr, "quorumd: %v\n", err)
			}
			*code = daemon.ExitCode(err)
			return nil
		},
	}
	command.Flags().StringVar(&config, "config", defaultConfig, "configuration file")
	return command
}

// restart executes quorumd again with the same arguments, in place of this process. It returns only with an error.
func restart() error {
	signal.Ignore(syscall.SIGHUP) // a SIGHUP must not end the new process before it handles the signal
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(program, os.Args, os.Environ())
	}
	return fmt.Errorf("cannot restart: %w", err)
}
