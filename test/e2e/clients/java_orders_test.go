package clients

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/idnode/idnode/test/e2e/harness"
)

// TestOrdersOfJava does the same as TestOrdersOfNode with the service in Java, whose books are a database behind JPA.
func TestOrdersOfJava(t *testing.T) {
	languages[2].need(t)
	example, err := filepath.Abs("../../../examples/java-orders")
	if err != nil {
		t.Fatal(err)
	}
	s := &ordersService{folder: t.TempDir(), command: providers["EclipseLink"].command(t, "Orders", example)}
	c := harness.StartCluster(t, harness.Config{})
	s.serve(t, c)
	s.placeWhileKilled(t, c)
	s.placeByAnyKey(t, c, "java-orders")
	stored := make(map[string]bool)
	var orders []struct{ ID string }
	if err := s.call("GET", "", &orders); err != nil {
		t.Fatal(err)
	}
	for _, o := range orders {
		if stored[o.ID] || !strings.HasPrefix(o.ID, "orders/") {
			t.Errorf("%q is the id of an order, of another one too: %t", o.ID, stored[o.ID])
		}
		stored[o.ID] = true
	}
}
