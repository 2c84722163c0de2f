// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

// resize asks a host to resize the cluster.
func (f *fleet) resize(name string, req control.ResizeRequest) (control.Resize, error) {
	req.Reason = "a test"
	return f.hosts[name].agent.Resize(f.t.Context(), req, "root")
}

// noted returns the texts of the history lines with the given code, each preceded by the name in its line.
func (f *fleet) noted(code string) (texts []string) {
	f.t.Helper()
	f.etcd.mu.Lock()
	defer f.etcd.mu.Unlock()
	for _, kv := range f.etcd.store.Prefix(record.KeysFor("test").History()) {
		line, err := record.Decode[record.Line](kv.Value)
		if err != nil {
			f.t.Fatal(err)
		}
		if line.Code == code {
			texts = append(texts, line.Name+": "+line.Text)
		}
	}
	return texts
}

func (f *fleet) target(name string) int { return f.hosts[name].agent.Status().Cluster.Target }

func TestAResizedClusterGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	inFleet(t, 2, func(t *testing.T, f *fleet) {
		key := record.KeysFor("test").Size()
		would, err := f.resize("s0000", control.ResizeRequest{Voters: 5, DryRun: true})
		if err != nil || !would.DryRun || len(would.Steps) != 2 || would.Steps[1].Voters != 5 ||
			would.Voters != 3 || would.FaultTolerance != 1 {
			t.Fatalf("the dry run: %+v, %v", would, err)
		}
		f.pass(time.Minute)
		if f.etcd.has(key) || len(f.voters()) != 3 || len(f.noted("RESIZED")) != 0 {
			t.Fatal("the dry run has changed something")
		}
		grows, err := f.resize("s0000", control.ResizeRequest{Voters: 5})
		if err != nil || grows.Size == nil || grows.Size.By != "root" || grows.Revision == 0 || grows.Unchanged {
			t.Fatalf("%+v, %v", grows, err)
		}
		f.until(5*time.Minute, "five vote", func() bool { return len(f.voters()) == 5 })
		f.pass(10 * time.Second)
		for name, h := range f.hosts {
			s := h.agent.Status()
			if s.Cluster.Target != 5 || s.Cluster.Size == nil || s.Cluster.Size.Reason != "a test" {
				t.Errorf("%s shows the size %d, %+v", name, s.Cluster.Target, s.Cluster.Size)
			}
			differs := func(r control.Reason) bool { return r.Code == string(policy.SizeDiffers) }
			if !slices.ContainsFunc(s.Reasons, differs) {
				t.Errorf("%s does not report that its configuration differs: %+v", name, s.Reasons)
			}
		}
		if same, err := f.resize("v1", control.ResizeRequest{Voters: 5}); err != nil || !same.Unchanged ||
			len(same.Steps) != 0 || same.Revision != grows.Revision {
			t.Errorf("the same size again: %+v, %v", same, err)
		}
		shrinks, err := f.resize("v1", control.ResizeRequest{Voters: 3, IfRevision: &grows.Revision})
		if err != nil || len(shrinks.Steps) != 2 || !shrinks.Steps[0].Final {
			t.Fatalf("%+v, %v", shrinks, err)
		}
		f.until(5*time.Minute, "three vote", func() bool { return len(f.voters()) == 3 })
		f.pass(time.Minute)
		want := []string{"s0000: from 3 to 5 voters by root: a test", "v1: from 5 to 3 voters by root: a test"}
		if got := f.noted("RESIZED"); !slices.Equal(got, want) || len(f.voters()) != 3 {
			t.Errorf("history: %q; voters: %v", got, f.voters())
		}
	})
}

