// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package fleetlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
)

const (
	header   = "fleet-lock-protocol"
	preRoute = "/v1/pre-reboot"
	endRoute = "/v1/steady-state"
	maxID    = 128 // maximum bytes of a client's ID and of its group
)

// The kinds of refusals. Clients use them as metric labels, so they are few and fixed.
const (
	kindBadRequest  = "bad_request"          // violates the protocol
	kindNotFound    = "not_found"            // no such path
	kindNotPost     = "method_not_allowed"   // both paths require POST
	kindTooLarge    = "too_large"            // the body is too large
	kindBusy        = "busy"                 // too many requests are waiting
	kindWaiting     = "waiting_for_turn"     // not yet; the client should retry
	kindOtherClient = "held_by_other_client" // a client with a different ID has already requested this host's reboot
	kindOther       = "in_other_maintenance" // another maintenance of this host is requested or in progress
	kindReturning   = "returning"            // the host is not back yet after the reboot
	kindWithdrawn   = "withdrawn"            // the request was cancelled in the meantime
	kindUnable      = "unable"               // quorumd cannot accept the request; the value has the reason
	kindNone        = "none"                 // only in metrics: the request was granted
)

func kinds() []string {
	return []string{
		kindNone, kindBadRequest, kindNotFound, kindNotPost, kindTooLarge, kindBusy, kindWaiting, kindOtherClient,
		kindOther, kindReturning, kindWithdrawn, kindUnable,
	}
}

// refusal is the body of every response except 200.
type refusal struct {
	Kind   string `json:"kind"`
	Value  string `json:"value"`
	status int
}

func (r *refusal) Error() string { return r.Kind + ": " + r.Value }

func refuse(status int, kind, format string, args ...any) *refusal {
	return &refusal{Kind: kind, Value: fmt.Sprintf(format, args...), status: status}
}

// client identifies the caller.
type client struct {
	ID    string `json:"id"`
	Group string `json:"group"`
}

// idText matches a valid ID or group. Both are displayed, so only harmless characters are valid.
var idText = regexp.MustCompile(`^[A-Za-z0-9._:@+-]+$`)

// checkRequest refuses requests that violate the protocol, and requests that a web page could cause a browser to send.
func checkRequest(r *http.Request) *refusal {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	local := err == nil && addr.IsLoopback() || host == "localhost"
	switch {
	case r.URL.Path != preRoute && r.URL.Path != endRoute:
		return refuse(http.StatusNotFound, kindNotFound, "not found: the paths are %s and %s", preRoute, endRoute)
	case r.Method != http.MethodPost:
		return refuse(http.StatusMethodNotAllowed, kindNotPost, "method not allowed: send a POST")
	case len(r.Header.Values(header)) != 1 || r.Header.Get(header) != "true":
		return refuse(http.StatusBadRequest, kindBadRequest, "cannot accept the request: send the header %q",
			header+": true")
	case !local || r.Header.Get("Origin") != "":
		return refuse(http.StatusBadRequest, kindBadRequest,
			"cannot serve browsers: use the address in fleetlock.listen, and send no Origin header")
	}
	return nil
}

// readClient reads the body of a request. The caller limits its size.
func readClient(body io.Reader) (client, *refusal) {
	data, err := io.ReadAll(body)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return client{}, refuse(http.StatusRequestEntityTooLarge, kindTooLarge,
			"cannot accept the request: its body is too large")
	}
	if err != nil {
		return client{}, refuse(http.StatusBadRequest, kindBadRequest, "cannot read the request")
	}
	var document struct {
		Params client `json:"client_params"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return client{}, refuse(http.StatusBadRequest, kindBadRequest,
			`cannot read the request: send {"client_params":{"id":"ID","group":"GROUP"}}`)
	}
	for what, text := range map[string]string{"id": document.Params.ID, "group": document.Params.Group} {
		if len(text) > maxID || !idText.MatchString(text) {
			return client{}, refuse(http.StatusBadRequest, kindBadRequest,
				"cannot accept the request: client_params.%s must be 1 to %d letters, digits and . _ : @ + -", what,
				maxID)
		}
	}
	return document.Params, nil
}
