package harness

import (
	"context"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
)

// Role is a role that gives one principal one right in all databases.
func Role(name, principal string, right idnodev1.Right) *idnodev1.AccessRole {
	grant := &idnodev1.RoleGrant{Database: "*", Rights: []idnodev1.Right{right}}
	return &idnodev1.AccessRole{Name: name, Principals: []string{principal}, Grants: []*idnodev1.RoleGrant{grant}}
}

// SetRoles sets roles through n and returns the log index at which they hold.
func SetRoles(t testing.TB, n *Node, roles ...*idnodev1.AccessRole) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := n.Cluster.SetRoles(ctx, &idnodev1.SetRolesRequest{Table: &idnodev1.RoleTable{Roles: roles}})
	if err != nil {
		t.Fatal(err)
	}
	return r.GetLogIndex()
}
