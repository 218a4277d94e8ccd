package clients

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	pluralize "github.com/gertd/go-pluralize"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/internal/freeport"
)

// testCase is one conversation of a client with a cluster.
type testCase struct {
	Name string `json:"name"`
	// Nodes is how many nodes there are; 0 means 1. The first one of each cluster leads.
	Nodes int `json:"nodes"`
	// Young says that the log is at index 0 at first, which no client takes for one.
	Young bool `json:"young"`
	// Leaderless says that no node knows a leader.
	Leaderless bool `json:"leaderless"`
	// Blanks has blanks around each endpoint.
	Blanks bool `json:"blanks"`
	// Frozen has an endpoint before all others that takes connections and never answers.
	Frozen bool `json:"frozen"`
	// Down has an endpoint before all others at which nobody is.
	Down bool `json:"down"`
	// Clusters are the ids of the nodes' clusters; those without are of cluster c.
	Clusters []string `json:"clusters"`
	// Untyped says that a compiler refuses such calls, where there is one.
	Untyped bool `json:"untyped"`
	// HTTP says that the case is not for gRPC, where a lost answer leaves the connection.
	HTTP bool `json:"http"`
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
	// ClusterID is the cluster that the client says.
	ClusterID string `json:"clusterId,omitempty"`
}

