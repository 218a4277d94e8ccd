package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// unitFile is the systemd unit for operators.
const unitFile = "../../deploy/systemd/idnode.service"

// exposure is the most that `systemd-analyze security` may say of it, times ten.
// The network, which a node needs, alone makes half of it.
const exposure = 15

// unitSettings returns the last value of each setting of the unit.
func unitSettings(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	settings := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && name[0] != '#' {
			settings[name] = value
		}
	}
	return settings
}

// TestUnit holds the unit and the program together.
func TestUnit(t *testing.T) {
	unit := unitSettings(t)
	for name, want := range map[string]string{
		"Type":                     "notify",
		"Restart":                  "on-failure",
		"RestartPreventExitStatus": fmt.Sprint(exitUsage, exitDamaged, exitRefused),
		// Otherwise a crash has the exit code of wrong settings.
		"Environment": "GOTRACEBACK=crash",
		"ExecStart":   "/usr/local/bin/idnode serve --config /etc/idnode/idnode.yaml",
	} {
		if unit[name] != want {
			t.Errorf("%s=%s, want %s", name, unit[name], want)
		}
	}
	// The limits of all steps of a node's clean stop are 24 s together.
	if stop, err := time.ParseDuration(unit["TimeoutStopSec"]); err != nil || stop < 25*time.Second {
		t.Errorf("TimeoutStopSec=%s: %v", unit["TimeoutStopSec"], err)
	}
	if got := command(t, "serve", "--config", "../../deploy/systemd/idnode.yaml", "--print-config"); got.code != exitOK {
		t.Errorf("its settings: %+v", got)
	}
}

// TestUnitVerified asks systemd itself.
func TestUnitVerified(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed (package systemd): the unit was not verified")
	}
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// It looks for the program.
	program := filepath.Join(dir, "idnode")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(dir, "idnode.service")
	text = []byte(strings.Replace(string(text), "/usr/local/bin/idnode", program, 1))
	if err := os.WriteFile(unit, text, 0o600); err != nil {
		t.Fatal(err)
	}
	// A setting it does not know is only a warning.
	if out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || about(out) != "" {
		t.Errorf("verify: %v\n%s", err, out)
	}
	security := exec.Command(analyze, "security", "--offline=true", "--no-pager", fmt.Sprintf("--threshold=%d", exposure), unit)
	out, err := security.CombinedOutput()
	level := regexp.MustCompile(`exposure level.*`).Find(out)
	if err != nil || level == nil {
		t.Errorf("security: %v\n%s", err, out)
	}
	t.Logf("%s", level)
}

// about returns the lines that are about our unit: the machine's own units may
// have faults of their own.
func about(out []byte) string {
	var ours []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "idnode.service") {
			ours = append(ours, line)
		}
	}
	return strings.Join(ours, "")
}
