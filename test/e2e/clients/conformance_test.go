package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	pluralize "github.com/gertd/go-pluralize"

	"github.com/idnode/idnode/client"
)

// testCase is one conversation of a client with a cluster.
type testCase struct {
	Name string `json:"name"`
	// Nodes is how many nodes there are; 0 means 1. The first one, A, leads.
	Nodes int `json:"nodes"`
	// Leaderless says that no node knows a leader.
	Leaderless bool `json:"leaderless"`
	// Options are those of the client.
	Options options `json:"options"`
	// Calls are made one after the other.
	Calls []call `json:"calls"`
	// Server is what the cluster is asked in the order of the requests.
	Server []exchange `json:"server"`
}

type options struct {
	TimeoutMs    int `json:"timeoutMs,omitempty"`
	TryTimeoutMs int `json:"tryTimeoutMs,omitempty"`
}

// call is a call of the client and its outcome.
type call struct {
	Call string `json:"call"`
	Args args   `json:"args"`
	// Values are what it returns, as text, and Error how it fails.
	Values []string `json:"values,omitempty"`
	Error  *failure `json:"error,omitempty"`
}

// args are the arguments that calls have; those that are not named are the client's
// defaults.
type args struct {
	Template  string `json:"template,omitempty"`
	Name      string `json:"name,omitempty"`
	Tag       string `json:"tag,omitempty"`
	ID        string `json:"id,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	N         int    `json:"n,omitempty"`
	Separator string `json:"separator,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	Claim     bool   `json:"claim,omitempty"`
	Force     bool   `json:"force,omitempty"`
	Forget    bool   `json:"forget,omitempty"`
	// Value and Expected are 64 bits wide, and so are text.
	Value    string `json:"value,omitempty"`
	Expected string `json:"expected,omitempty"`
	// Keys, Values, Date, Label and Reason are those of calls on series.
	Keys   []string          `json:"keys,omitempty"`
	Values map[string]string `json:"values,omitempty"`
	Date   string            `json:"date,omitempty"`
	Label  string            `json:"label,omitempty"`
	Reason string            `json:"reason,omitempty"`
}

// failure is an error of a client: the name of its type without what languages add,
// and the reason and field that it tells.
type failure struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
	Field  string `json:"field"`
}

// task is what a runner is given for one case.
type task struct {
	Endpoints []string `json:"endpoints"`
	Options   options  `json:"options"`
	TLS       *tlsTask `json:"tls,omitempty"`
	Calls     []call   `json:"calls"`
}

// outcome is what a runner answers of each call.
type outcome struct {
	Values []string `json:"values"`
	Error  *failure `json:"error"`
}

// lists returns the cases by the list they are in.
func lists(t *testing.T) map[string][]testCase {
	t.Helper()
	all := make(map[string][]testCase)
	for _, name := range []string{"ranges", "failures", "refusals", "series"} {
		read(t, name, func(d *json.Decoder) error {
			var list []testCase
			err := d.Decode(&list)
			all[name] = list
			return err
		})
	}
	return all
}

func read(t *testing.T, name string, decode func(*json.Decoder) error) {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, "conformance", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	if err := decode(d); err != nil {
		t.Fatalf("%s: %v", f.Name(), err)
	}
}

// types returns the collection of each type's name.
func types(t *testing.T) map[string]string {
	t.Helper()
	var list map[string]string
	read(t, "types", func(d *json.Decoder) error { return d.Decode(&list) })
	return list
}

// eachCase runs a test for every case.
func eachCase(t *testing.T, test func(t *testing.T, c testCase)) {
	for name, list := range lists(t) {
		for _, c := range list {
			c.Nodes = max(c.Nodes, 1)
			t.Run(name+"/"+c.Name, func(t *testing.T) { test(t, c) })
		}
	}
}

// converse has a client make the calls of a case, and judges what it did. The time of a
// call may be over in the middle of a try, which is then unknown: such a case is begun anew.
func converse(t *testing.T, c testCase, calls func(*script) []outcome) {
	t.Helper()
	for again := 0; ; again++ {
		s := newScript(c)
		got := calls(s)
		if again == 3 || c.Options.TimeoutMs == 0 || !endedInATry(c, got) {
			judge(t, c, s, got)
			return
		}
	}
}

// endedInATry says whether a call's outcome is unknown in another way than expected.
func endedInATry(c testCase, got []outcome) bool {
	for i, want := range c.Calls[:min(len(got), len(c.Calls))] {
		if e := got[i].Error; e != nil && e.Type == "OutcomeUnknown" && !reflect.DeepEqual(e, want.Error) {
			return true
		}
	}
	return false
}

// judge compares what a client did with what is expected.
func judge(t *testing.T, c testCase, s *script, got []outcome) {
	t.Helper()
	s.end(t)
	if len(got) != len(c.Calls) {
		t.Fatalf("%d of %d calls were made", len(got), len(c.Calls))
	}
	for i, want := range c.Calls {
		if want.Error == nil && got[i].Error == nil {
			if len(want.Values)+len(got[i].Values) > 0 && !reflect.DeepEqual(got[i].Values, want.Values) {
				t.Errorf("%s gave %q, want %q", want.Call, got[i].Values, want.Values)
			}
		} else if !reflect.DeepEqual(got[i].Error, want.Error) {
			t.Errorf("%s failed with %+v, want %+v", want.Call, got[i].Error, want.Error)
		}
	}
}

// TestConformance has each client make the calls of the lists.
func TestConformance(t *testing.T) {
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		eachCase(t, func(t *testing.T, c testCase) {
			converse(t, c, func(s *script) (got []outcome) {
				r.task(t, task{Endpoints: s.serveHTTP(t, c.Nodes), Options: c.Options, Calls: c.Calls})
				r.answer(t, &got)
				return got
			})
		})
		t.Run("types", func(t *testing.T) {
			for name, collection := range types(t) {
				r.task(t, task{Endpoints: []string{"127.0.0.1:1"}, Calls: []call{{Call: "collection", Args: args{Name: name}}}})
				var got []outcome
				r.answer(t, &got)
				if !reflect.DeepEqual(got, []outcome{{Values: []string{collection}}}) {
					t.Errorf("%s is kept in %+v, want %s", name, got, collection)
				}
			}
		})
	})
}

// TestConformanceGo has the Go client make the same calls over gRPC.
func TestConformanceGo(t *testing.T) {
	eachCase(t, func(t *testing.T, c testCase) {
		converse(t, c, func(s *script) []outcome { return callGo(t, s.serveGRPC(t, c.Nodes), c) })
	})
	t.Run("types", func(t *testing.T) {
		words := pluralize.NewClient()
		for name, collection := range types(t) {
			if got := client.CollectionPrefix(words.Plural(name)); got != collection {
				t.Errorf("%s is kept in %s, want %s", name, got, collection)
			}
		}
	})
}
