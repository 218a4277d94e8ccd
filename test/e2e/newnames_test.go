package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// TestACallerCannotTakeTheNamesOfOthers: by its limit it makes few new names on a node,
// and by its database's quota exactly as many as that allows in the cluster, through all
// nodes at once. Another caller makes names all the while.
func TestACallerCannotTakeTheNamesOfOthers(t *testing.T) {
	certs := harness.CertificatesWith(t, []string{"greedy", "webshop"}, "A", "B", "C")
	c := harness.StartCluster(t, harness.Config{Certs: certs})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	greedy, shop := make([]*harness.Client, len(c.Nodes)), harness.DialAs(t, c.Nodes[0].GRPC, certs, "webshop")
	for i, n := range c.Nodes {
		greedy[i] = harness.DialAs(t, n.GRPC, certs, "greedy")
	}
	roles := []*idnodev1.AccessRole{
		harness.Role("operator", "client", idnodev1.Right_RIGHT_CLUSTER),
		harness.Role("shop", "webshop", idnodev1.Right_RIGHT_GENERATE),
		{Name: "greedy", Principals: []string{"greedy"}, Grants: []*idnodev1.RoleGrant{
			{Database: "greedy", Rights: []idnodev1.Right{idnodev1.Right_RIGHT_CLAIMS, idnodev1.Right_RIGHT_GENERATE, idnodev1.Right_RIGHT_RANGES}},
		}},
	}
	next := func(c *harness.Client, name string) error {
		_, err := c.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Database: "greedy", Name: name})
		return err
	}

	const perHour = 4
	set := func(table *idnodev1.RoleTable) {
		t.Helper()
		r, err := c.Nodes[0].Cluster.SetRoles(ctx, &idnodev1.SetRolesRequest{Table: table})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range c.Nodes {
			harness.Eventually(t, 10*time.Second, "a node knows the roles", func(ctx context.Context) error {
				now, err := n.Cluster.GetRoles(ctx, &idnodev1.GetRolesRequest{Consistency: idnodev1.Consistency_CONSISTENCY_STALE})
				if err == nil && now.GetSetAt() != r.GetLogIndex() {
					err = fmt.Errorf("those of %d", now.GetSetAt())
				}
				return err
			})
		}
	}
	set(&idnodev1.RoleTable{Roles: roles, Limits: []*idnodev1.CallerLimit{{Principals: []string{"greedy"}, NewNamesPerHour: perHour}}})
	for _, client := range greedy[:2] {
		for i := range perHour {
			if err := next(client, client.Conn.Target()+strconv.Itoa(i)); err != nil {
				t.Fatalf("name %d: %v", i, err)
			}
		}
		if err := next(client, "one more"); harness.Reason(err) != "RATE_LIMITED" {
			t.Errorf("beyond the limit: %v", err)
		}
		if _, err := client.Ids.Claim(ctx, &idnodev1.ClaimRequest{Database: "greedy", Id: "one more"}); harness.Reason(err) != "RATE_LIMITED" {
			t.Errorf("a claim beyond the limit: %v", err)
		}
		if err := next(client, client.Conn.Target()+"0"); err != nil {
			t.Errorf("a name that is there: %v", err)
		}
	}
	if err := next(shop, "invoices"); err != nil {
		t.Errorf("another caller: %v", err)
	}

	// Without the limit the database's quota stands.
	const quota = 2*perHour + 1 + 20
	set(&idnodev1.RoleTable{Roles: roles})
	if _, err := c.Nodes[0].Cluster.UpdateSetting(ctx,
		&idnodev1.UpdateSettingRequest{Key: "max-names-per-database", Value: quota}); err != nil {
		t.Fatal(err)
	}
	var made atomic.Int64
	var callers sync.WaitGroup
	for i, client := range greedy {
		callers.Go(func() {
			for j := range quota {
				switch err := next(client, fmt.Sprintf("%d-%d", i, j)); {
				case err == nil:
					made.Add(1)
				case harness.Reason(err) != "QUOTA":
					t.Errorf("a name within or beyond the quota: %v", err)
				}
			}
		})
	}
	callers.Wait()
	if made.Load() != 20 {
		t.Errorf("%d names were made within a quota for 20", made.Load())
	}
	if _, err := shop.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Database: "shop", Name: "invoices"}); err != nil {
		t.Errorf("another database: %v", err)
	}
	c.Agree(t)
}
