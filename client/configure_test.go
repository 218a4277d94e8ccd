package client_test

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/client"
)

// described is a Config as clients/conformance/urls.json has it, or what its error says.
type described struct {
	Endpoints []string
	Database  string
	ClusterID string
	TLS       *struct{ CA, Cert, Key, ServerName string }
	Error     string
	// Hides is what the error does not say.
	Hides string
}

func (d described) matches(cfg client.Config) bool {
	tls := cmp.Or(d.TLS, &struct{ CA, Cert, Key, ServerName string }{})
	name := ""
	if cfg.TLS != nil {
		name = cfg.TLS.ServerName
	}
	return slices.Equal(cfg.Endpoints, d.Endpoints) && cfg.Database == d.Database && cfg.ClusterID == d.ClusterID &&
		cfg.TLSFiles == client.TLSFiles{CA: tls.CA, Cert: tls.Cert, Key: tls.Key} && name == tls.ServerName && (cfg.TLS != nil) == (d.TLS != nil)
}

// TestParseURL: all clients have this table, those over JSON with idnode+http in place of idnode.
func TestParseURL(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../clients/conformance/urls.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]described
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) == 0 {
		t.Fatal(err)
	}
	cases["idnode+http://a:7410"] = described{Error: "HTTP addresses"}
	for url, want := range cases {
		switch cfg, err := client.ParseURL(url); {
		case err == nil && (want.Error != "" || !want.matches(cfg)):
			t.Errorf("%s is %+v", url, cfg)
		case err != nil && (want.Error == "" || !strings.Contains(err.Error(), want.Error)):
			t.Errorf("%s: %v", url, err)
		case err != nil && want.Hides != "" && strings.Contains(err.Error(), want.Hides):
			t.Errorf("%s: the error tells a secret: %v", url, err)
		}
	}
}

func TestConfigFromEnv(t *testing.T) {
	for _, tt := range []struct {
		env  string
		want described
	}{
		{"IDNODE_ENDPOINTS=a:7400,b:7400", described{Endpoints: []string{"a:7400", "b:7400"}}},
		{
			"IDNODE_ENDPOINTS=a:7400 IDNODE_DATABASE=shop IDNODE_CLUSTER_ID=2ab81c " +
				"IDNODE_TLS_CA=ca IDNODE_TLS_CERT=c IDNODE_TLS_KEY=k IDNODE_TLS_SERVER_NAME=n",
			described{
				Endpoints: []string{"a:7400"}, Database: "shop", ClusterID: "2ab81c",
				TLS: &struct{ CA, Cert, Key, ServerName string }{"ca", "c", "k", "n"},
			},
		},
		{"", described{Error: "IDNODE_ENDPOINTS"}},
		{"IDNODE_ENDPOINTS=a", described{Error: "IDNODE_ENDPOINTS"}},
		{"IDNODE_ENDPOINTS=a:1 IDNODE_DATABASE=a/b", described{Error: "IDNODE_DATABASE"}},
		{"IDNODE_ENDPOINTS=a:1 IDNODE_TLS_CERT=c IDNODE_TLS_KEY=k IDNODE_TLS=true", described{Error: "IDNODE_TLS_CA"}},
		{"IDNODE_ENDPOINTS=a:1 IDNODE_TLS_CA=ca IDNODE_TLS_CERT=c", described{Error: "IDNODE_TLS_KEY"}},
	} {
		for _, name := range []string{"ENDPOINTS", "DATABASE", "CLUSTER_ID", "TLS", "TLS_CA", "TLS_CERT", "TLS_KEY", "TLS_SERVER_NAME"} {
			t.Setenv("IDNODE_"+name, "")
		}
		for pair := range strings.FieldsSeq(tt.env) {
			name, value, _ := strings.Cut(pair, "=")
			t.Setenv(name, value)
		}
		switch cfg, err := client.ConfigFromEnv(); {
		case err == nil && (tt.want.Error != "" || !tt.want.matches(cfg)):
			t.Errorf("%s is %+v", tt.env, cfg)
		case err != nil && (tt.want.Error == "" || !strings.Contains(err.Error(), tt.want.Error)):
			t.Errorf("%s: %v", tt.env, err)
		}
	}
}
