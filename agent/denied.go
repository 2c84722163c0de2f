// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"

	"github.com/quorumd/quorumd/agent/cluster"
	"github.com/quorumd/quorumd/agent/policy"
)

// refuseCall makes of an error of a call to etcd what a person is told: that etcd's users and roles forbid it is no
// lack of a quorum.
func (a *Agent) refuseCall(cannot string, err error, hint string) error {
	if cluster.Denied(err) {
		return refuse(http.StatusForbidden, string(policy.PermissionDenied), cannot+a.deniedText(err),
			policy.PermissionDenied.Info().Remedy)
	}
	return refuse(http.StatusServiceUnavailable, codeUnreachable, cannot+err.Error(), hint)
}

// deniedText says what etcd has refused, to whom, and the commands that allow it.
func (a *Agent) deniedText(err error) string {
	return cluster.DeniedText(err, a.opt.Etcd.Who(), a.keys.Prefix())
}