func TestAResizeToThePresentNumberKeepsTheVotersThatHaveNotLeft(t *testing.T) {
	t.Parallel()
	inFleet(t, 0, func(t *testing.T, f *fleet) {
		if _, err := f.resize("v1", control.ResizeRequest{Voters: 1, WithoutSnapshot: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.resize("v2", control.ResizeRequest{Voters: 3}); err != nil {
			t.Fatal(err)
		}
		f.pass(10 * time.Minute)
		if got := f.voters(); len(got) != 3 || f.target("v3") != 3 {
			t.Errorf("the voters are %v, and v3 shows the size %d", got, f.target("v3"))
		}
	})
}

func TestOfTwoOperatorsOneGetsAConflict(t *testing.T) {
	t.Parallel()
	inFleet(t, 2, func(t *testing.T, f *fleet) {
		first, err := f.resize("v1", control.ResizeRequest{Voters: 5, DryRun: true})
		if err != nil || first.Revision != 0 {
			t.Fatalf("%+v, %v", first, err)
		}
		if _, err := f.resize("v2", control.ResizeRequest{Voters: 1, WithoutSnapshot: true}); err != nil {
			t.Fatal(err)
		}
		if got, err := f.resize("v1", control.ResizeRequest{Voters: 5, IfRevision: &first.Revision}); err == nil ||
			!strings.Contains(err.Error(), "it has been resized to 1 by root in the meantime") {
			t.Errorf("%+v, %v", got, err)
		}
		f.pass(10 * time.Second)
		if f.target("v1") != 1 {
			t.Errorf("v1 shows the size %d", f.target("v1"))
		}
	})
}

func TestAnUnreadableSizeKeepsTheVotersAndIsWrittenAgain(t *testing.T) {
	t.Parallel()
	inFleet(t, 2, func(t *testing.T, f *fleet) {
		key := record.KeysFor("test").Size()
		values := strange()
		values["even"], values["too many"], values["none"] = `{"version":1,"voters":4}`, `{"version":1,"voters":11}`,
			`{"version":1,"voters":0}`
		for what, value := range values {
			f.put(key, value)
			f.pass(10 * time.Second)
			for name := range f.hosts {
				if text := f.tells(name, key); !strings.Contains(text, "quorumctl cluster resize writes it again") ||
					f.target(name) != 3 {
					t.Errorf("%s: %s reports %q and the size %d", what, name, text, f.target(name))
				}
			}
			f.pass(5 * time.Minute)
			if len(f.voters()) != 3 {
				t.Fatalf("%s: the voters are %v", what, f.voters())
			}
			if _, err := f.resize("v1", control.ResizeRequest{Voters: 3}); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			f.pass(10 * time.Second)
			if text := f.tells("v2", key); text != "" || f.target("v2") != 3 {
				t.Errorf("%s: written again, and v2 reports %q and the size %d", what, text, f.target("v2"))
			}
		}
	})
}

func TestAResizeThatIsImpossibleNowIsRefusedAndNotRecorded(t *testing.T) {
	t.Parallel()
	inFleet(t, 1, func(t *testing.T, f *fleet) {
		for voters, want := range map[int]string{
			0: "0 voters: the number must be between 1 and 9", -1: "must be between", 2: "2 voters tolerate",
			4: "4 voters tolerate", 5: "only 4 hosts have", 9: "only 4 hosts have",
			10: "must be between", 11: "must be between", 1: "no backup store is configured",
		} {
			for _, dry := range []bool{true, false} {
				got, err := f.resize("v1", control.ResizeRequest{Voters: voters, DryRun: dry})
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%d voters, dry run %t: %+v, %v", voters, dry, got, err)
				}
			}
		}
		if _, err := f.hosts["v1"].agent.Pause(t.Context(), control.PauseRequest{
			Reason: "a look", For: control.Duration(time.Hour),
		}, "root"); err != nil {
			t.Fatal(err)
		}
		f.pass(10 * time.Second)
		if got, err := f.resize("v1", control.ResizeRequest{Voters: 3}); err == nil ||
			!strings.Contains(err.Error(), "paused") {
			t.Errorf("while paused: %+v, %v", got, err)
		}
		if f.etcd.has(record.KeysFor("test").Size()) || len(f.noted("RESIZED")) > 0 {
			t.Error("a refused size was recorded")
		}
	})
}
