package service

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// as returns the context of a caller.
func as(principal string) context.Context {
	return admission.WithCaller(context.Background(), admission.Caller{Principal: principal, Address: "192.0.2.1:9"})
}

// everything is a role for operators, and shop one for those of a shop.
func everything() rights.Role {
	const all = rights.Number<<1 - 1
	return rights.Role{Name: "operators", Principals: []string{"ops"}, Grants: []rights.Grant{{Database: rights.Any, Rights: all}}}
}

func shop(r rights.Right) rights.Role {
	return rights.Role{Name: "shop", Principals: []string{"shop"}, Grants: []rights.Grant{{Database: "Shop", Prefix: "Orders", Rights: r}}}
}

// shopWithout has all rights on orders in the database shop, and on the whole cluster
// those that count only there, but for one.
func shopWithout(missing rights.Right) rights.Role {
	whole, have := rights.Cluster|rights.Backup, everything().Grants[0].Rights&^missing
	role := shop(have &^ whole)
	role.Grants = append(role.Grants, rights.Grant{Database: rights.Any, Rights: have & whole})
	return role
}

func (n node) setRoles(t *testing.T, roles ...rights.Role) {
	t.Helper()
	if _, err := n.SetRoles(as("ops"), &idnodev1.SetRolesRequest{Table: Roles{Roles: roles}.Message()}); err != nil {
		t.Fatal(err)
	}
}

