package harness

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// modules are those that applications and the go command get, by their folders.
var modules = []string{".", "client", "client/gormid"}

// Published publishes the repository's modules, as their files are now, as that version of each to a module
// proxy made of files, and returns the environment in which the go command takes them from there. What they
// need comes from the modules that are on this machine already, then from its proxy.
func Published(t testing.TB, version string) []string {
	t.Helper()
	root, proxy, cache := repository(t), t.TempDir(), t.TempDir()
	for _, module := range modules {
		publish(t, root, module, version, proxy)
	}
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY", "GOFLAGS").Output()
	if err != nil {
		t.Fatal(err)
	}
	settings := strings.Split(string(out), "\n")
	// The cache is one of its own: this version is no one that was published.
	return append(os.Environ(), "GOMODCACHE="+cache, "GOSUMDB=off", "GOWORK=", "GOFLAGS="+settings[2]+" -modcacherw -trimpath",
		"GOPROXY=file://"+proxy+",file://"+settings[0]+"/cache/download,"+settings[1])
}

// publish writes the files of a proxy for one version of the module in a folder:
// https://go.dev/ref/mod#goproxy-protocol.
func publish(t testing.TB, root, folder, version, proxy string) {
	t.Helper()
	name := path.Join("github.com/idnode/idnode", folder)
	to := filepath.Join(proxy, name, "@v")
	goMod, err := os.ReadFile(filepath.Join(root, folder, "go.mod"))
	if err == nil {
		err = os.MkdirAll(to, 0o755)
	}
	for file, text := range map[string]string{
		"list": version + "\n", version + ".info": `{"Version":"` + version + `"}`, version + ".mod": string(goMod),
	} {
		if err == nil {
			err = os.WriteFile(filepath.Join(to, file), []byte(text), 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(to, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	files := zip.NewWriter(archive)
	for _, file := range filesOf(t, filepath.Join(root, folder)) {
		if err := add(files, filepath.Join(root, folder, file), name+"@"+version+"/"+file); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
}

// filesOf are the regular files of a module in version control, without those of the modules within.
func filesOf(t testing.TB, folder string) []string {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	list.Dir = folder
	out, err := list.Output()
	if err != nil {
		t.Skipf("the files in version control are not known here: %v", err)
	}
	var files []string
next:
	for _, file := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		for within := path.Dir(file); within != "."; within = path.Dir(within) {
			if _, err := os.Stat(filepath.Join(folder, within, "go.mod")); err == nil {
				continue next
			}
		}
		if info, err := os.Lstat(filepath.Join(folder, file)); err == nil && info.Mode().IsRegular() {
			files = append(files, file)
		}
	}
	return files
}

// add puts a file into an archive.
func add(files *zip.Writer, file, name string) error {
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := files.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return err
}
