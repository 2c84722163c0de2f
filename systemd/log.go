// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/journal"
)

// LevelEmergency is for messages that all logged-in users must see immediately. The journal writes such a line to every
// terminal (journald.conf(5), ForwardToWall=).
const LevelEmergency = slog.LevelError + 8

// codeKey is the key of the attribute whose value becomes the field QUORUMD_CODE.
const codeKey = "code"

// LogHandler returns the log handler of a program that logs to its standard error. If systemd has connected stderr to
// the journal, the handler sends each line to the journal with its priority, its attribute "code" as the field
// QUORUMD_CODE, and the ID that messageID returns for the code as MESSAGE_ID. Otherwise, or if sending fails, slog's
// text handler writes the line to stderr.
func LogHandler(stderr io.Writer, level slog.Leveler, messageID func(code string) string) slog.Handler {
	text := slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})
	if is, err := journal.StderrIsJournalStream(); err != nil || !is {
		return text
	}
	return newJournalHandler(text, journal.Send, messageID)
}

// journalHandler sends records to the journal.
type journalHandler struct {
	fallback  slog.Handler
	send      func(message string, priority journal.Priority, fields map[string]string) error
	messageID func(code string) string

	attrs slog.Handler // writes the attributes to line
	mu    *sync.Mutex  // guards line
	line  *bytes.Buffer
}

func newJournalHandler(fallback slog.Handler, send func(string, journal.Priority, map[string]string) error,
	messageID func(string) string,
) *journalHandler {
	var line bytes.Buffer
	attrs := slog.NewTextHandler(&line, &slog.HandlerOptions{
		Level: slog.LevelDebug, // the level is checked by fallback
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
				return slog.Attr{} // the journal has separate fields for them
			}
			return a
		},
	})
	return &journalHandler{
		fallback: fallback, send: send, messageID: messageID, attrs: attrs, mu: new(sync.Mutex),
		line: &line,
	}
}

// Enabled reports whether a line of that level is logged.
func (h *journalHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.fallback.Enabled(ctx, level)
}

// Handle sends a record. A code becomes a field only if it is an attribute of the record, not of WithAttrs.
func (h *journalHandler) Handle(ctx context.Context, r slog.Record) error {
	message, err := h.message(ctx, r)
	if err != nil {
		return err
	}
	fields := map[string]string{"SYSLOG_IDENTIFIER": "quorumd"}
	r.Attrs(func(a slog.Attr) bool {
		if code := a.Value.String(); a.Key == codeKey && code != "" {
			fields["QUORUMD_CODE"], fields["MESSAGE_ID"] = code, h.messageID(code)
		}
		return true
	})
	if err := h.send(message, priority(r.Level), fields); err != nil {
		return h.fallback.Handle(ctx, r)
	}
	return nil
}

// message returns the text of a record with its attributes.
func (h *journalHandler) message(ctx context.Context, r slog.Record) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.line.Reset()
	if err := h.attrs.Handle(ctx, r); err != nil {
		return "", fmt.Errorf("cannot format a log line: %w", err)
	}
	return strings.TrimSpace(r.Message + " " + h.line.String()), nil
}

// WithAttrs returns a handler that adds attributes to each line.
func (h *journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.fallback, with.attrs = h.fallback.WithAttrs(attrs), h.attrs.WithAttrs(attrs)
	return &with
}

// WithGroup returns a handler that puts the attributes of each line into a group.
func (h *journalHandler) WithGroup(name string) slog.Handler {
	with := *h
	with.fallback, with.attrs = h.fallback.WithGroup(name), h.attrs.WithGroup(name)
	return &with
}

func priority(level slog.Level) journal.Priority {
	switch {
	case level >= LevelEmergency:
		return journal.PriEmerg
	case level >= slog.LevelError:
		return journal.PriErr
	case level >= slog.LevelWarn:
		return journal.PriWarning
	case level >= slog.LevelInfo:
		return journal.PriInfo
	}
	return journal.PriDebug
}
