package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/tier"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// column returns the commands of a platform in the page's table of recovery, by step.
func column(t *testing.T, platform string) map[string]string {
	t.Helper()
	_, table, _ := strings.Cut(operated(t, "recovery"), "\n| step |")
	table, _, _ = strings.Cut(table, "\n\n")
	commands, at := map[string]string{}, 0
	for i, row := range strings.Split(table, "\n") {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		for n, cell := range cells {
			if i == 0 && strings.HasPrefix(strings.TrimSpace(cell), platform) {
				at = n + 1
			}
		}
		if i < 2 || len(cells) <= at {
			continue
		}
		var lines []string
		for _, match := range quoted.FindAllStringSubmatch(cells[at], -1) {
			lines = append(lines, match[1])
		}
		commands[strings.TrimSpace(cells[0])] = strings.Join(lines, "\n")
	}
	if len(commands) < 7 {
		t.Fatalf("the column of %s has %q", platform, commands)
	}
	return commands
}

// console returns the commands of the operator ($) and of a machine (#) that stand under a heading
// of a page, and the settings that it shows there.
func console(t *testing.T, page, heading string) (operator, machine []string, settings string) {
	t.Helper()
	_, section, _ := strings.Cut(operated(t, page), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	fence := ""
	for line := range strings.Lines(section) {
		switch {
		case strings.HasPrefix(line, "```"):
			fence = strings.TrimSpace(line[3:])
		case fence == "yaml":
			settings += line
		case strings.HasPrefix(line, "$ "):
			operator = append(operator, strings.TrimSpace(line[2:]))
		case strings.HasPrefix(line, "# "):
			machine = append(machine, strings.TrimSpace(line[2:]))
		}
	}
	if len(operator)+len(machine) == 0 {
		t.Fatalf("%s.md has no commands under %q", page, heading)
	}
	return operator, machine, settings
}

// machines are shells on Linux machines that share a loopback network, each with a folder in
// place of /etc/idnode, /var/lib/idnode and /var/log/idnode.
type machines struct{ *shell }

// systemctl starts and stops what the unit starts, in the folder MACHINE.
const systemctl = `#!/bin/bash
set -eu
case $* in
stop*|disable*)
  if [ -e "$MACHINE.pid" ]; then
    pid=$(cat "$MACHINE.pid")
    kill "$pid" 2> /dev/null || true
    while [ -e "/proc/$pid/exe" ]; do sleep 0.05; done
  fi ;;
start*)
  env -i PATH="$PATH" idnode serve --config "$MACHINE/etc/idnode.yaml" > "$MACHINE.log" 2>&1 &
  echo $! > "$MACHINE.pid" ;;
esac
`

// at is the commands as they are run on a machine.
func (m machines) at(name string, commands ...string) string {
	dir := filepath.Join(m.dir, name)
	text := "(export MACHINE=" + dir + "\n" + strings.Join(commands, "\n") + "\n)"
	for _, kind := range []string{"/etc/idnode", "/var/lib/idnode", "/var/log/idnode"} {
		text = strings.ReplaceAll(text, kind, dir+strings.TrimSuffix(kind, "/idnode"))
	}
	return strings.ReplaceAll(text, "-o idnode ", "") // There is no such user here.
}

// address puts a machine's address in place of its name in the pages.
func (m machines) address(text string) string {
	for i, name := range []string{"ids-a", "ids-b", "ids-c"} {
		text = strings.ReplaceAll(text, name+".example.org", fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%250, os.Getpid()/250%250, 11+i))
	}
	return text
}

// settings writes a node's settings, as deploy/systemd/idnode.yaml or linux.md have them.
func (m machines) settings(name, text string) string {
	text = strings.ReplaceAll(m.address(text), "0.0.0.0", m.address(name+".example.org"))
	return m.at(name, "cat > /etc/idnode/idnode.yaml <<'EOF'\n"+text+"\nEOF")
}

