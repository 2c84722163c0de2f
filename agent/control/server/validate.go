// Copyright The quorumd Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-semver/semver"

	"github.com/quorumd/quorumd/agent/control"
	"github.com/quorumd/quorumd/agent/control/internal/errtext"
	"github.com/quorumd/quorumd/agent/hooks"
	"github.com/quorumd/quorumd/agent/policy"
	"github.com/quorumd/quorumd/agent/record"
)

const (
	maxCode       = 64  // bytes of a finding's code
	maxMemberName = 256 // characters
)

func validatePause(r *control.PauseRequest) error {
	if err := checkReason(&r.Reason, pauseText); err != nil {
		return err
	}
	return checkDuration(&r.For, pauseText)
}

func validateRelease(r *control.ReleaseRequest) error {
	if !r.Force {
		return badRequest(
			"make sure that its host is powered off or repaired, then: quorumctl operation release --force --reason "+
				"'<why>'",
			"%s: force is not set", releaseText.cannot)
	}
	return checkReason(&r.Reason, releaseText)
}

func validateRemoval(r *control.RemovalRequest) error {
	if r.Member == "" || !isPrintable(r.Member) || utf8.RuneCountInString(r.Member) > maxMemberName {
		return badRequest("use a name or ID that quorumctl member list shows", "%s: member: %q is not a name or ID",
			removalText.cannot, errtext.Shorten(r.Member))
	}
	if err := checkReason(&r.Reason, removalText); err != nil {
		return err
	}
	return checkDuration(&r.For, removalText)
}

func validateMaintenance(r *control.MaintenanceRequest) error {
	cannot := maintenanceText.cannot
	switch r.Work {
	case policy.WorkMaintenance, policy.WorkRestart, policy.WorkReboot, policy.WorkCommand:
	default:
		return badRequest(maintenanceText.hint, "%s: work: %q is not one of %s, %s, %s and %s", cannot,
			errtext.Shorten(string(r.Work)), policy.WorkMaintenance, policy.WorkRestart, policy.WorkReboot,
			policy.WorkCommand)
	}
	if err := checkCommand(r.Work, r.Command, maintenanceText); err != nil {
		return err
	}
	if r.KeepRunning && r.Work != policy.WorkMaintenance {
		return badRequest("leave keepRunning out", "%s: keepRunning is not possible with %s", cannot, r.Work)
	}
	if r.Interruptible && (r.Work != policy.WorkMaintenance || r.KeepRunning) {
		return badRequest("leave interruptible out", "%s: only maintenance that stops etcd can be interruptible",
			cannot)
	}
	if r.External && r.Work != policy.WorkReboot {
		return badRequest("leave external out", "%s: only a reboot can be external", cannot)
	}
	if err := checkReason(&r.Reason, maintenanceText); err != nil {
		return err
	}
	return checkDuration(&r.For, maintenanceText)
}

func validateRollout(r *control.RolloutRequest) error {
	cannot := rolloutText.cannot
	works := []policy.Work{
		policy.WorkRestart, policy.WorkReboot, policy.WorkCommand, policy.WorkReaddress,
		policy.WorkDefrag,
	}
	if !slices.Contains(works, r.Work) {
		return badRequest(rolloutText.hint, "%s: work: %q is not one of %s, %s, %s, %s and %s", cannot,
			errtext.Shorten(string(r.Work)), works[0], works[1], works[2], works[3], works[4])
	}
	if r.Force && r.Work != policy.WorkDefrag {
		return badRequest("leave force out", "%s: force is not possible with %s", cannot, r.Work)
	}
	if r.Downgrade && (r.Work != policy.WorkCommand || r.Version == "" || len(r.Hosts) > 0) {
		return badRequest("set work to command, name the command and the version, and leave hosts out",
			"%s: a downgrade runs a command on all hosts to reach a version", cannot)
	}
	if r.AfterAbort && !r.DryRun {
		return badRequest("set dryRun, or leave afterAbort out and abort the ongoing rollout first",
			"%s: afterAbort is possible only with dryRun", cannot)
	}
	if err := checkCommand(r.Work, r.Command, rolloutText); err != nil {
		return err
	}
	if err := checkReason(&r.Reason, rolloutText); err != nil {
		return err
	}
	if len(r.Hosts) > control.MaxRolloutHosts {
		return badRequest("leave hosts out to select all of them", "%s: %d hosts are named, but at most %d are allowed",
			cannot, len(r.Hosts), control.MaxRolloutHosts)
	}
	for i, name := range r.Hosts {
		if name == "" || slices.Contains(r.Hosts[:i], name) || !isPrintable(name) {
			return badRequest("name each host only once, as quorumctl status shows it",
				"%s: hosts: %q is empty, repeated or not a name", cannot, errtext.Shorten(name))
		}
	}
	version := strings.TrimPrefix(r.Version, "v")
	if version != "" {
		if _, err := semver.NewVersion(version); err != nil {
			return badRequest("write it as etcd reports it, such as 3.6.12", "%s: version: %q is not a version", cannot,
				errtext.Shorten(r.Version))
		}
	}
	r.Version = version
	return nil
}