// call is a call of the client and its outcome.
type call struct {
	Call string `json:"call"`
	Args args   `json:"args"`
	// Values are what it returns, as text, and Error how it fails. A failure may have values too.
	Values []string `json:"values,omitempty"`
	Error  *failure `json:"error,omitempty"`
	// IDs is how many Snowflake ids it makes, whose values depend on the clock.
	IDs int `json:"ids,omitempty"`
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
	// RequestID may be given, and empty.
	RequestID *string `json:"requestId,omitempty"`
	// Since makes it the id of an earlier call, Again that of the call which failed last.
	Since  string `json:"since,omitempty"`
	Again  bool   `json:"again,omitempty"`
	Claim  bool   `json:"claim,omitempty"`
	Force  bool   `json:"force,omitempty"`
	Forget bool   `json:"forget,omitempty"`
	// Value and Expected are 64 bits wide, and so are text.
	Value    string `json:"value,omitempty"`
	Expected string `json:"expected,omitempty"`
	// Key is given where a list of keys is expected, Options are options as they are named there.
	Key     string            `json:"key,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	// Keys, Values, Date, Label, Reason, Number and Because are those of calls on series.
	Keys   []string          `json:"keys,omitempty"`
	Values map[string]string `json:"values,omitempty"`
	Date   string            `json:"date,omitempty"`
	Label  string            `json:"label,omitempty"`
	Reason string            `json:"reason,omitempty"`
	// Number is 64 bits wide too.
	Number  string `json:"number,omitempty"`
	Because string `json:"because,omitempty"`
	// ExpiresInMs is the time of a number that is taken.
	ExpiresInMs int `json:"expiresInMs,omitempty"`
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
	// Cause says that the error has one in its language.
	Cause bool `json:"cause"`
}

// failedAs says whether a single call was made, and how it failed.
func failedAs(got []outcome, want failure) bool {
	return len(got) == 1 && got[0].Error != nil && *got[0].Error == want
}

// untilFailedAs has a single call made again until it fails as wanted, five times at the most.
func (r *runner) untilFailedAs(t *testing.T, one task, want failure) (got []outcome) {
	t.Helper()
	for try := 0; try < 5 && !failedAs(got, want); try++ {
		r.task(t, one)
		got = nil
		r.answer(t, &got)
	}
	return got
}

// lists returns the cases by the list they are in.
func lists(t *testing.T) map[string][]testCase {
	t.Helper()
	all := make(map[string][]testCase)
	for _, name := range []string{"ranges", "failures", "refusals", "clusters", "series", "snowflake"} {
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

// endpoints says of spellings whether a client takes them.
func endpoints(t *testing.T) map[string]bool {
	t.Helper()
	var list map[string]bool
	read(t, "endpoints", func(d *json.Decoder) error { return d.Decode(&list) })
	return list
}

// types returns the collection of each type's name.
func types(t *testing.T) map[string]string {
	t.Helper()
	var list map[string]string
	read(t, "types", func(d *json.Decoder) error { return d.Decode(&list) })
	return list
}

// eachCase runs a test for every case that can be written in the client's language.
func eachCase(t *testing.T, typed bool, test func(t *testing.T, c testCase)) {
	for name, list := range lists(t) {
		for _, c := range list {
			c.Nodes = max(c.Nodes, 1)
			if c.Untyped && typed {
				continue
			}
			t.Run(name+"/"+c.Name, func(t *testing.T) { test(t, c) })
		}
	}
}

// written returns the endpoints as the case's client is told of them.
func (c testCase) written(t *testing.T, endpoints []string) []string {
	t.Helper()
	if c.Frozen {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lis.Close() })
		endpoints = append([]string{lis.Addr().String()}, endpoints...)
	}
	if c.Down {
		endpoints = append([]string{freeport.For(t)}, endpoints...)
	}
	if c.Blanks {
		for i, e := range endpoints {
			endpoints[i] = " " + e + "\n"
		}
	}
	return endpoints
}

// converse has a client make the calls of a case, and judges what it did. The time of a
// call may be over in the middle of a try, which is then unknown, or before one on a machine
// that is slow: such a case is begun anew.
func converse(t *testing.T, c testCase, calls func(*script) []outcome) {
	t.Helper()
	for again := 0; ; again++ {
		s := newScript(c)
		got := calls(s)
		if again == 3 || c.Options.TimeoutMs == 0 || !endedEarly(c, got) {
			judge(t, c, s, got)
			return
		}
	}
}

// endedEarly says whether a call's outcome is unknown, or no node was asked or answered in time, in
// another way than expected.
func endedEarly(c testCase, got []outcome) bool {
	for i, want := range c.Calls[:min(len(got), len(c.Calls))] {
		e := got[i].Error
		if e != nil && slices.Contains([]string{"OutcomeUnknown", "NoEndpoint", "Deadline"}, e.Type) && !reflect.DeepEqual(e, want.Error) {
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
		if want.IDs > 0 {
			s.judgeSnowflakes(t, got[i].Values, want.IDs)
			got[i].Values = nil
		}
		if len(want.Values)+len(got[i].Values) > 0 && !reflect.DeepEqual(got[i].Values, want.Values) {
			t.Errorf("%s gave %q, want %q", want.Call, got[i].Values, want.Values)
		}
		if !reflect.DeepEqual(got[i].Error, want.Error) {
			t.Errorf("%s failed with %+v, want %+v", want.Call, got[i].Error, want.Error)
		}
	}
}

// TestConformance has each client make the calls of the lists.
func TestConformance(t *testing.T) {
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		eachCase(t, l.typed, func(t *testing.T, c testCase) {
			converse(t, c, func(s *script) (got []outcome) {
				r.task(t, task{Endpoints: c.written(t, s.serveHTTP(t, c.Nodes)), Options: c.Options, Calls: c.Calls})
				r.answer(t, &got)
				return got
			})
		})
		t.Run("endpoints", func(t *testing.T) {
			for endpoint, want := range endpoints(t) {
				r.task(t, task{Endpoints: []string{endpoint}, Calls: []call{}})
				var got []outcome
				r.answer(t, &got)
				if taken := len(got) == 0; taken != want {
					t.Errorf("%q is taken: %t", endpoint, taken)
				}
			}
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
	eachCase(t, true, func(t *testing.T, c testCase) {
		if c.HTTP {
			return
		}
		t.Parallel() // Most wait.
		converse(t, c, func(s *script) []outcome { return callGo(t, c.written(t, s.serveGRPC(t, c.Nodes)), c) })
	})
	t.Run("endpoints", func(t *testing.T) {
		for endpoint, want := range endpoints(t) {
			cl, err := client.New(t.Context(), client.Config{Endpoints: []string{endpoint}, Timeout: time.Millisecond})
			if err == nil {
				_ = cl.Close(t.Context())
			}
			// Over gRPC an endpoint is no URL.
			if taken := err == nil; taken != (want && !strings.Contains(endpoint, "//")) {
				t.Errorf("%q is taken: %t, %v", endpoint, taken, err)
			}
		}
	})
	t.Run("types", func(t *testing.T) {
		words := pluralize.NewClient()
		for name, collection := range types(t) {
			if got := client.CollectionTag(words.Plural(name)); got != collection {
				t.Errorf("%s is kept in %s, want %s", name, got, collection)
			}
		}
	})
}