// useCases are all use cases that need a right, each with that right. Their names are about orders
// in the database shop.
var useCases = map[string]struct {
	need rights.Right
	make func(context.Context, node) error
}{
	"guid":        {rights.Generate, func(ctx context.Context, n node) error { return generate(ctx, n, "", false) }},
	"server-side": {rights.Generate, func(ctx context.Context, n node) error { return generate(ctx, n, "orders/", false) }},
	"identity":    {rights.Generate, func(ctx context.Context, n node) error { return generate(ctx, n, "ORDERS|", false) }},
	"semantic":    {rights.Generate, func(ctx context.Context, n node) error { return generate(ctx, n, "orders/x", false) }},
	"semantic, claimed": {
		rights.Generate | rights.Claims,
		func(ctx context.Context, n node) error { return generate(ctx, n, "orders/y", true) },
	},
	"next": {rights.Generate, func(ctx context.Context, n node) error {
		_, err := n.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Database: "shop", Name: "orders"})
		return err
	}},
	"next, several": {rights.Generate, func(ctx context.Context, n node) error {
		_, errs := n.NextIdentities(ctx, []*idnodev1.NextIdentityRequest{{Database: "shop", Name: "orders"}})
		return errs[0]
	}},
	"stream": {rights.Generate, func(ctx context.Context, n node) error {
		return n.StreamServerSideIds(ctx, &idnodev1.StreamServerSideIdsRequest{Database: "shop", Template: "orders/", Count: 1},
			func(*idnodev1.StreamServerSideIdsResponse) error { return nil })
	}},
	"range": {rights.Ranges, func(ctx context.Context, n node) error {
		_, err := n.NextRange(ctx, &idnodev1.NextRangeRequest{Database: "shop", Tag: "orders"})
		return err
	}},
	"return": {rights.Ranges, func(ctx context.Context, n node) error {
		_, err := n.ReturnRange(ctx, &idnodev1.ReturnRangeRequest{
			Database: "shop", Tag: "orders", Low: 1, High: 9, Last: proto.Int64(3), WithoutToken: true,
		})
		return err
	}},
	"seed": {rights.Seed, func(ctx context.Context, n node) error {
		_, err := n.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Database: "shop", Name: "orders", Value: proto.Int64(100)})
		return err
	}},
	"seed by force": {rights.Seed | rights.Force, func(ctx context.Context, n node) error {
		_, err := n.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Database: "shop", Name: "orders", Value: proto.Int64(100), Force: true})
		return err
	}},
	"hilo": {rights.Seed, func(ctx context.Context, n node) error {
		_, err := n.SetHiLo(ctx, &idnodev1.SetHiLoRequest{Database: "shop", Tag: "orders-seeded", Max: 100})
		return err
	}},
	"define pool": {rights.Seed, func(ctx context.Context, n node) error {
		_, err := n.DefinePool(ctx, &idnodev1.DefinePoolRequest{Database: "shop", Name: "orders-pool"})
		return err
	}},
	"forget leases": {rights.Cluster, func(ctx context.Context, n node) error {
		_, err := n.DefinePool(ctx, &idnodev1.DefinePoolRequest{Database: "shop", Name: "orders-pool", ForgetLeases: true})
		return err
	}},
	"evict": {rights.Delete, func(ctx context.Context, n node) error {
		_, err := n.EvictWorker(ctx, &idnodev1.EvictWorkerRequest{Database: "shop", Pool: "orders-pool", Worker: proto.Int32(0)})
		return err
	}},
	"delete": {rights.Delete, func(ctx context.Context, n node) error {
		_, err := n.DeleteIdentity(ctx, &idnodev1.DeleteIdentityRequest{Database: "shop", Name: "orders"})
		return err
	}},
	"forget": {rights.Delete | rights.Force, func(ctx context.Context, n node) error {
		_, err := n.DeleteIdentity(ctx, &idnodev1.DeleteIdentityRequest{Database: "shop", Name: "orders", Forget: true})
		return err
	}},
	"claim": {rights.Claims, func(ctx context.Context, n node) error {
		_, err := n.Claim(ctx, &idnodev1.ClaimRequest{Database: "shop", Id: "orders/claimed"})
		return err
	}},
	"release": {rights.Claims, func(ctx context.Context, n node) error {
		_, err := n.Release(ctx, &idnodev1.ReleaseRequest{Database: "shop", Id: "orders/9"})
		return err
	}},
	"get identity": {rights.Read, func(ctx context.Context, n node) error {
		_, err := n.GetIdentity(ctx, &idnodev1.GetIdentityRequest{Database: "shop", Name: "orders"})
		return err
	}},
	"get hilo": {rights.Read, func(ctx context.Context, n node) error {
		_, err := n.GetHiLo(ctx, &idnodev1.GetHiLoRequest{Database: "shop", Tag: "orders"})
		return err
	}},
	"list": {rights.Read, func(ctx context.Context, n node) error {
		_, err := n.ListIdentities(ctx, &idnodev1.ListIdentitiesRequest{Database: "shop", Prefix: "ORDERS/2"})
		return err
	}},
	"list hilo": {rights.Read, func(ctx context.Context, n node) error {
		_, err := n.ListHiLo(ctx, &idnodev1.ListHiLoRequest{Database: "shop", Prefix: "orders"})
		return err
	}},
	"list claims": {rights.Read, func(ctx context.Context, n node) error {
		_, err := n.ListClaims(ctx, &idnodev1.ListClaimsRequest{Database: "shop", Prefix: "orders"})
		return err
	}},
	"who holds": {rights.Read, func(ctx context.Context, n node) error {
		_, err := n.WhoHolds(ctx, &idnodev1.WhoHoldsRequest{Database: "shop", Tag: "orders", Number: 1})
		return err
	}},
	"databases": {rights.Read, func(ctx context.Context, n node) error {
		_, err := n.ListDatabases(ctx, &idnodev1.ListDatabasesRequest{})
		return err
	}},
	"own etags": {rights.Read, func(ctx context.Context, n node) error {
		_, err := n.ListOwnEtags(ctx, &idnodev1.ListDatabasesRequest{})
		return err
	}},
	"reserves": {rights.Read, func(ctx context.Context, n node) error {
		_, err := n.ListReserves(ctx, &idnodev1.ListReservesRequest{})
		return err
	}},
	"setting": {rights.Cluster, func(ctx context.Context, n node) error {
		_, err := n.UpdateSetting(ctx, &idnodev1.UpdateSettingRequest{Key: "max-claims", Value: proto.Int64(7)})
		return err
	}},
	"create join token": {rights.Cluster, func(ctx context.Context, n node) error {
		_, err := n.CreateJoinToken(ctx, &idnodev1.CreateJoinTokenRequest{Tag: "D"})
		return err
	}},
	"remove": {rights.Cluster, func(ctx context.Context, n node) error {
		_, err := n.RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: "B"})
		return err
	}},
	"transfer": {rights.Cluster, func(ctx context.Context, n node) error {
		_, err := n.TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{Tag: "B"})
		return err
	}},
	"merge counters": {rights.Cluster, func(ctx context.Context, n node) error {
		_, err := n.MergeCounters(ctx, mergeIn(&idnodev1.DatabaseMerge{Database: "shop", Claims: []string{"orders/1"}}))
		return err
	}},
	"merge cluster": {rights.Cluster, func(ctx context.Context, n node) error {
		_, err := n.MergeCluster(ctx, &idnodev1.MergeClusterRequest{Floor: 1})
		return err
	}},
	"audit log": {rights.Cluster, func(ctx context.Context, n node) error {
		_, err := n.AuditTail(ctx, 1)
		return err
	}},
	"get roles": {rights.Cluster, func(ctx context.Context, n node) error {
		_, err := n.GetRoles(ctx, &idnodev1.GetRolesRequest{})
		return err
	}},
	"set roles": {rights.Cluster, func(ctx context.Context, n node) error {
		_, err := n.SetRoles(ctx, &idnodev1.SetRolesRequest{Table: Roles{Roles: []rights.Role{everything()}}.Message()})
		return err
	}},
}