// validateResize checks only the form. The policy decides whether the number of voters is possible.
func validateResize(r *control.ResizeRequest) error {
	if r.IfRevision != nil && *r.IfRevision < 0 {
		return badRequest(resizeText.hint, "%s: ifRevision: %d is not a revision", resizeText.cannot, *r.IfRevision)
	}
	if strings.TrimSpace(r.Reason) == "" {
		r.Reason = ""
		return nil
	}
	return checkReason(&r.Reason, resizeText)
}

// validateRetire checks only the form. The policy decides whether the host may be retired.
func validateRetire(r *control.RetireRequest) error {
	if strings.TrimSpace(r.Host) == "" || !isPrintable(r.Host) ||
		utf8.RuneCountInString(r.Host) > maxMemberName {
		return badRequest(retireText.hint, "%s: host: %q is not the name or ID of a host", retireText.cannot,
			errtext.Shorten(r.Host))
	}
	if r.Undo && r.Lost {
		return badRequest("leave out one of them", "%s: undo and lost exclude each other", retireText.cannot)
	}
	switch {
	case r.Successor == "":
	case !isPrintable(r.Successor) || utf8.RuneCountInString(r.Successor) > maxMemberName:
		return badRequest(retireText.hint, "%s: successor: %q is not the name or ID of a host", retireText.cannot,
			errtext.Shorten(r.Successor))
	case r.Undo || r.Lost:
		return badRequest("leave out one of them", "%s: successor is not possible with undo or lost", retireText.cannot)
	}
	if r.Undo && strings.TrimSpace(r.Reason) == "" {
		r.Reason = ""
		return nil
	}
	return checkReason(&r.Reason, retireText)
}

func validateRolloutState(r *control.RolloutStateRequest) error {
	switch r.State {
	case record.RolloutRunning, record.RolloutPaused, record.RolloutAborted:
		return nil
	}
	return badRequest(rolloutStateText.hint, "%s: state: %q is not one of %s, %s and %s", rolloutStateText.cannot,
		errtext.Shorten(r.State), record.RolloutRunning, record.RolloutPaused, record.RolloutAborted)
}

func validateMute(r *control.MuteRequest) error {
	if err := checkCode(r.Code, muteText.cannot); err != nil {
		return err
	}
	if err := checkReason(&r.Reason, muteText); err != nil {
		return err
	}
	return checkDuration(&r.For, muteText)
}

// snapshotName limits the characters and the length of a snapshot's name. The job checks whether the snapshot exists.
var snapshotName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,400}$`)

func validateSnapshot(r *control.SnapshotRequest) error {
	cannot, named := snapshotText.cannot, r.Do == control.SnapshotVerify || r.Do == control.SnapshotRestoreTest
	switch {
	case !slices.Contains([]string{
		control.SnapshotSave, control.SnapshotList, control.SnapshotVerify, control.SnapshotPrune,
		control.SnapshotRestoreTest,
	}, r.Do):
		return badRequest(snapshotText.hint, "%s: do: unknown value %q", cannot, errtext.Shorten(r.Do))
	case r.Name != "" && !named:
		return badRequest("leave name out", "%s: name is not possible with %s", cannot, r.Do)
	case r.Name != "" && !snapshotName.MatchString(r.Name):
		return badRequest("quorumctl snapshot list shows the names of the snapshots",
			"%s: name: %q is not the name of a snapshot", cannot, errtext.Shorten(r.Name))
	case r.DryRun && r.Do != control.SnapshotPrune:
		return badRequest(snapshotText.hint, "%s: dryRun is only possible with prune", cannot)
	}
	return nil
}

// checkReason trims a reason and refuses it if it is empty, too long or not printable, because it is shown on terminals
// and written into records.
func checkReason(reason *string, text bodyText) error {
	const hint = "give a one-line reason; it is recorded in the history"
	*reason = strings.TrimSpace(*reason)
	if *reason == "" {
		return badRequest(hint, "%s: the reason is missing", text.cannot)
	}
	if n := utf8.RuneCountInString(*reason); n > control.MaxReason {
		return badRequest(hint, "%s: the reason has %d characters, but at most %d are allowed", text.cannot, n,
			control.MaxReason)
	}
	if !isPrintable(*reason) {
		return badRequest(hint, "%s: the reason contains line breaks or control characters", text.cannot)
	}
	return nil
}

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// checkCommand refuses an invalid program name, and any program name if the work is not WorkCommand.
func checkCommand(work policy.Work, name string, text bodyText) error {
	if work != policy.WorkCommand {
		if name != "" {
			return badRequest("leave command out", "%s: command is not possible with %s", text.cannot, work)
		}
		return nil
	}
	if err := hooks.CheckName(name); err != nil {
		return badRequest("name a program in commands.d, next to before.d and after.d, on every host that runs it",
			"%s: command: %v", text.cannot, err)
	}
	return nil
}

// checkCode refuses a text that cannot be the code of a finding.
func checkCode(code, cannot string) error {
	foreign := func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }
	if code == "" || len(code) > maxCode || strings.ContainsFunc(code, foreign) {
		return badRequest("use a code that quorumctl codes lists", "%s: unknown code %q", cannot, errtext.Shorten(code))
	}
	return nil
}
