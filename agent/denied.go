// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"net/http"
	"strings"

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

// deniedText says what etcd has refused, to whom, and the commands that allow it. Below its own prefix a role is
// enough; who adds members, promotes and removes them, or moves the leadership, must have etcd's role root.
func (a *Agent) deniedText(err error) string {
	who := a.opt.Etcd.Who()
	if who == "" {
		return fmt.Sprintf("etcd wants to know who asks (%s): set etcd.user and etcd.passwordFile, or give quorumd a "+
			"client certificate with a common name", err)
	}
	prefix := strings.TrimSuffix(a.keys.Hosts(), "hosts/")
	return fmt.Sprintf("etcd refuses user %[1]s (%[2]s); to allow it: etcdctl role add quorumd; etcdctl role "+
		"grant-permission quorumd readwrite --prefix=true %[3]s; "+
		"etcdctl user grant-role %[1]s quorumd; and, as only that role may change members and move the leadership: "+
		"etcdctl user grant-role %[1]s root",
		who, err, prefix)
}