// wholeCluster are the calls that need their right on every database.
var wholeCluster = []string{
	"guid", "databases", "own etags", "reserves", "setting", "create join token", "remove", "transfer", "merge counters", "merge cluster",
	"get roles", "set roles", "audit log", "forget leases",
}

func generate(ctx context.Context, n node, template string, claim bool) error {
	_, err := n.Generate(ctx, &idnodev1.GenerateRequest{Database: "shop", Template: template, Claim: claim})
	return err
}

func denied(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), apierror.ReasonPermissionDenied)
}

// TestEveryCallAtTheDoor: each call goes through with just the rights it needs,
// and not with all the others.
func TestEveryCallAtTheDoor(t *testing.T) {
	for name, call := range useCases {
		for _, missing := range call.need.List() {
			w := newWorld(t)
			n := newNode(t, w, nil)
			n.setRoles(t, everything(), shopWithout(missing))
			before := w.Proposals()
			if err := call.make(as("shop"), n); !denied(err) {
				t.Errorf("%s without %s: %v", name, missing, err)
			}
			if n.cluster.asked != "" || w.Proposals() != before {
				t.Errorf("%s without %s reached the cluster", name, missing)
			}
			wantError(t, call.make(as(""), n), apierror.CodePermissionDenied, apierror.ReasonPermissionDenied, "")
		}
		w := newWorld(t)
		n := newNode(t, w, nil)
		role := shop(call.need)
		role.Principals = append(role.Principals, "ops") // So that the roles can be set again.
		whole := false
		for _, all := range wholeCluster {
			whole = whole || all == name
		}
		if whole {
			role.Grants[0].Database, role.Grants[0].Prefix = rights.Any, ""
		}
		n.setRoles(t, everything(), role)
		if err := call.make(as("shop"), n); denied(err) {
			t.Errorf("%s with %s: %v", name, call.need, err)
		}
	}
}