// TestRecoveryOnLinux does what recovery.md has for Linux: the machines of B and C are lost,
// A goes on alone, and D and E take their places as linux.md says.
func TestRecoveryOnLinux(t *testing.T) {
	tier.Long(t)
	needPrograms(t, "bash", "install")
	m := machines{newShell(t)}
	if err := os.WriteFile(filepath.Join(m.bin, "systemctl"), []byte(systemctl), 0o755); err != nil {
		t.Fatal(err)
	}
	recovery := column(t, "Linux")
	var steps []step
	do := func(heading string, commands ...string) {
		steps = append(steps, step{heading: heading, commands: strings.Join(commands, "\n")})
	}
	const next = "until idnode next 'orders|' 2> /dev/null; do sleep 0.2; done"
	for i, tag := range []string{"A", "B", "C"} {
		do("the first start of "+tag, m.first(t, hosts[i], tag), m.at(hosts[i], recovery["start"]))
	}
	do("the loss", m.address("export IDNODE_ENDPOINTS=ids-a.example.org:7400 IDNODE_TLS_CA=certs/ca.crt "+
		"IDNODE_TLS_CERT=certs/client.crt IDNODE_TLS_KEY=certs/client.key"), next, "kill -9 $(cat ids-b.pid) $(cat ids-c.pid)")
	do("stop", m.at("ids-a", recovery["stop"]))
	do("recover", m.at("ids-a", recovery["recover"]+" --yes | tee "+m.dir+"/recovered"))
	do("name the cluster", m.at("ids-a", "new=$(sed -n 's/^settings *cluster-id: \\([0-9a-f]*\\),.*/\\1/p' "+m.dir+"/recovered)",
		strings.NewReplacer("'", `"`, "NEW", "$new").Replace(recovery["name the cluster"]), `grep "^cluster-id: $new" /etc/idnode/idnode.yaml`))
	do("start", m.at("ids-a", recovery["start"]), next)
	for _, lost := range []string{"ids-c", "ids-b"} {
		do("give up the lost", m.at(lost, recovery["give up the lost"]))
	}
	m.replace(t, do, "ids-c", "D")
	m.replace(t, do, "ids-b", "E")
	do("check", recovery["check"], next)
	printed := m.run(t, steps)
	wantRecovered(t, strings.Join(printed[len(printed)-1], "\n"))
}

// hosts are the machines of the pages.
var hosts = []string{"ids-a", "ids-b", "ids-c"}

// first gives a machine certificate and settings, as linux.md does under systemd.
func (m machines) first(t *testing.T, host, tag string) string {
	t.Helper()
	file, err := os.ReadFile("../../deploy/systemd/idnode.yaml")
	if err != nil {
		t.Fatal(err)
	}
	settings := strings.Replace(string(file), "tag: A", "tag: "+tag+"\nadvertise-grpc: "+host+".example.org:7400", 1)
	return m.address("idnode certs certs --node "+tag+" --host "+host+".example.org > /dev/null\n") +
		m.at(host, "mkdir -p /etc/idnode /var/log/idnode", "cp certs/"+tag+".key /etc/idnode/node.key",
			"cp certs/"+tag+".crt /etc/idnode/node.crt", "cp certs/ca.crt /etc/idnode/ca.crt") + "\n" + m.settings(host, settings)
}

// replace is the way in of linux.md for a node in the place of a lost one, of which the cluster
// knows nothing any more. The page's example is D on ids-c.
func (m machines) replace(t *testing.T, do func(heading string, commands ...string), host, tag string) {
	t.Helper()
	operator, machine, settings := console(t, "linux", "Replacing a node")
	node := regexp.MustCompile(`\bD\b`)
	own := func(text string) string {
		text = strings.ReplaceAll(node.ReplaceAllString(text, tag), "ids-c", host)
		return m.address(strings.ReplaceAll(text, " && journalctl -fu idnode", ""))
	}
	removed := strings.Contains(operator[1], "cluster remove")
	if !removed || len(machine) != 5 {
		t.Fatalf("linux.md replaces a node by %q and %q", operator, machine)
	}
	do("a certificate and a token for "+tag, own(strings.Join(append(operator[:1:1], operator[2:]...), "\n")),
		"cp certs/"+tag+".* certs/ca.crt token "+host)
	do("the machine of "+tag, m.at(host, "cd "+filepath.Join(m.dir, host), own(strings.Join(machine[:3], "\n"))), m.settings(host, own(settings)),
		m.at(host, own(machine[3])))
	do(tag+" joins", "until idnode cluster members | grep -E '^"+tag+" +(leader|follower)' > /dev/null; do sleep 0.2; done",
		m.at(host, own(machine[4])))
}

