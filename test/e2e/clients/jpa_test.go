package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// provider is one of JPA, as Debian has it.
type provider struct {
	jars    []string // The first is the API.
	options []string
}

var providers = map[string]provider{
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

// command compiles the programs of some folders with the listener, and returns how to run one with a database in memory.
func (p provider) command(t *testing.T, main string, folders ...string) []string {
	t.Helper()
	path := []string{}
	for _, jar := range append(slices.Clone(p.jars), "hsqldb") {
		file := filepath.Join("/usr/share/java", jar+".jar")
		if _, err := os.Stat(file); err != nil {
			t.Skip(err)
		}
		path = append(path, file)
	}
	if err := compiled(); err != nil {
		t.Fatal(err)
	}
	var sources []string
	for _, from := range append([]string{filepath.Join(folder, "java/jpa/src/main/java/io/github/idnode/jpa")}, folders...) {
		found, err := filepath.Glob(filepath.Join(from, "*.java"))
		if err != nil || len(found) == 0 {
			t.Fatal(from, err)
		}
		sources = append(sources, found...)
	}
	into := t.TempDir()
	if err := javac(into, sources, "-cp", path[0]+":"+classes); err != nil {
		t.Fatal(err)
	}
	path = append(append(path, classes, into), folders...)
	return append(append([]string{"java"}, p.options...), "-cp", strings.Join(path, ":"), main)
}

// eachProvider runs a program with each provider and the nodes of a cluster of its own, and returns what it says.
func eachProvider(t *testing.T, main, from string, judge func(t *testing.T, said string)) {
	t.Helper()
	languages[2].need(t)
	for name, p := range providers {
		t.Run(name, func(t *testing.T) {
			command := p.command(t, main, from)
			c := harness.StartCluster(t, harness.Config{})
			define := &idnodev1.DefinePoolRequest{Name: "ways", LayoutName: "javascript", Window: durationpb.New(10 * time.Second)}
			if _, err := idnodev1.NewSnowflakeServiceClient(c.Leader(t).Conn).DefinePool(t.Context(), define); err != nil {
				t.Fatal(err)
			}
			for _, n := range c.Nodes {
				command = append(command, n.HTTP)
			}
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			var said strings.Builder
			cmd.Stdout = &said
			cmd.Stderr = os.Stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, said.String())
			}
			judge(t, said.String())
		})
	}
}

// TestJPA runs the example of ids for entities.
func TestJPA(t *testing.T) {
	eachProvider(t, "Shop", filepath.Join(folder, "java/jpa/example"), func(t *testing.T, said string) {
		if want := regexp.MustCompile(`(?m)^orders/1-[ABC] Ada\norders/2-[ABC] Bob\n\[1\]\n\z`); !want.MatchString(said) {
			t.Errorf("the database has\n%s", said)
		}
	})
}

// TestJPAStoresInEachWay: an entity whose id is empty gets one in each way to store it, and if that id is taken the way
// fails and the row stays as it was. A field that cannot be filled is refused with the model.
func TestJPAStoresInEachWay(t *testing.T) {
	eachProvider(t, "Ways", "testdata/jpa", func(t *testing.T, said string) {
		want := "@IdnodeId fills a String, long, int, Long or Integer that is neither static nor final, not java.util.UUID Ways$Wrong.other\n" +
			"@IdnodeId fills fields of entities, not of the embeddable class Ways$Part\n"
		if said != want {
			t.Errorf("it says\n%swant\n%s", said, want)
		}
	})
}

// TestJPAHasAClientForEachUnit: two clients count for themselves, so an entity of the one's unit must get no id of the other's.
func TestJPAHasAClientForEachUnit(t *testing.T) {
	eachProvider(t, "Units", "testdata/jpa", func(t *testing.T, said string) {
		want := "IdnodeListener.use names the client first\n1 2 3\n1 1\nclass Units$Order is of another factory, which has another client\n4\n5\n2 3\n2\n"
		if said != want {
			t.Errorf("it says\n%swant\n%s", said, want)
		}
	})
}
