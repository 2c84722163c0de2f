// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// SRV queries the DNS service records that etcd's own clients use (etcdctl --discovery-srv): _etcd-client-ssl._tcp
// below the domain, or _etcd-client._tcp without TLS. It does not use etcd's package, whose lookup has no deadline.
// With TLS, the members' certificates must name the targets of these records.
func SRV(resolver *net.Resolver, domain, scheme string) Source {
	service := "etcd-client"
	if scheme == "https" {
		service += "-ssl"
	}
	return func(ctx context.Context) ([]string, error) {
		_, records, err := resolver.LookupSRV(ctx, service, "tcp", domain)
		if err != nil { // LookupSRV may return some valid records with an error; a partial list is not used
			return nil, fmt.Errorf("cannot look up the SRV records of _%s._tcp.%s: %w", service, domain, err)
		}
		var found []string
		for _, r := range records {
			found = append(found, scheme+"://"+net.JoinHostPort(strings.TrimSuffix(r.Target, "."),
				strconv.Itoa(int(r.Port))))
		}
		return found, nil
	}
}