// TestRecoveryOnKubernetes does what recovery.md has for Kubernetes, with the manifests and a
// kubectl for whom pods are processes: the volumes of B and C are lost, A goes on alone, and D and
// E take their places as kubernetes.md says.
func TestRecoveryOnKubernetes(t *testing.T) {
	tier.Long(t)
	needPrograms(t, "bash", "sed")
	s := newShell(t)
	program, err := os.Executable()
	if err == nil {
		err = errors.Join(os.Symlink(program, filepath.Join(s.bin, "kubectl")), os.MkdirAll(filepath.Join(s.dir, "kube"), 0o700),
			os.CopyFS(filepath.Join(s.dir, "deploy", "kubernetes"), os.DirFS("../../deploy/kubernetes")))
	}
	if err != nil {
		t.Fatal(err)
	}
	net := fmt.Sprintf("127.%d.%d", 1+os.Getpid()%250, os.Getpid()/250%250)
	t.Setenv("KUBE_NET", net)
	s.env = append(s.env, "KUBE_NET="+net)
	recovery := column(t, "Kubernetes")
	var steps []step
	do := func(heading string, commands ...string) {
		steps = append(steps, step{heading: heading, commands: named(strings.Join(commands, "\n"))})
	}
	const next = "until idnode next 'orders|' 2> /dev/null; do sleep 0.2; done"
	first, _, _ := console(t, "kubernetes", "First start")
	first = slices.DeleteFunc(first, func(line string) bool { return strings.Contains(line, "cert-manager") })
	for _, letter := range []string{"a", "b", "c"} {
		tag := strings.ToUpper(letter)
		do("the secrets of "+letter, strings.NewReplacer("--node A", "--node "+tag, "certs/A.", "certs/"+tag+".", "idnode-a", "idnode-"+letter).
			Replace(first[0]+"\n"+first[1]))
	}
	do("the first start", "idnode certs certs --client idnode-client", strings.Join(first[4:], "\n"),
		"export IDNODE_ENDPOINTS=idnode-a-0.idnode-nodes.idnode.svc:7400 IDNODE_TLS_CA=certs/ca.crt",
		"export IDNODE_TLS_CERT=certs/idnode-client.crt IDNODE_TLS_KEY=certs/idnode-client.key", next,
		"kill -9 $(cat idnode-b-0.pid) $(cat idnode-c-0.pid)", "rm -rf kube/claims/data-idnode-[bc]-0/*")
	for _, name := range []string{"stop", "recover"} {
		do(name, recovery[name]+" | tee -a recovered")
	}
	do("name the cluster", "new=$(sed -n 's/^settings *cluster-id: \\([0-9a-f]*\\),.*/\\1/p' recovered)",
		strings.NewReplacer("'", `"`, "NEW", "$new").Replace(recovery["name the cluster"]), `grep "^cluster-id: $new" kube/idnode.yaml`)
	do("start", recovery["start"], next)
	do("give up the lost", recovery["give up the lost"])
	replaceOnKubernetes(t, do, "b", "d")
	replaceOnKubernetes(t, do, "c", "e")
	do("check", recovery["check"], next)
	printed := s.run(t, steps)
	wantRecovered(t, strings.Join(printed[len(printed)-1], "\n"))
}

// replaceOnKubernetes is the way in of kubernetes.md for a node in the place of a lost one, of which
// nothing is there any more. The page's example is D in the place of B.
func replaceOnKubernetes(t *testing.T, do func(heading string, commands ...string), lost, fresh string) {
	t.Helper()
	commands, _, _ := console(t, "kubernetes", "Replacing a node")
	if !strings.Contains(commands[2], "cluster remove") || !strings.Contains(commands[3], "delete pvc") {
		t.Fatalf("kubernetes.md replaces a node by %q", commands)
	}
	commands = append(commands[1:2:2], commands[4:]...)
	node := regexp.MustCompile(`\bD\b`)
	do("the way in of "+fresh, strings.NewReplacer("idnode-d", "idnode-"+fresh, "node-d", "node-"+fresh, "node-b", "node-"+lost).Replace(
		node.ReplaceAllString(strings.Join(commands, "\n"), strings.ToUpper(fresh))),
		"until idnode cluster members | grep -E '^"+strings.ToUpper(fresh)+" +(leader|follower)' > /dev/null; do sleep 0.2; done")
}

// wantRecovered checks what is printed at the end: the members, and a number that was skipped to.
func wantRecovered(t *testing.T, printed string) {
	t.Helper()
	for _, want := range []string{`A +leader`, `D +follower`, `E +follower`, `orders/10000\d\d`} {
		if !regexp.MustCompile(want).MatchString(printed) {
			t.Errorf("at the end there is no %s:\n%s", want, printed)
		}
	}
}
