// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

//go:build systemdtest

package systemd

import "testing"

func TestStatusHasTheProgramOfAUnitAndWhetherItIsEnabled(t *testing.T) {
	t.Parallel()
	i := newInstance(t, "")
	unit := func(name, install string) {
		i.writeUnit(name,
			"[Unit]\nDefaultDependencies=no\n[Service]\nExecStartPre=/bin/false\nExecStart=/bin/sleep 5\n"+install)
	}
	unit("never.service", "")
	unit("off.service", "[Install]\nWantedBy=default.target\n")
	i.reload()
	for name, want := range map[string]struct {
		state     string
		notAtBoot bool
	}{"never.service": {"static", false}, "off.service": {"disabled", true}} {
		st := look(t, i.drive(name))
		if st.Program != "/bin/sleep" || st.UnitFileState != want.state || st.NotAtBoot() != want.notAtBoot {
			t.Errorf("%s: %+v", name, st)
		}
	}
	if st := look(t, i.drive("none.service")); st.Program != "" || st.NotAtBoot() {
		t.Errorf("a unit that is not there: %+v", st)
	}
}
