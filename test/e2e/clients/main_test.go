// Package clients tests the clients in the folder clients, each in a process of its
// own: against a scripted server, by the lists in clients/conformance, and against a
// cluster whose leader is killed again and again. The Go client takes the lists too.
package clients

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

func TestMain(m *testing.M) {
	tier.Overlap()
	code := m.Run()
	harness.RemoveBinary()
	_ = os.RemoveAll(classes)
	os.Exit(code)
}

const folder = "../../../clients"

// language is a client that runs in a process of its own.
type language struct {
	name string
	// source is the folder of its clients, if that is not folder.
	source string
	// tools are the programs that it needs.
	tools []string
	// command starts its runner, in its folder. The runner takes a task on each line of
	// its input, and writes its answers as lines too.
	command func(t *testing.T, source string) []string
	// typed says that a compiler checks the calls.
	typed bool
}

var python = []string{"python3"}

var languages = []language{
	{"python", "", python, func(*testing.T, string) []string { return append(python, "conformance.py") }, false},
	{"node", "", []string{"node"}, func(*testing.T, string) []string { return []string{"node", "conformance.mjs"} }, false},
	{"java", "", []string{"java", "javac"}, compileJava, true},
	{"asyncio", "", python, func(*testing.T, string) []string { return append(python, "conformance.py", "asyncio") }, false},
}

// compileJava compiles the client and its runner; this source's once. A warning is an error.
func compileJava(t *testing.T, source string) []string {
	t.Helper()
	if source == folder {
		if err := compiled(); err != nil {
			t.Fatal(err)
		}
		return []string{"java", "-cp", classes, "io.github.idnode.Conformance"}
	}
	into := t.TempDir()
	if err := compileClient(source, into); err != nil {
		t.Fatal(err)
	}
	return []string{"java", "-cp", into, "io.github.idnode.Conformance"}
}

// classes is the folder of what compiled has compiled.
var classes string

var compiled = sync.OnceValue(func() (err error) {
	if classes, err = os.MkdirTemp("", "idnode-java"); err != nil {
		return err
	}
	return compileClient(folder, classes)
})

func compileClient(source, into string) error {
	sources, err := filepath.Glob(filepath.Join(source, "java/src/*/java/io/github/idnode/*.java"))
	if err != nil {
		return err
	}
	return javac(into, sources)
}

// javac compiles sources, without the module, so that the runner sees what is not exported. It lets
// exceptions be without versions of their serial form, which nothing keeps.
func javac(into string, sources []string, options ...string) error {
	args := append([]string{"-encoding", "UTF-8", "--release", "17", "-Xlint:all,-serial", "-Werror", "-d", into}, options...)
	out, err := exec.Command("javac", append(args, sources...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// eachLanguage runs a test for each client whose tools are there.
func eachLanguage(t *testing.T, test func(t *testing.T, l language)) {
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			l.need(t)
			test(t, l)
		})
	}
}

// need skips a test of a language that is not here. The quick tests are those of Go alone: each
// program of another language begins a process, or compiles.
func (l language) need(t *testing.T) {
	t.Helper()
	tier.Long(t)
	for _, tool := range l.tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("there is no " + tool)
		}
	}
}

// runner is the process of a client.
type runner struct {
	in   io.WriteCloser
	out  *bufio.Reader
	kill func() error
}

// answerWithin bounds the wait for an answer; the calls of a case end within seconds.
const answerWithin = 30 * time.Second

// start starts the runner. It ends when its input is closed, at the latest after the test.
func (l language) start(t *testing.T) *runner {
	t.Helper()
	source := cmp.Or(l.source, folder)
	args := l.command(t, source)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = filepath.Join(source, strings.Replace(l.name, "asyncio", "python", 1))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		hung := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		defer hung.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the runner: %v", err)
		}
	})
	return &runner{in: in, out: bufio.NewReader(out), kill: cmd.Process.Kill}
}

// task gives the runner a task.
func (r *runner) task(t *testing.T, task any) {
	t.Helper()
	line, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}

// answer reads a line. A runner that hangs is killed.
func (r *runner) answer(t *testing.T, into any) {
	t.Helper()
	hung := time.AfterFunc(answerWithin, func() { _ = r.kill() })
	defer hung.Stop()
	line, err := r.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, into)
	}
	if err != nil {
		t.Fatalf("the runner's answer %q: %v", line, err)
	}
}
