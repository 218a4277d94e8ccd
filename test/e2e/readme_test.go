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

// TestReadme does what README.md says, in order, in one shell, in a copy of the
// repository.
func TestReadme(t *testing.T) {
	tier.Long(t)
	needPrograms(t, "awk", "bash", "curl", "git", "pkill")
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.%d.%d.8", 1+os.Getpid()%250, os.Getpid()/250%250)
	s := newShell(t)
	s.cloneRepository(t)
	steps := stepsOf(t, strings.ReplaceAll(string(text), "127.0.0.1", address))
	// The pattern must not kill nodes of somebody else.
	for i := range steps {
		steps[i].commands = strings.ReplaceAll(steps[i].commands, `pkill -9 -f "`, `pkill -9 -g 0 -f "`)
	}
	for i, output := range s.run(t, steps) {
		steps[i].compare(t, output, answerOf)
	}
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
