package clients

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// urlCase is what a URL configures, or how it is refused.
type urlCase struct {
	Endpoints []string           `json:"endpoints"`
	Database  string             `json:"database"`
	ClusterID string             `json:"clusterId"`
	TLS       *map[string]string `json:"tls"`
	// Error is a part of the text, and Hides what is none.
	Error string `json:"error"`
	Hides string `json:"hides"`
}

// parsedURL is what the runner of Java makes of a URL, by the names of the command line's flags.
type parsedURL struct {
	Endpoints []string          `json:"endpoints"`
	Named     map[string]string `json:"named"`
	Error     string            `json:"error"`
}

// TestJavaReadsURLs: the table says which URLs there are, and what is wrong with others. The scheme of HTTP addresses is another one.
func TestJavaReadsURLs(t *testing.T) {
	var cases map[string]urlCase
	read(t, "urls", func(d *json.Decoder) error { return d.Decode(&cases) })
	languages[2].need(t)
	r := languages[2].start(t)
	overHTTP := func(text string) string { return regexp.MustCompile("^idnode:").ReplaceAllString(text, "idnode+http:") }
	all := map[string]urlCase{"idnode://a:7402": {Error: "gRPC"}}
	for url, want := range cases {
		want.Error = overHTTP(want.Error)
		all[overHTTP(url)] = want
	}
	for url, want := range all {
		r.task(t, map[string]string{"url": url})
		var got parsedURL
		r.answer(t, &got)
		if want.Error != "" {
			if got.Error == "" || !strings.Contains(got.Error, want.Error) || want.Hides != "" && strings.Contains(got.Error, want.Hides) {
				t.Errorf("%q is refused with %q, want %q without %q", url, got.Error, want.Error, want.Hides)
			}
			continue
		}
		if !reflect.DeepEqual(got, parsedURL{Endpoints: want.Endpoints, Named: want.named()}) {
			t.Errorf("%q is %+v, want %+v", url, got, want)
		}
	}
}

// named returns the parameters of a URL, without tls, which says nothing beside a CA.
func (c urlCase) named() map[string]string {
	named := make(map[string]string)
	if c.Database != "" {
		named["database"] = c.Database
	}
	if c.ClusterID != "" {
		named["cluster-id"] = c.ClusterID
	}
	if c.TLS == nil {
		return named
	}
	flags := map[string]string{"ca": "tls-ca", "cert": "tls-cert", "key": "tls-key", "serverName": "tls-server-name"}
	for name, value := range maps.All(*c.TLS) {
		named[flags[name]] = value
	}
	if named["tls-ca"] == "" {
		named["tls"] = "true"
	}
	return named
}

// TestJavaReadsTheEnvironment: a client is made of the variables of the command line, and the program's options win.
func TestJavaReadsTheEnvironment(t *testing.T) {
	program := `
try (var client = IdnodeClient.fromEnv(); var other = IdnodeClient.fromEnv(config -> config.withDatabase("own"))) {
  say(client.identity("invoices").next() + other.identity("invoices").next());
  say(client);
} catch (IllegalArgumentException e) {
  say(e.getMessage());
}`
	for _, none := range []string{"", " , "} {
		t.Setenv("IDNODE_HTTP_ENDPOINTS", none)
		if got := javaProgram(t, program); !strings.Contains(got, "IDNODE_HTTP_ENDPOINTS") {
			t.Errorf("without endpoints it says %s", got)
		}
	}
	var node listening
	endpoint := node.serve(t, giveSeven)
	t.Setenv("IDNODE_HTTP_ENDPOINTS", " "+endpoint+" ,, "+endpoint+", ")
	t.Setenv("IDNODE_DATABASE", "shop")
	t.Setenv("IDNODE_CLUSTER_ID", "c")
	want := "14\nIdnodeClient[endpoints=[" + endpoint + "], leader=, cluster=c, open]\n"
	if got := javaProgram(t, program); got != want {
		t.Errorf("it says %s, want %s", got, want)
	}
	var databases []any
	for _, one := range node.asked {
		if one.method == "NextIdentity" {
			databases = append(databases, one.fields["database"])
		}
	}
	if !reflect.DeepEqual(databases, []any{"shop", "own"}) {
		t.Errorf("the calls name the databases %v", databases)
	}
	t.Setenv("IDNODE_TLS_CA", "/no/such/file")
	if got := javaProgram(t, program); !strings.Contains(got, "/no/such/file") {
		t.Errorf("with a file that is not there it says %s", got)
	}
}
