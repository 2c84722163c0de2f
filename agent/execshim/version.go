// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package execshim

import "regexp"

// EtcdVersion reads what an etcd program answers to --version, such as "3.6.16"; empty when it does not answer like
// etcd.
func EtcdVersion(answer []byte) string {
	match := regexp.MustCompile(`(?m)^etcd Version: (\S+)\s*$`).FindSubmatch(answer)
	if match == nil {
		return ""
	}
	return string(match[1])
}
