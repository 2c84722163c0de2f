// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/google/go-cmp/cmp"
)

// sent is what the journal received.
type sent struct {
	Message  string
	Priority journal.Priority
	Fields   map[string]string
}

func TestALogLineReachesTheJournalWithItsCode(t *testing.T) {
	t.Parallel()
	var lines []sent
	var stderr bytes.Buffer
	send := func(message string, p journal.Priority, fields map[string]string) error {
		lines = append(lines, sent{message, p, fields})
		return nil
	}
	log := slog.New(newJournalHandler(slog.NewTextHandler(&stderr, nil), send, func(code string) string {
		return "id of " + code
	}))
	log.Debug("not wanted")
	log.Info("waiting", "code", "PAUSED", "text", "until noon")
	log.With("unit", "etcd.service").Warn("health changed", "code", "")
	log.WithGroup("lock").Error("given up", "after", 3)
	log.Log(t.Context(), LevelEmergency, "look here")
	want := []sent{
		{
			"waiting code=PAUSED text=\"until noon\"", journal.PriInfo,
			map[string]string{"SYSLOG_IDENTIFIER": "quorumd", "QUORUMD_CODE": "PAUSED", "MESSAGE_ID": "id of PAUSED"},
		},
		{
			"health changed unit=etcd.service code=\"\"", journal.PriWarning,
			map[string]string{"SYSLOG_IDENTIFIER": "quorumd"},
		},
		{"given up lock.after=3", journal.PriErr, map[string]string{"SYSLOG_IDENTIFIER": "quorumd"}},
		{"look here", journal.PriEmerg, map[string]string{"SYSLOG_IDENTIFIER": "quorumd"}},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the journal was given (-want +got)\n%s", diff)
	}
	if stderr.Len() > 0 {
		t.Errorf("standard error: %s", &stderr)
	}
}

func TestALineThatTheJournalRefusesGoesToStandardError(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	send := func(string, journal.Priority, map[string]string) error { return errors.New("no journal") }
	log := slog.New(newJournalHandler(slog.NewTextHandler(&stderr, nil), send, strings.ToLower))
	log.With("unit", "etcd.service").Warn("step failed", "code", "STEP_FAILED")
	if got := stderr.String(); !strings.Contains(got,
		`level=WARN msg="step failed" unit=etcd.service code=STEP_FAILED`) {
		t.Errorf("standard error: %q", got)
	}
}

func TestOutsideOfTheJournalTheLogIsPlainText(t *testing.T) { // not parallel, because it sets $JOURNAL_STREAM
	for _, stream := range []string{"", "1:2", "nonsense"} {
		t.Setenv("JOURNAL_STREAM", stream)
		var stderr bytes.Buffer
		slog.New(LogHandler(&stderr, slog.LevelWarn, strings.ToLower)).Warn("step failed", "code", "STEP_FAILED")
		slog.New(LogHandler(&stderr, slog.LevelWarn, strings.ToLower)).Info("not wanted")
		if got := stderr.String(); !strings.Contains(got, `level=WARN msg="step failed" code=STEP_FAILED`) ||
			strings.Count(got, "\n") != 1 {
			t.Errorf("JOURNAL_STREAM=%s: %q", stream, got)
		}
	}
}
