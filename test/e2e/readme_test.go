package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestReadme does what README.md says, word by word and in order, in a copy of the repository: the
// blocks, also the Go program, the commands in tables and text, and the links to nodes at the moment
// they are read. It does so in each shell, in a network of its own, so that the addresses are those of
// the page.
func TestReadme(t *testing.T) {
	tier.Long(t)
	needPrograms(t, "awk", "curl", "git", "ip", "make", "python3", "unshare")
	if os.Geteuid() != 0 {
		t.Skip("a network of its own needs root")
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, wants := programOf(t, string(text))
	published := harness.Published(t, "v1.0.0")
	steps := stepsOf(t, linksTried(commandsTried(t, kindsTried(t, string(text)), wants)))
	for _, name := range []string{"bash", "zsh"} {
		t.Run(name, func(t *testing.T) {
			needPrograms(t, name)
			s := newShell(t)
			s.start = []string{"unshare", "--net", "sh", "-c", `ip link set lo up && exec "$0" "$@"`, name, "-c"}
			s.cloneRepository(t)
			s.env = append(s.env, published[len(os.Environ()):]...)
			if err := os.MkdirAll(filepath.Join(s.dir, "app"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(s.dir, "app", "main.go"), []byte(program), 0o644); err != nil {
				t.Fatal(err)
			}
			for i, output := range s.run(t, steps) {
				steps[i].compare(t, output, answerOf)
			}
		})
	}
}

var (
	nodeLink = regexp.MustCompile(`<(http://127[^>]*)>`)
	// kindRow is a row of the table of kinds: its commands, and what stands beside them.
	kindRow  = regexp.MustCompile(`(?m)^\| [^|]* \| ([^|]*(?:\\\|[^|]*)*) \| ([^|]*) \|`)
	codeSpan = regexp.MustCompile("`([^`]+)`")
)

// linksTried opens each link to a node where it stands, before the commands that follow.
func linksTried(document string) string {
	lines := strings.Split(document, "\n")
	for i, line := range lines {
		for _, link := range nodeLink.FindAllStringSubmatch(line, -1) {
			lines[i] += fmt.Sprintf("\n<!-- tried: curl -fsS %s | grep -q '<title>idnode' -->", link[1])
		}
	}
	return strings.Join(lines, "\n")
}

// kindsTried adds the commands of the table of kinds to the first cluster. Each prints what stands
// beside it, but for its digits.
func kindsTried(t *testing.T, document string) string {
	t.Helper()
	_, table, found := strings.Cut(document, "## The kinds of id\n")
	table, _, _ = strings.Cut(table, "\n\nA [series]")
	rows := kindRow.FindAllStringSubmatch(table, -1)[1:] // Below the head.
	if !found || len(rows) != 6 {
		t.Fatalf("%d kinds", len(rows))
	}
	var tried strings.Builder
	for _, row := range rows {
		gets := codeSpan.FindAllStringSubmatch(row[2], -1)[0][1]
		for i, command := range codeSpan.FindAllStringSubmatch(row[1], -1) {
			line := "bin/idnode " + strings.ReplaceAll(command[1], `\|`, "|")
			switch {
			case strings.HasPrefix(command[1], "--"):
				line = "bin/idnode next '' " + command[1]
			case strings.Contains(row[1], "once") && i == 0:
				fmt.Fprintf(&tried, "<!-- tried: %s -->\n", line)
				continue
			}
			fmt.Fprintf(&tried, "<!-- tried: %s | tr -s ' ' | grep -Eq '^%s$' -->\n", line, likeSample(gets))
		}
	}
	return triedBefore(t, document, "\n<!-- tried: kill $dev", tried.String())
}

// triedBefore adds steps before a cluster ends.
func triedBefore(t *testing.T, document, end, steps string) string {
	t.Helper()
	before, after, found := strings.Cut(document, end)
	if !found {
		t.Fatalf("nothing begins with %q", end)
	}
	return before + "\n" + steps + end + after
}

// commandIn is a command in a line of text or a table.
var commandIn = regexp.MustCompile("`((?:bin/idnode|idnode|make|go get|go install|go work|docker|apt|dnf|tar|pip|npm|mvn|java) [^`]+)`")

// triedElsewhere are those that take longer, or need the internet.
var triedElsewhere = map[string]string{
	"make build": "the first block", "idnode dev": "the first block", "make test": "the CI", "make check": "the CI",
	"make release VERSION=v1.0.0": "the CI", "make up": "the tests of containers",
	"go install github.com/idnode/idnode/cmd/idnode@v1.0.0": "TestInstall", "go work init . PATH/client": "TestInstall",
	"pip install ./clients/python": "PyPI", "mvn install": "Maven Central",
}

// triedByTheCI are the beginnings of the commands that .ci/release-test takes from README.md, with the files of a release.
func triedByTheCI(t *testing.T) (begin []string) {
	t.Helper()
	script, err := os.ReadFile("../../.ci/release-test")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`\breadme '([^']+)'`).FindAllStringSubmatch(string(script), -1) {
		begin = append(begin, found[1])
	}
	return begin
}

// commandsTried adds the commands of the text, but for the kinds', to the first cluster, and the Go program,
// which prints what wants matches, a line each, to the second.
func commandsTried(t *testing.T, document string, wants []string) string {
	t.Helper()
	steps := map[string]string{
		"bin/idnode bench":           "bin/idnode bench --duration 1s > bench.log",
		"bin/idnode export all.csv":  "bin/idnode export all.csv 2> export.log && grep -q invoices all.csv",
		"npm install ./clients/node": "if command -v npm; then npm install ./clients/node && test -d node_modules/idnode; fi > npm.log",
	}
	released := triedByTheCI(t)
	ended := "<!-- tried: (cd app && GOWORK=off go run .) > app.out -->\n"
	for i, want := range wants {
		ended += fmt.Sprintf("<!-- tried: sed -n %dp app.out | grep -Eq '^%s$' -->\n", i+1, want)
	}
	var tried strings.Builder
	for _, found := range commandIn.FindAllStringSubmatch(document, -1) {
		command := found[1]
		step := steps[command]
		if strings.HasPrefix(command, "go get ") {
			step = "(cd app && export GOWORK=off && go mod init example.com/app && " + command + ") 2> get.log"
		}
		byTheCI := slices.ContainsFunc(released, func(begin string) bool { return strings.HasPrefix(command, begin) })
		if step == "" && triedElsewhere[command] == "" && !byTheCI {
			t.Errorf("nobody tries %q", command)
		}
		if step != "" {
			fmt.Fprintf(&tried, "<!-- tried: %s -->\n", step)
		}
		delete(steps, command)
	}
	if len(steps) > 0 {
		t.Errorf("README.md does not have %v", steps)
	}
	document = triedBefore(t, document, "\n<!-- tried: kill $dev", tried.String())
	return triedBefore(t, document, "\n<!-- tried: kill $pid_A", ended)
}

var (
	goBlock = regexp.MustCompile("(?s)```go\n(.*?)\n```")
	// assigned is a line of a program that says in a comment what it comes to.
	assigned = regexp.MustCompile(`(?m)^(\w+), err :=.*// (\S+)$`)
)

// programOf returns the Go program of the document, which prints what it says in comments, and what
// that must match. Each node may be the one that gives a range.
func programOf(t *testing.T, document string) (program string, wants []string) {
	t.Helper()
	blocks := goBlock.FindAllStringSubmatch(document, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d programs", len(blocks))
	}
	body := strings.Replace(blocks[0][1], "\n…", "\nif err != nil {\n\tpanic(err)\n}", 1)
	for _, value := range assigned.FindAllStringSubmatch(body, -1) {
		body += fmt.Sprintf("\nfmt.Println(%s)", value[1])
		wants = append(wants, strings.Replace(value[2], "-A", "-[ABC]", 1))
	}
	const head = "package main\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\n\t\"github.com/idnode/idnode/client\"\n)\n\nfunc main() {\nctx := context.Background()\n"
	return head + body + "\n}\n", wants
}

// likeSample returns a pattern for what differs from a sample by its digits; a sample that ends with
// … may go on.
func likeSample(sample string) string {
	if begin, cut := strings.CutSuffix(sample, "…"); cut {
		return regexp.MustCompile("[0-9a-f]").ReplaceAllString(begin, "[0-9a-f]") + "[0-9a-f-]+"
	}
	return regexp.MustCompile(`[0-9]+`).ReplaceAllString(sample, "[0-9]+")
}

// answerOf returns a line without who answered, and when, and without the blanks that
// protojson puts after commas in some builds.
func answerOf(line string) string {
	return whoAnswered.ReplaceAllString(strings.ReplaceAll(line, `, "`, `,"`), "")
}

var whoAnswered = regexp.MustCompile(`"nodeTag":.*`)

// cloneRepository fills the folder with the files of the repository, as they are now.
func (s *shell) cloneRepository(t *testing.T) {
	t.Helper()
	files := exec.Command("sh", "-c", `git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory "$0"`, s.dir)
	files.Dir = filepath.Join("..", "..")
	if out, err := files.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
