package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/compat"
)

// TestPythonNamesKept: what a program may write after "import idnode".
func TestPythonNamesKept(t *testing.T) {
	program, err := os.ReadFile("testdata/names.py")
	if err != nil {
		t.Fatal(err)
	}
	kept(t, "clients/python", strings.Split(strings.TrimSpace(pythonProgram(t, string(program))), "\n"))
}

// TestJavaNamesKept: what javap sees that is public.
func TestJavaNamesKept(t *testing.T) {
	language{tools: []string{"java", "javac", "javap"}}.need(t)
	compileJava(t, folder)
	sources, err := filepath.Glob(filepath.Join(folder, "java/src/main/java/io/github/idnode/*.java"))
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	args := []string{"-public", "-cp", classes}
	for _, source := range sources {
		found, err := filepath.Glob(filepath.Join(classes, "io/github/idnode", strings.TrimSuffix(filepath.Base(source), ".java")+"*.class"))
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, found...)
	}
	out, err := exec.CommandContext(t.Context(), "javap", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, class := range regexp.MustCompile(`(?ms)^(public [^{\n]*) \{\n(.*?)^\}`).FindAllStringSubmatch(string(out), -1) {
		lines = append(lines, class[1])
		name := regexp.MustCompile(`(?:class|interface) (\S+)`).FindStringSubmatch(class[1])[1]
		for member := range strings.Lines(class[2]) {
			lines = append(lines, name+": "+strings.TrimSpace(member))
		}
	}
	kept(t, "clients/java", lines)
}

// TestNodeNamesKept: the members of index.d.ts, of which a test of the client says that it is right.
func TestNodeNamesKept(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "node/index.d.ts"))
	if err != nil {
		t.Fatal(err)
	}
	_, plain, _ := strings.Cut(regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`).ReplaceAllString(string(text), ""), "\nexport ")
	var lines []string
	var in, member string
	depth := 0 // Of brackets of all kinds within a declaration.
	block := regexp.MustCompile(`^(?:export )?(?:class|interface) (\w+)`)
	end := func() {
		if member = strings.Join(strings.Fields(member), " "); member != "" {
			lines = append(lines, in+strings.TrimPrefix(member, "export "))
		}
		member = ""
	}
	for _, c := range plain {
		name := block.FindStringSubmatch(strings.TrimSpace(member))
		switch {
		case c == '{' && in == "" && name != nil:
			end()
			in = name[1] + ": "
		case c == '}' && in != "" && depth == 0:
			end()
			in = ""
		case c == ';' && depth == 0:
			end()
		default:
			if strings.ContainsRune("{([", c) {
				depth++
			} else if strings.ContainsRune("})]", c) {
				depth--
			}
			member += string(c)
		}
	}
	kept(t, "clients/node", lines)
}

func kept(t *testing.T, file string, lines []string) {
	t.Helper()
	if len(lines) < 100 {
		t.Errorf("only %d names: %q", len(lines), lines)
	}
	compat.Names(t, compat.Clients, file, lines)
}
