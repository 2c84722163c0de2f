// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build packages

package packaging

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestTheAgentDetectsARebootOfItsContainer checks that the service, in its sandbox, distinguishes the boots of its
// container even if the container manager does not hide the machine's boot ID. Only systemd-nspawn hides it.
func TestTheAgentDetectsARebootOfItsContainer(t *testing.T) {
	t.Parallel()
	h := hostWithEtcd(t)
	h.run("dpkg -i /pk/first.deb; systemctl enable quorumd")
	h.configure(config("observe"))
	// After this umount, /proc shows the machine's boot ID, as it does under other managers and in a separate /proc of
	// the service.
	write(t, h.root+"/etc/systemd/system/machines-boot.service", "[Unit]\nDefaultDependencies=no\n"+
		"Before=quorumd.service\n[Service]\nType=oneshot\nExecStart=umount "+
		"/proc/sys/kernel/random/boot_id\n[Install]\nRequiredBy=quorumd.service\n")
	h.run("systemctl enable machines-boot.service")
	boot := func() string {
		t.Helper()
		var id string
		h.waitUntil(30*time.Second, "the agent reports its boot", func() bool {
			text, err := h.try("quorumctl status -o json")
			var status struct {
				Host struct {
					BootID string `json:"bootID"`
				} `json:"host"`
			}
			if err != nil || json.Unmarshal([]byte(text), &status) != nil {
				return false
			}
			id = status.Host.BootID
			return id != ""
		})
		return id
	}
	pid1 := func() string { return h.run("cut -d' ' -f22 /proc/1/stat") }
	h.run("systemctl start quorumd")
	before, first, kernel := boot(), pid1(), strings.TrimSpace(read(t, "/proc/sys/kernel/random/boot_id"))
	h.run("systemctl --no-block reboot")
	h.waitUntil(time.Minute+bootTimeout, "the host is up again", func() bool {
		if h.pid1 = payload(h.boss.Process.Pid); h.pid1 == 0 {
			return false
		}
		state, err := h.try("cut -d' ' -f22 /proc/1/stat")
		return err == nil && state != first
	})
	after := boot()
	t.Logf("the machine's boot is %s; the agent named %s, then %s", kernel, before, after)
	if before == after || !strings.HasPrefix(before, kernel) || !strings.HasPrefix(after, kernel) {
		t.Errorf("the agent named two boots of its container %s and %s; the machine's is %s", before, after, kernel)
	}
}
