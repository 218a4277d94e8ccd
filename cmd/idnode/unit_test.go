package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/idnode/idnode/internal/logqueue"
)

const (
	// units is where the systemd units for operators are.
	units = "../../deploy/systemd"
	// cronJob is Kubernetes' scheduled backup.
	cronJob = "../../deploy/kubernetes/backup.yaml"
)

// exposure is the most that `systemd-analyze security` may say of it, times ten.
// The network, which a node needs, alone makes half of it.
const exposure = 15

// unitSettings returns the last value of each setting of a unit.
func unitSettings(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(units, name))
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
	unit := unitSettings(t, "idnode.service")
	for name, want := range map[string]string{
		"Type":                     "notify",
		"Restart":                  "on-failure",
		"RestartPreventExitStatus": fmt.Sprint(exitUsage, exitDamaged, exitRefused),
		// systemd takes an end by these signals for a clean one.
		"RestartForceExitStatus": "SIGHUP SIGPIPE",
		"ExecReload":             "/bin/kill -HUP $MAINPID",
		// Otherwise a crash has the exit code of wrong settings.
		"Environment": "GOTRACEBACK=crash",
		"ExecStart":   "/usr/local/bin/idnode serve --config /etc/idnode/idnode.yaml",
	} {
		if unit[name] != want {
			t.Errorf("%s=%s, want %s", name, unit[name], want)
		}
	}
	if got := command(t, "serve", "--config", "../../deploy/systemd/idnode.yaml", "--print-config"); got.code != exitOK {
		t.Errorf("its settings: %+v", got)
	}
	// And those with which a node takes the place of another.
	manual, err := os.ReadFile("../../docs/operate/linux.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(manual), "\n## Replacing a node\n")
	_, settings, _ := strings.Cut(section, "\n```yaml\n")
	settings, _, _ = strings.Cut(settings, "```\n")
	file := filepath.Join(t.TempDir(), "idnode.yaml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := command(t, "serve", "--config", file, "--print-config"); got.code != exitOK || !strings.Contains(got.stdout, "tag: D") {
		t.Errorf("a new node's settings: %+v", got)
	}
}

// TestTimeForAStop: what runs a node waits for its stop, and for the last lines of its log.
func TestTimeForAStop(t *testing.T) {
	const needed = stopLimit + logqueue.FlushLimit
	for file, setting := range map[string]string{
		units + "/idnode.service":             `TimeoutStopSec=(\d+)s`,
		"../../deploy/docker-compose.yml":     `stop_grace_period: (\d+)s`,
		"../../deploy/kubernetes/node-a.yaml": `terminationGracePeriodSeconds: (\d+)`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(setting).FindSubmatch(text)
		if found == nil {
			t.Errorf("%s has no %s", file, setting)
			continue
		}
		given, err := time.ParseDuration(string(found[1]) + "s")
		if before := regexp.MustCompile(`sleep: {seconds: (\d+)}`).FindSubmatch(text); before != nil && err == nil {
			var sleeps time.Duration
			sleeps, err = time.ParseDuration(string(before[1]) + "s") // preStop is part of it.
			given -= sleeps
		}
		if err != nil || given < needed {
			t.Errorf("%s: a stop has %s, and may take %s (%v)", file, given, needed, err)
		}
	}
}

// TestUnitBackup: the commands of the scheduled backups leave a backup where they say.
func TestUnitBackup(t *testing.T) {
	unit := unitSettings(t, "idnode-backup.service")
	program, commandLine, _ := strings.Cut(unit["ExecStart"], " ")
	if program != "/usr/local/bin/idnode" || unit["RestartPreventExitStatus"] != fmt.Sprint(exitUsage) ||
		unit["EnvironmentFile"] != "/etc/idnode/backup.env" {
		t.Errorf("%v", unit)
	}
	var job struct {
		Spec struct {
			JobTemplate struct {
				Spec struct {
					Template struct {
						Spec struct{ Containers []struct{ Args []string } }
					}
				}
			} `yaml:"jobTemplate"`
		}
	}
	text, err := os.ReadFile(cronJob)
	if err != nil {
		t.Fatal(err)
	}
	_, document, _ := strings.Cut(string(text), "\n---\n")
	if err := yaml.Unmarshal([]byte(document), &job); err != nil || len(job.Spec.JobTemplate.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("%v: %v", job, err)
	}
	for place, args := range map[string][]string{
		"/var/lib/" + unit["StateDirectory"]: strings.Fields(commandLine),
		"/backup":                            job.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Args,
	} {
		dir := t.TempDir()
		at := slices.Index(args, place)
		if at < 0 {
			t.Fatalf("%s is not in %s", place, args)
		}
		args[at] = dir
		got := commandEnv(t, []string{"IDNODE_ENDPOINTS=" + serveBackup(t, aBackup(t))}, args...)
		if left, _ := fs.Glob(os.DirFS(dir), "*"); got.code != exitOK || len(left) != 1 {
			t.Errorf("%s: %+v, left %v", args, got, left)
		}
	}
	env, err := os.ReadFile(filepath.Join(units, "idnode-backup.env"))
	for _, name := range []string{"IDNODE_ENDPOINTS", "IDNODE_TLS_CA", "IDNODE_TLS_CERT", "IDNODE_TLS_KEY"} {
		if err != nil || !strings.Contains(string(env), "\n"+name+"=") {
			t.Errorf("%s is not set: %v", name, err)
		}
	}
}

// TestUnitVerified asks systemd itself.
func TestUnitVerified(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed (package systemd): the units were not verified")
	}
	dir := t.TempDir()
	// It looks for the program.
	program := filepath.Join(dir, "idnode")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var services, all []string
	for _, name := range []string{"idnode.service", "idnode-backup.service", "idnode-backup.timer"} {
		text, err := os.ReadFile(filepath.Join(units, name))
		if err != nil {
			t.Fatal(err)
		}
		unit := filepath.Join(dir, name)
		if err := os.WriteFile(unit, []byte(strings.Replace(string(text), "/usr/local/bin/idnode", program, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, unit)
		if filepath.Ext(name) == ".service" {
			services = append(services, unit)
		}
	}
	// A setting it does not know is only a warning.
	if out, err := exec.Command(analyze, append([]string{"verify", "--man=no"}, all...)...).CombinedOutput(); err != nil || about(out) != "" {
		t.Errorf("verify: %v\n%s", err, out)
	}
	for _, unit := range services {
		security := exec.Command(analyze, "security", "--offline=true", "--no-pager", fmt.Sprintf("--threshold=%d", exposure), unit)
		out, err := security.CombinedOutput()
		level := regexp.MustCompile(`exposure level.*`).Find(out)
		if err != nil || level == nil {
			t.Errorf("security of %s: %v\n%s", unit, err, out)
		}
		t.Logf("%s: %s", filepath.Base(unit), level)
	}
}

// about returns the lines that are about our units: the machine's own may have faults of
// their own.
func about(out []byte) string {
	var ours []string
	for line := range strings.Lines(string(out)) {
		if regexp.MustCompile(`idnode(-backup)?\.(service|timer)`).MatchString(line) {
			ours = append(ours, line)
		}
	}
	return strings.Join(ours, "")
}
