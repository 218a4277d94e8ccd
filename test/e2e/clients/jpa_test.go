package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
)

// TestJPA runs the example of ids for entities with two providers, as Debian has them, and a database in memory.
func TestJPA(t *testing.T) {
	languages[2].need(t)
	providers := map[string]struct {
		jars    []string // The first is the API.
		options []string
	}{
		"EclipseLink": {jars: []string{"eclipselink-jpa-2.1-spec", "eclipselink"}},
		"Hibernate": {
			jars: []string{
				"geronimo-jpa_2.0_spec", "hibernate-core", "hibernate-entitymanager", "hibernate-commons-annotations", "geronimo-jta-1.2-spec",
				"antlr", "commons-collections3", "dom4j", "slf4j-api", "slf4j-nop", "javassist", "jaxb-api",
			},
			// Its Javassist defines classes in a way that Java has closed since.
			options: []string{"--add-opens", "java.base/java.lang=ALL-UNNAMED"},
		},
	}
	for name, provider := range providers {
		t.Run(name, func(t *testing.T) {
			path := []string{}
			for _, jar := range append(provider.jars, "hsqldb") {
				file := filepath.Join("/usr/share/java", jar+".jar")
				if _, err := os.Stat(file); err != nil {
					t.Skip(err)
				}
				path = append(path, file)
			}
			if err := compiled(); err != nil {
				t.Fatal(err)
			}
			into := t.TempDir()
			if err := javac(into, jpaSources(t), "-cp", path[0]+":"+classes); err != nil {
				t.Fatal(err)
			}
			path = append(path, classes, into, filepath.Join(folder, "java/jpa/example"))
			args := append(slices.Clone(provider.options), "-cp", strings.Join(path, ":"), "Shop")
			for _, n := range harness.StartCluster(t, harness.Config{}).Nodes {
				args = append(args, n.HTTP)
			}
			out, err := exec.Command("java", args...).Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if want := regexp.MustCompile(`(?m)^orders/1-[ABC] Ada\norders/2-[ABC] Bob\n\[1\]\n\z`); !want.Match(out) {
				t.Errorf("the database has\n%s", out)
			}
		})
	}
}

func jpaSources(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"src/main/java/io/github/idnode/jpa/*.java", "example/*.java"} {
		found, err := filepath.Glob(filepath.Join(folder, "java/jpa", pattern))
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		all = append(all, found...)
	}
	return all
}
