package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// debianPython has the frameworks that Debian packages.
const debianPython = "/usr/bin/python3"

// giver is a node that gives identities, HiLo ranges and a Snowflake worker.
type giver struct {
	mu    sync.Mutex
	value int
	calls map[string]int
}

func startGiver(t *testing.T) (g *giver, endpoint string) {
	t.Helper()
	g = &giver{calls: make(map[string]int)}
	server := httptest.NewServer(greeting(g.give))
	t.Cleanup(server.Close)
	return g, strings.TrimPrefix(server.URL, "http://")
}

func (g *giver) give(w http.ResponseWriter, r *http.Request) {
	var request struct{ Count int }
	_ = json.NewDecoder(r.Body).Decode(&request)
	g.mu.Lock()
	defer g.mu.Unlock()
	method := path.Base(r.URL.Path)
	g.calls[method]++
	count := map[string]int{"NextIdentity": request.Count, "NextRange": 1000}[method]
	first, last := g.value+1, g.value+count
	g.value = last
	switch method {
	case "NextIdentity":
		_, _ = fmt.Fprintf(w, `{"blocks":[{"first":"%d","last":"%d"}],"logIndex":"101"}`, first, last)
	case "NextRange":
		_, _ = fmt.Fprintf(w, `{"prefix":"users/","low":"%d","high":"%d","size":"1000","nodeTag":"A","rangeAt":null,"fromReserve":false,"token":"AQ==","logIndex":"101"}`, first, last)
	case "AcquireWorker":
		_, _ = io.WriteString(w, `{"worker":3,"token":"AAAAAAAAAAM=","from":"0","until":"2000000000000",`+
			`"layout":{"unit":"0.001s","timeBits":41,"workerBits":10,"sequenceBits":12,"epoch":"2020-01-01T00:00:00Z"},"logIndex":"101"}`)
	default:
		_, _ = io.WriteString(w, `{"returned":true,"max":"1","logIndex":"102"}`)
	}
}

func (g *giver) called(method string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[method]
}

// frameworkProgram runs a program of testdata with Debian's Python, and returns what it wrote.
func frameworkProgram(t *testing.T, program string, needs []string, args ...string) string {
	t.Helper()
	for _, module := range needs {
		if err := exec.Command(debianPython, "-c", "import "+module).Run(); err != nil {
			t.Skip("there is no " + module)
		}
	}
	path, err := filepath.Abs(filepath.Join("testdata", program))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(debianPython, append([]string{path}, args...)...)
	cmd.Dir = filepath.Join(folder, "python")
	cmd.Env = append(os.Environ(), "PYTHONPATH=.")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestDjangoStores: no way of storing an object with an id of the cluster changes a row that has it already,
// or asks the database twice. What follows a colon is the outcome where the id is taken, and where it is not.
func TestDjangoStores(t *testing.T) {
	g, endpoint := startGiver(t)
	got := frameworkProgram(t, "django_stores.py", []string{"django"}, endpoint)
	want := `save: refused right
save with an empty text: refused right
save of a child: refused right
create: refused right
get_or_create: refused right
update_or_create: refused right
bulk_create: refused right
form of the admin: refused right
admin: refused right
copy: refused right
copy as told: refused right
fixture: refused right
nested: refused right with 1 updates
again: refused right with 1 updates
bulk_create of 500: 500 True
of a parent: 1000
upserts of another column: passed
a copy with its number: refused
a number that becomes None: IntegrityError
bulk_update of what has no id: ValueError
save with force_update: ValueError
bulk_create that updates: ValueError
the same again: ValueError
of one of two columns: ValueError
of what is not said: ValueError
one object twice: ValueError
a number that may be None, and becomes it: ValueError
the same by position: ValueError
a number of a fixture: True
fixtures with keys: True [True, True, False, True, True, False]
what has no number: None
as a default: idnode.E002
a child of a stored parent: parent
snowflake: 3 True
users
orders
flakes
missing idnode.E001
wrong idnode.E001
of_asyncio idnode.E001
idnode.django.NumberField(blank=True, editable=False, source='__main__.orders', unique=True) True
`
	if got != want {
		t.Errorf("the ways ended with\n%s\nwant\n%s", got, want)
	}
	if calls := g.called("NextIdentity"); calls != 7 {
		t.Errorf("%d calls for two portions of 500 numbers, and five", calls)
	}
}

// TestSQLAlchemyStores is the same for SQLAlchemy: the outcomes are those of a primary key that its column fills, and
// of a number that the session fills.
func TestSQLAlchemyStores(t *testing.T) {
	_, endpoint := startGiver(t)
	got := frameworkProgram(t, "sqlalchemy_stores.py", []string{"sqlalchemy", "aiosqlite"}, endpoint)
	want := `add: refused, right, refused, right
add_all: refused, right, refused, right
merge: refused, right, refused, right
bulk_save_objects: refused, right, refused, right
bulk_insert_mappings: refused, right, refused, right
insert: refused, right, refused, right
insert of rows: refused, right, refused, right
insert of many: refused, right, refused, right
upsert: refused at once, refused at once, refused at once, refused at once
insert or replace: refused at once, refused at once, refused at once, refused at once
insert from select: refused at once, refused at once, refused at once, refused at once
nested: refused, right, refused, right
parent: refused, right, refused, right
many: 500
snowflake: [3, 3, 3] [3, 3, 3]
a number that becomes None: ValueError
an upsert of MySQL: ValueError
an upsert by number: ValueError
an upsert by NUMBER: ValueError
an upsert by number: ValueError
an upsert by "number": ValueError
an upsert by lower(orders.ext): ValueError
an upsert by ext passed
an upsert by Order.ext passed
an upsert by EXT passed
an upsert by any: ValueError
an upsert by constraint both: ValueError
an upsert by constraint orders_number_key: ValueError
an upsert by constraint folded: ValueError
an upsert by constraint unknown: ValueError
an upsert by constraint once passed
an upsert by constraint orders_ext_key passed
one object twice: 2
no attribute of a column: TypeError
no attribute of a column: TypeError
no attribute of a column: TypeError
no attribute of a column: TypeError
a source that is none: TypeError
a class as a source: TypeError
a column of Float: TypeError
an attribute of Float: TypeError
a column of Boolean: TypeError
an attribute of Boolean: TypeError
asyncio: 105 [105, 105, 105, 105]
a handle of asyncio without a loop: StatementError
`
	if got != want {
		t.Errorf("the ways ended with\n%s\nwant\n%s", got, want)
	}
}
