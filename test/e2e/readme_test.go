package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/tier"
)

// TestReadme does what README.md says, word by word and in order, in a copy of the repository: the
// blocks, the commands of the table of kinds, and the links to nodes at the moment they are read. It
// does so in each shell, in a network of its own, so that the addresses are those of the page.
func TestReadme(t *testing.T) {
	tier.Long(t)
	needPrograms(t, "awk", "curl", "git", "ip", "make", "unshare")
	if os.Geteuid() != 0 {
		t.Skip("a network of its own needs root")
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := stepsOf(t, linksTried(kindsTried(t, string(text))))
	for _, name := range []string{"bash", "zsh"} {
		t.Run(name, func(t *testing.T) {
			needPrograms(t, name)
			s := newShell(t)
			s.start = []string{"unshare", "--net", "sh", "-c", `ip link set lo up && exec "$0" "$@"`, name, "-c"}
			s.cloneRepository(t)
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
	const end = "\n<!-- tried: kill $dev"
	before, after, found := strings.Cut(document, end)
	if !found {
		t.Fatal("the first cluster does not end")
	}
	return before + "\n" + tried.String() + end + after
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