// TestAdministratorsGuardWhatIsDangerous as long as there are no roles.
func TestAdministratorsGuardWhatIsDangerous(t *testing.T) {
	for name, call := range useCases {
		n := newNode(t, newWorld(t), func(c *Config) { c.Guarded, c.Admins = true, []string{"ops"} })
		guarded := call.need&rights.Guarded != 0
		if err := call.make(as("shop"), n); denied(err) != guarded {
			t.Errorf("%s, guarded %v: %v", name, guarded, err)
		}
		if err := call.make(as("ops"), n); denied(err) {
			t.Errorf("%s by an administrator: %v", name, err)
		}
		n = newNode(t, newWorld(t), func(c *Config) { c.Guarded = true })
		if err := call.make(as(""), n); denied(err) != guarded {
			t.Errorf("%s, guarded %v, without administrators: %v", name, guarded, err)
		}
	}
}

// TestWithoutAdministratorsEverybodyMay, as before there were any.
func TestWithoutAdministratorsEverybodyMay(t *testing.T) {
	for name, call := range useCases {
		if err := call.make(context.Background(), newNode(t, newWorld(t), nil)); denied(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTakingAllRolesAwayKeepsAnAdministrator: the caller must keep the right to set new roles, or
// nobody could, and no node without administrators would start again.
func TestTakingAllRolesAwayKeepsAnAdministrator(t *testing.T) {
	for name, tt := range map[string]struct {
		guarded bool
		admins  []string
		refused string
	}{
		"nobody is named":   {true, nil, "no administrators are named"},
		"others are":        {true, []string{"root"}, "is not among the administrators"},
		"the author is":     {true, []string{"ops"}, ""},
		"everybody may all": {false, nil, ""},
	} {
		n := newNode(t, newWorld(t), func(c *Config) { c.Guarded, c.Admins = tt.guarded, tt.admins })
		// As if by a node that everybody may ask.
		newNode(t, n.world, nil).setRoles(t, everything())
		limits := Roles{Limits: []rights.Limit{{Principals: []string{rights.Any}, InFlight: 9}}}
		for _, none := range []Roles{{}, limits} {
			_, err := n.SetRoles(as("ops"), &idnodev1.SetRolesRequest{Table: none.Message()})
			if tt.refused == "" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if tt.refused != "" {
				wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidRoles, "table")
				if !strings.Contains(err.Error(), tt.refused) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// lateState does not know the roles that its cluster has.
type lateState struct{ *fsm.State }

func (lateState) Roles() fsm.Roles { return fsm.Roles{} }

// TestANodeThatDoesNotKnowTheRolesYet: its callers are judged by those in force,
// and named when that is asked for.
func TestANodeThatDoesNotKnowTheRolesYet(t *testing.T) {
	w := newWorld(t)
	newNode(t, w, nil).setRoles(t, everything(), shop(rights.Generate|rights.Seed))
	late := newNode(t, w, func(c *Config) { c.State = lateState{w.State} })
	for _, name := range []string{"identity", "next", "next, several", "seed"} {
		if err := useCases[name].make(as("shop"), late); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"range", "claim", "delete", "setting", "seed by force"} {
		if err := useCases[name].make(as("shop"), late); !denied(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestARequestIDIsItsPrincipals: the same one of another principal is another, also where
// there are no roles; and each counts once, at whichever nodes it arrives.
func TestARequestIDIsItsPrincipals(t *testing.T) {
	w := newWorld(t)
	n, other := newNode(t, w, nil), newNode(t, w, nil)
	next := func(n node, who, id string) int64 {
		t.Helper()
		req := &idnodev1.NextIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{Id: id}}
		one, err := n.NextIdentity(as(who), req)
		many, errs := n.NextIdentities(as(who), []*idnodev1.NextIdentityRequest{req, {Name: "other"}})
		if err = errors.Join(err, errs[0], errs[1]); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(one, many[0]) {
			t.Fatalf("%s of %s counts twice: %v and %v", id, who, one.Blocks[0], many[0].Blocks[0])
		}
		return one.Blocks[0].First
	}
	taken := map[int64]string{}
	for _, who := range []string{"dns:shop", "dns:till", "uri:shop", ""} {
		value := next(other, who, "r")
		if owner, twice := taken[value]; twice {
			t.Errorf("%q has the answer of %q", who, owner)
		}
		taken[value] = who
		if again := next(n, who, "r"); again != value {
			t.Errorf("%q has %d, and %d again", who, value, again)
		}
	}
	seed := func(who string, value int64) error {
		_, err := n.SeedIdentity(as(who), &idnodev1.SeedIdentityRequest{Name: "v", Value: &value, RequestId: &idnodev1.RequestId{Id: "s"}})
		return err
	}
	if err := errors.Join(seed("dns:shop", 10), seed("dns:till", 20)); err != nil {
		t.Error(err)
	}
	wantError(t, seed("dns:shop", 30), apierror.CodeAlreadyExists, apierror.ReasonRequestIDReused, "request_id")
}

// TestOperationsCarryAPrincipalOnlyWithRoles: without roles no operation carries an unused
// principal.
func TestOperationsCarryAPrincipalOnlyWithRoles(t *testing.T) {
	w := newWorld(t)
	recorder := &recorder{world: w}
	n := newNode(t, w, func(c *Config) { c.Proposer = recorder })
	names := []string{"next", "next, several", "seed"}
	for _, name := range names {
		if err := useCases[name].make(as("ops"), n); err != nil {
			t.Fatal(err)
		}
		if p := recorder.principal(t); p != nil {
			t.Errorf("%s names %q without roles", name, *p)
		}
	}
	if err := useCases["remove"].make(as("ops"), n); err != nil || n.cluster.asked != "remove B" {
		t.Errorf("without roles the cluster was asked: %s: %v", n.cluster.asked, err)
	}
	n.setRoles(t, everything())
	if err := useCases["remove"].make(as("ops"), n); err != nil || n.cluster.asked != "remove B for ops" {
		t.Errorf("with roles the cluster was asked: %s: %v", n.cluster.asked, err)
	}
	for _, name := range names {
		if err := useCases[name].make(as("ops"), n); err != nil {
			t.Fatal(err)
		}
		if p := recorder.principal(t); p == nil || *p != "ops" {
			t.Errorf("%s does not name its caller", name)
		}
	}
}

// TestRolesAreFolded, shown as they are compared, and set only over those expected.
func TestRolesAreFolded(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	if _, err := n.SetRoles(as("ops"),
		&idnodev1.SetRolesRequest{Table: Roles{Roles: []rights.Role{everything(), shop(rights.Read)}}.Message()}); err != nil {
		t.Fatal(err)
	}
	res, err := n.GetRoles(as("ops"), &idnodev1.GetRolesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := shop(rights.Read)
	want.Grants[0].Database, want.Grants[0].Prefix = "shop", "orders"
	if diff := cmp.Diff([]rights.Role{everything(), want}, RolesOf(res.Table).Roles); diff != "" {
		t.Error(diff)
	}
	stale := res.SetAtIndex - 1
	_, err = n.SetRoles(as("ops"), &idnodev1.SetRolesRequest{Table: res.Table, Expected: &stale})
	wantError(t, err, apierror.CodeAborted, apierror.ReasonConcurrency, "expected")
	if _, err = n.SetRoles(as("ops"), &idnodev1.SetRolesRequest{Table: res.Table, Expected: &res.SetAtIndex}); err != nil {
		t.Fatal(err)
	}
	_, err = n.SetRoles(as("ops"), &idnodev1.SetRolesRequest{Table: Roles{Roles: []rights.Role{shop(rights.Cluster)}}.Message()})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidRoles, "table")
	_, err = n.SetRoles(as("ops"), &idnodev1.SetRolesRequest{})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidRoles, "table")
	unsaid := Roles{Roles: []rights.Role{everything(), shop(rights.Read)}}.Message()
	unsaid.Roles[1].Grants = []*idnodev1.RoleGrant{{Database: "shop", Prefix: "orders", Rights: []idnodev1.Right{idnodev1.Right_RIGHT_READ}}}
	_, err = n.SetRoles(as("ops"), &idnodev1.SetRolesRequest{Table: unsaid})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidRoles, "table")
	_, err = n.SetRoles(as("ops"), &idnodev1.SetRolesRequest{Table: Roles{Roles: []rights.Role{{Name: "x"}}}.Message()})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidRoles, "table")
}

// TestGrantsOfANameAreFolded, and do not cover longer names; rights that a grant would not give are
// refused.
func TestGrantsOfANameAreFolded(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	named := rights.Role{Name: "shop", Principals: []string{"shop"}, Grants: []rights.Grant{
		{Database: "Shop", Name: "Orders", Rights: rights.Read | rights.Generate},
		{Database: "Shop", Prefix: "Bills", Boundary: true, Rights: rights.Read},
		{Database: "Shop", Prefix: "Lists/", Boundary: true, Rights: rights.Read},
	}}
	n.setRoles(t, everything(), named)
	stored := w.State.Roles().Table.Roles[1].Grants
	if stored[0].Name != "orders" || !stored[1].Boundary || stored[1].Prefix != "bills" || stored[2].Boundary {
		t.Errorf("%+v", stored)
	}
	_, err := n.NextIdentity(as("shop"), &idnodev1.NextIdentityRequest{Database: "shop", Name: "ORDERS|", Count: 1})
	if denied(err) {
		t.Error(err)
	}
	for prefix, allowed := range map[string]bool{"orders": false, "bills": false, "bills/": true, "lists/": true, "": false} {
		if _, err := n.ListIdentities(as("shop"), &idnodev1.ListIdentitiesRequest{Database: "shop", Prefix: prefix}); denied(err) == allowed {
			t.Errorf("a list of %q: %v", prefix, err)
		}
	}
	_, err = n.SetRoles(as("ops"), &idnodev1.SetRolesRequest{Table: Roles{Roles: []rights.Role{everything(), shop(rights.Cluster)}}.Message()})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidRoles, "table")
}

// recorder remembers the newest operation.
type recorder struct {
	*world
	newest []byte
}

// Propose implements Proposer.
func (r *recorder) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	r.newest = operation
	return r.world.Propose(ctx, operation)
}

// ProposeAll implements Proposer.
func (r *recorder) ProposeAll(ctx context.Context, operations [][]byte) ([][]byte, []error) {
	r.newest = operations[len(operations)-1]
	return r.world.ProposeAll(ctx, operations)
}

func (r *recorder) principal(t *testing.T) *string {
	t.Helper()
	var op raftlogv1.Operation
	if err := proto.Unmarshal(r.newest, &op); err != nil {
		t.Fatal(err)
	}
	return op.Principal
}

// TestRightsOfACaller: the rights shown are the rights that admission allows.
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
	check("somebody else, within a database", guarded.numbers.RightsWithin(as("shop"), "shop"), all&^rights.Guarded)

	guarded.setRoles(t, everything(), shop(rights.Seed|rights.Force))
	check("an operator", guarded.Rights(as("ops"), "", ""), everything().Grants[0].Rights)
	check("a shop", guarded.Rights(as("shop"), "SHOP", "ORDERS/de"), rights.Seed|rights.Force)
	check("a shop, on another name", guarded.Rights(as("shop"), "shop", "bills"), 0)
	check("a shop, on the cluster", guarded.Rights(as("shop"), "", ""), 0)
	check("a shop, within its database", guarded.numbers.RightsWithin(as("shop"), "Shop"), rights.Seed|rights.Force)
	check("a shop, within another", guarded.numbers.RightsWithin(as("shop"), "default"), 0)
	check("a stranger", guarded.numbers.RightsWithin(as("stranger"), "shop"), 0)
}
