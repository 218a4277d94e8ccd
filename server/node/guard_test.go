package node

import (
	"context"
	"errors"
	"testing"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/service"
	"github.com/idnode/idnode/test/tier"
)

// readyTo runs a node until it is ready, or returns the error with which it ended.
func readyTo(t *testing.T, c *config.Config) (*running, error) {
	t.Helper()
	n := run(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	err := n.Ready(ctx)
	if err != nil {
		err = <-n.ended
		n.ended = nil
	}
	return n, err
}

// TestANodeThatNobodyGuards does not start: with TLS it needs administrators, the word
// that all are, or roles, which are known once the state is.
func TestANodeThatNobodyGuards(t *testing.T) {
	tier.Long(t)
	c := configs(t, "A")["A"]
	secured(t, c)
	c.Admin = nil
	if _, err := New(Options{Config: c}); !errors.Is(err, config.ErrUnguarded) {
		t.Fatalf("at a first start: %v", err)
	}
	c.Admin = []string{"ops"}
	n, err := readyTo(t, c)
	if err != nil {
		t.Fatal(err)
	}
	n.stop()
	c.Admin = nil
	if _, err := readyTo(t, c); !errors.Is(err, config.ErrUnguarded) {
		t.Fatalf("at a later start, without roles: %v", err)
	}
	c.Admin = []string{"*"}
	if n, err = readyTo(t, c); err != nil {
		t.Fatal(err)
	}
	ops := admission.WithCaller(t.Context(), admission.Caller{Principal: "dns:ops"})
	all := rights.Role{Name: "all", Principals: []string{"ops"}, Grants: []rights.Grant{{Database: rights.Any, Rights: rights.Cluster}}}
	if _, err := n.service.SetRoles(ops, &idnodev1.SetRolesRequest{Table: service.Roles{Roles: []rights.Role{all}}.Message()}); err != nil {
		t.Fatal(err)
	}
	n.stop()
	c.Admin = nil
	if n, err = readyTo(t, c); err != nil {
		t.Fatalf("with roles: %v", err)
	}
	var refused *apierror.Error
	if _, err := n.service.SetRoles(ops, &idnodev1.SetRolesRequest{Table: &idnodev1.RoleTable{}}); !errors.As(err, &refused) ||
		refused.Reason != apierror.ReasonInvalidRoles {
		t.Errorf("the roles can be taken away where there are no administrators: %v", err)
	}
}
