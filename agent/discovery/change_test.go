// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A name server changes its records between queries. Run reports each change, and an invalid or empty answer as an
// error.
func TestChangedServiceRecordsAreReportedAndInvalidOnesRefused(t *testing.T) {
	t.Parallel()
	n := newNames(t)
	n.records.Store(&[]target{{"n1.example.com.", 2379}, {"n2.example.com.", 2379}})
	type answer struct {
		endpoints []string
		err       error
	}
	answers, stop, ended := make(chan answer), make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	source := SRV(n.resolver(), "example.com", "https")
	go func() {
		defer close(ended)
		Run(ctx, Options{
			Source: func(ctx context.Context) ([]string, error) {
				found, err := source(ctx)
				select {
				case <-stop: // only between two queries
					cancel()
				default:
				}
				return found, err
			},
			Scheme: "https", Interval: time.Millisecond, Timeout: 20 * time.Second,
			Logger: slog.New(slog.DiscardHandler),
			Report: func(endpoints []string, err error) {
				select {
				case answers <- answer{endpoints, err}:
				case <-stop:
				}
			},
		})
	}()
	t.Cleanup(func() { close(stop); <-ended; cancel() })
	for _, c := range []struct {
		what    string
		records []target
		want    string // the endpoints, or a part of the error
	}{
		{"the first answer", nil, "[https://n1.example.com:2379 https://n2.example.com:2379]"},
		{
			"all others",
			[]target{{"n3.example.com.", 2379}, {"n4.example.com.", 2380}},
			"[https://n3.example.com:2379 https://n4.example.com:2380]",
		},
		{"no records", []target{}, "no such host"},
		{"fewer", []target{{"n4.example.com.", 2380}}, "[https://n4.example.com:2380]"},
		{"no port", []target{{"n4.example.com.", 0}}, "is not a URL"},
		{"the first again", []target{{"n1.example.com.", 2379}}, "[https://n1.example.com:2379]"},
	} {
		if c.records != nil {
			n.records.Store(&c.records)
			<-answers // discard the answer to a query before the change
		}
		got := <-answers
		text := fmt.Sprint(got.endpoints)
		if got.err != nil {
			text = got.err.Error()
		}
		if !strings.Contains(text, c.want) || got.err != nil && got.endpoints != nil {
			t.Errorf("%s: %s, want %s", c.what, text, c.want)
		}
	}
}
