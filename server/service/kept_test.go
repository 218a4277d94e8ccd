package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/compat"
)

// TestPageTokensKept: a caller in the middle of a list goes on with it at a newer node.
func TestPageTokensKept(t *testing.T) {
	const listings, last = "ihcmdersonvypw", "usage/ 1é"
	at := func(scope rune, token string) (cursor, error) {
		return newCursor(listing(scope), &idnodev1.ListIdentitiesRequest{Database: "Shop", Prefix: "US", PageToken: token})
	}
	var lines strings.Builder
	for _, scope := range listings {
		c, err := at(scope, "")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&lines, "%c %s\n", scope, c.token(last))
	}
	for line := range strings.Lines(string(compat.File(t, compat.Wire, "page-tokens", []byte(lines.String())))) {
		scope, token, _ := strings.Cut(strings.TrimSpace(line), " ")
		if c, err := at(rune(scope[0]), token); err != nil || c.after != last {
			t.Errorf("%q would be broken: a token of list %s leads to %q, %v", compat.Wire, scope, c.after, err)
		}
	}
}
