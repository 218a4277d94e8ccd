package service

import (
	"testing"

	"github.com/idnode/idnode/access/rights"
)

// TestRightsOfACaller: what is shown as possible is what the door lets in.
func TestRightsOfACaller(t *testing.T) {
	w := newWorld(t)
	guarded := newNode(t, w, func(c *Config) { c.Guarded, c.Admins = true, []string{"ops"} })
	open := newNode(t, w, nil)
	all := everything().Grants[0].Rights
	check := func(what string, got, want rights.Right) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	check("without roles and administrators", open.Rights(as(""), "", ""), all)
	check("an administrator", guarded.Rights(as("ops"), "shop", "orders"), all)
	check("somebody else", guarded.Rights(as("shop"), "shop", "orders"), all&^rights.Guarded)
	check("somebody else, within a database", guarded.rightsWithin(as("shop"), "shop"), all&^rights.Guarded)

	guarded.setRoles(t, everything(), shop(rights.Seed|rights.Force))
	check("an operator", guarded.Rights(as("ops"), "", ""), everything().Grants[0].Rights)
	check("a shop", guarded.Rights(as("shop"), "SHOP", "ORDERS/de"), rights.Seed|rights.Force)
	check("a shop, on another name", guarded.Rights(as("shop"), "shop", "bills"), 0)
	check("a shop, on the cluster", guarded.Rights(as("shop"), "", ""), 0)
	check("a shop, within its database", guarded.rightsWithin(as("shop"), "Shop"), rights.Seed|rights.Force)
	check("a shop, within another", guarded.rightsWithin(as("shop"), "default"), 0)
	check("a stranger", guarded.rightsWithin(as("stranger"), "shop"), 0)
}
