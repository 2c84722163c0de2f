// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"strings"
	"testing"
)

func TestMembersOfTheAdminGroupMayMakeChangesAndReadNoSecrets(t *testing.T) {
	t.Parallel()
	h := hostWithEtcd(t)
	h.run("dpkg -i /pk/first.deb")
	h.configure(config("observe"))
	h.expect("quorumctl config check", "OK", "checked as quorumd")
	h.run("systemctl start quorumd; useradd -G quorumd-admin anna; useradd -G quorumd bert; useradd other")
	as := func(user, command string) (string, error) {
		return h.try("setpriv --reuid=" + user + " --regid=" + user + " --init-groups " + command)
	}
	if out, err := as("anna", "quorumctl pause --reason audit --for 1m"); err != nil {
		t.Errorf("a member of quorumd-admin cannot pause: %s", out)
	}
	for _, user := range []string{"bert", "other"} {
		out, err := as(user, "quorumctl resume")
		if err == nil ||
			!strings.Contains(out,
				"run it as root, or as a member of the group quorumd-admin (usermod -aG quorumd-admin USER") {
			t.Errorf("%s: %v, %s", user, err, out)
		}
	}
	if owned := h.run("find / -xdev -group quorumd-admin -not -path '/proc/*' 2>/dev/null"); owned != "" {
		t.Errorf("the admin group owns %s", owned)
	}
}

func TestConfigCheckReportsWhoCanReadTheKey(t *testing.T) {
	t.Parallel()
	h := hostWithEtcd(t)
	h.run("dpkg -i /pk/first.deb; useradd -G quorumd bert; mkdir /etc/quorumd/pki; echo none " +
		">/etc/quorumd/pki/client.key")
	write(t, h.root+"/etc/quorumd/quorumd.yaml", strings.ReplaceAll(strings.Replace(config("observe"), "  name: prod\n",
		"  name: prod\n  tls: {cert: /etc/quorumd/pki/client.key, key: /etc/quorumd/pki/client.key}\n", 1), "http:",
		"https:"))
	says := func(how, wanted string) {
		t.Helper()
		if out, err := h.try(how + "; quorumctl config check"); err == nil || !strings.Contains(out, wanted) {
			t.Errorf("after %s, config check does not say %q but %s", how, wanted, out)
		}
	}
	key := "/etc/quorumd/pki/client.key"
	says("chown root:root "+key+"; chmod 0600 "+key,
		key+" cannot be read: permission denied; let the user that runs quorumd read it")
	says("chown root:quorumd-admin "+key+"; chmod 0640 "+key, "is readable by the group quorumd-admin")
	says("chown root:quorumd "+key, "is readable by bert, of the group quorumd")
	says("chmod 0644 "+key,
		"allows full access to etcd, but is readable by every user on this host; run: chown quorumd: "+key+
			" && chmod 0400 "+key)
	if out, _ := h.try("chown quorumd: " + key + " && chmod 0400 " + key +
		"; quorumctl config check"); strings.Contains(out, "is readable by") ||
		strings.Contains(out, "permission denied") {
		t.Errorf("after the advised command: %s", out)
	}
}
