// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/tls"
	"net/http"

	"github.com/quorumd/quorumd/agent/config"
	"github.com/quorumd/quorumd/agent/founding"
)

// openFounding makes what the listed hosts talk by, or nil when none are listed.
func openFounding(conf config.Config, trust func() *tls.Config) *founding.Post {
	if conf.Bootstrap.Expect == 0 {
		return nil
	}
	var others []founding.Host
	for _, h := range conf.Bootstrap.Listed() {
		if h.Name != conf.Host.Name {
			others = append(others, founding.Host{Name: h.Name, URL: h.URL})
		}
	}
	return founding.New(founding.Options{
		Others: others, Interval: conf.Timing.Interval, Timeout: conf.Timing.CallTimeout, TLS: trust, Now: sinceBoot,
	})
}

// beside serves this host's word next to the page, if there is one.
func beside(post *founding.Post, page http.Handler) http.Handler {
	if post == nil {
		return page
	}
	mux := http.NewServeMux()
	mux.Handle("/", page)
	mux.Handle("GET "+founding.Path, post)
	return mux
}
