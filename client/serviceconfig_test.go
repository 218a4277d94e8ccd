package client_test

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/idnode/idnode/client"
)

// TestServiceConfigRetriesOnlyReads by the names of the methods it covers.
func TestServiceConfigRetriesOnlyReads(t *testing.T) {
	var cfg struct {
		MethodConfig []struct {
			Name []struct{ Service, Method string }
		}
	}
	if err := json.Unmarshal([]byte(client.ServiceConfig), &cfg); err != nil {
		t.Fatal(err)
	}
	for _, m := range cfg.MethodConfig {
		for _, n := range m.Name {
			read := strings.HasPrefix(n.Method, "Get") || strings.HasPrefix(n.Method, "List") || n.Method == "WhoHolds" || n.Method == "Check"
			if !read {
				t.Errorf("%s/%s is retried", n.Service, n.Method)
			}
		}
	}
	conn, err := grpc.NewClient("localhost:1", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(client.ServiceConfig))
	if err != nil {
		t.Fatal(err) // gRPC does not understand it
	}
	_ = conn.Close()
}
