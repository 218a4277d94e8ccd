package rights

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
)

func table(t testing.TB, roles []Role, limits ...Limit) *Table {
	t.Helper()
	table, err := New(roles, limits)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func shopRoles() []Role {
	return []Role{
		{Name: "shop", Principals: []string{"shop.example.org"}, Grants: []Grant{
			{Database: "shop", Prefix: "orders", Rights: Generate | Ranges},
			{Database: "shop", Prefix: "orders/de", Rights: Seed},
		}},
		{Name: "readers", Principals: []string{Any}, Grants: []Grant{{Database: Any, Rights: Read}}},
		{Name: "operators", Principals: []string{"spiffe://example.org/op", "ops"}, Grants: []Grant{{Database: Any, Rights: All}}},
	}
}

// TestAllows: calls that no role allows are forbidden, and rights add up.
func TestAllows(t *testing.T) {
	roles := table(t, shopRoles())
	tests := []struct {
		principal      string
		need           Right
		database, name string
		want           bool
	}{
		{"shop.example.org", Generate, "shop", "orders", true},
		{"shop.example.org", Generate, "shop", "orders/2026", true},
		{"shop.example.org", Generate, "shop", "order", false},
		{"shop.example.org", Generate, "shop", "", false},
		{"shop.example.org", Generate, "other", "orders", false},
		{"shop.example.org", Seed, "shop", "orders", false},
		{"shop.example.org", Seed, "shop", "orders/de", true},
		{"shop.example.org", Generate | Seed, "shop", "orders/de", true},
		{"shop.example.org", Seed | Force, "shop", "orders/de", false},
		{"shop.example.org", Read, "any", "thing", true},
		{"shop.example.org", Cluster, "", "", false},
		{"SHOP.example.org", Generate, "shop", "orders", false},
		{"", Read, "shop", "orders", true},
		{"", Generate, "shop", "orders", false},
		{Any, Generate, "shop", "orders", false},
		{"ops", Cluster, "", "", true},
		{"dns:ops", Cluster, "", "", true},
		{"uri:ops", Cluster, "", "", false},
		{"email:ops", Cluster, "", "", false},
		{"spiffe://example.org/op", Delete | Force, "shop", "orders", true},
		{"uri:spiffe://example.org/op", Delete | Force, "shop", "orders", true},
		{"dns:spiffe://example.org/op", Delete | Force, "shop", "orders", false},
		{"stranger", Backup, "", "", false},
	}
	for _, tt := range tests {
		if got := Allows(roles, tt.principal, tt.need, tt.database, tt.name); got != tt.want {
			t.Errorf("%q %s on %q of %q: %v, want %v", tt.principal, tt.need, tt.name, tt.database, got, tt.want)
		}
		if got := Allows(roles, tt.principal, tt.need, []byte(tt.database), []byte(tt.name)); got != tt.want {
			t.Errorf("as bytes, %q %s on %q of %q: %v, want %v", tt.principal, tt.need, tt.name, tt.database, got, tt.want)
		}
	}
}

// TestGrantsThatEnd: a grant for one name is for no other, and one with a boundary for
// none that only begins alike. A list needs a grant for all that it may show.
func TestGrantsThatEnd(t *testing.T) {
	grants := []Grant{
		{Name: "orders"}, {Prefix: "orders", Boundary: true}, {Prefix: "orders"}, {Prefix: "orders/"}, {},
	}
	for name, want := range map[string]string{
		"orders": "nbp-*", "orders|": "nbp-*", "orders/": "-bp/*", "orders/1": "-bp/*", "orders|1": "-bp-*",
		"orders2": "--p-*", "orders-old": "--p-*",
		"order": "----*", "": "----*", "orders" + Further: "--p-*", "orders|" + Further: "-bp-*", "orders/" + Further: "-bp/*", Further: "----*",
	} {
		var got strings.Builder
		for i, g := range grants {
			g.Database, g.Rights = Any, Read
			allowed := Allows(table(t, []Role{{Name: "a", Principals: []string{"x"}, Grants: []Grant{g}}}), "x", Read, "shop", name)
			got.WriteByte(map[bool]byte{true: "nbp/*"[i], false: '-'}[allowed])
		}
		if got.String() != want {
			t.Errorf("%q is allowed by %s, want %s", name, got.String(), want)
		}
	}
}

// TestRightsThatGrantsDoNotGive: a grant of a part has no rights to the whole cluster.
func TestRightsThatGrantsDoNotGive(t *testing.T) {
	for _, g := range []Grant{
		{Database: "shop", Rights: Cluster},
		{Database: "shop", Rights: Backup | Read},
		{Database: Any, Prefix: "a", Rights: Cluster},
		{Database: Any, Name: "a", Rights: All},
	} {
		stored := table(t, []Role{{Name: "a", Principals: []string{"x"}, Grants: []Grant{g}}})
		if stored.Check() == nil {
			t.Errorf("%+v is accepted", g)
		}
	}
	if err := table(t, shopRoles()).Check(); err != nil {
		t.Error(err)
	}
}

// TestWithin: no grant is an empty list, as a page shows it for a stranger.
func TestWithin(t *testing.T) {
	stored := table(t, shopRoles()[:1])
	for principal, want := range map[string]int{"dns:shop.example.org": 2, "dns:stranger": 0} {
		if got := Within(stored, principal, "shop"); got == nil || len(got) != want {
			t.Errorf("%s has %#v", principal, got)
		}
		if got := Within(stored, principal, "other"); got == nil || len(got) != 0 {
			t.Errorf("%s has %#v elsewhere", principal, got)
		}
	}
}

// TestPrincipals: a plain name is that of a host, unless no host can have it, and
// the same text of another kind is somebody else.
func TestPrincipals(t *testing.T) {
	for name, want := range map[string]string{
		"shop.example.org": "dns:shop.example.org", "dns:shop": "dns:shop", "uri:x": "uri:x", "email:x": "email:x",
		"spiffe://example.org/op": "uri:spiffe://example.org/op", "urn:op": "uri:urn:op", "op@example.org": "email:op@example.org",
		"spiffe://example.org/op@b": "uri:spiffe://example.org/op@b", "": "", Any: Any,
	} {
		if got := Principal(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	if admins := []string{"ops", "uri:spiffe://op"}; !Lists(admins, "dns:ops") || !Lists(admins, "uri:spiffe://op") ||
		Lists(admins, "uri:ops") || Lists(admins, "") {
		t.Error("a list has others than it names")
	}
}

// TestWithoutRoles: limits alone forbid nothing.
func TestWithoutRoles(t *testing.T) {
	for _, none := range []*Table{nil, table(t, nil), table(t, nil, Limit{Principals: []string{Any}, InFlight: 1})} {
		if none.Set() || !Allows(none, "", All, "", "") {
			t.Errorf("%+v forbids something", none)
		}
	}
}

// TestLimit: the first that names a principal counts, and "*" comes last.
func TestLimit(t *testing.T) {
	limits := table(
		t, nil, Limit{Principals: []string{Any}, InFlight: 1}, Limit{Principals: []string{"a", "b"}, InFlight: 2},
		Limit{Principals: []string{"b"}, IDsPerSecond: 3},
	)
	for principal, want := range map[string]int64{"a": 2, "b": 2, "c": 1, "": 1, "dns:a": 2, "uri:a": 1} {
		if got, ok := limits.Limit(principal); !ok || got.InFlight != want {
			t.Errorf("%q: %+v, want %d calls", principal, got, want)
		}
	}
	if _, ok := table(t, shopRoles()).Limit("a"); ok {
		t.Error("a table without limits has one")
	}
}

// TestRefusedTables: a table that means nothing is refused.
func TestRefusedTables(t *testing.T) {
	grant := []Grant{{Database: Any, Rights: Read}}
	tests := map[string]struct {
		roles  []Role
		limits []Limit
	}{
		"twice": {roles: []Role{
			{Name: "a", Principals: []string{"x"}, Grants: grant},
			{Name: "a", Principals: []string{"y"}, Grants: grant},
		}},
		"no name":             {roles: []Role{{Principals: []string{"x"}, Grants: grant}}},
		"no principal":        {roles: []Role{{Name: "a", Grants: grant}}},
		"empty principal":     {roles: []Role{{Name: "a", Principals: []string{""}, Grants: grant}}},
		"no grant":            {roles: []Role{{Name: "a", Principals: []string{"x"}}}},
		"no right":            {roles: []Role{{Name: "a", Principals: []string{"x"}, Grants: []Grant{{Database: Any}}}}},
		"unknown right":       {roles: []Role{{Name: "a", Principals: []string{"x"}, Grants: []Grant{{Database: Any, Rights: All + 1}}}}},
		"no database":         {roles: []Role{{Name: "a", Principals: []string{"x"}, Grants: []Grant{{Rights: Read}}}}},
		"database not folded": {roles: []Role{{Name: "a", Principals: []string{"x"}, Grants: []Grant{{Database: "Shop", Rights: Read}}}}},
		"bad database":        {roles: []Role{{Name: "a", Principals: []string{"x"}, Grants: []Grant{{Database: "a b", Rights: Read}}}}},
		"name and prefix": {roles: []Role{{
			Name: "a", Principals: []string{"x"},
			Grants: []Grant{{Database: Any, Prefix: "a", Name: "a", Rights: Read}},
		}}},
		"bad name": {roles: []Role{{
			Name: "a", Principals: []string{"x"},
			Grants: []Grant{{Database: Any, Name: "\xff", Rights: Read}},
		}}},
		"bad prefix": {roles: []Role{{
			Name: "a", Principals: []string{"x"},
			Grants: []Grant{{Database: Any, Prefix: "\xff", Rights: Read}},
		}}},
		"no limit":            {limits: []Limit{{Principals: []string{"x"}}}},
		"negative limit":      {limits: []Limit{{Principals: []string{"x"}, InFlight: -1}}},
		"negative beside one": {limits: []Limit{{Principals: []string{"x"}, InFlight: 1, NewNamesPerHour: -1}}},
		"limit of nobody":     {limits: []Limit{{InFlight: 1}}},
		"long principal":      {roles: []Role{{Name: "a", Principals: []string{strings.Repeat("x", maxNameBytes+1)}, Grants: grant}}},
	}
	for name, tt := range tests {
		if _, err := New(tt.roles, tt.limits); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestEncoding: an encoded table is decoded, and the table of a newer program is refused.
func TestEncoding(t *testing.T) {
	want := table(t, shopRoles(), Limit{Principals: []string{"a"}, InFlight: 2, IDsPerSecond: 3, NewNamesPerHour: 4})
	data, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Table{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, newer := range [][]byte{
		protowire.AppendTag(data, 15, protowire.VarintType),
		append(protowire.AppendTag(data[:len(data):len(data)], 15, protowire.VarintType), 1),
	} {
		if _, err := Decode(newer); err == nil {
			t.Errorf("%x is decoded", newer[len(data):])
		}
	}
}

// TestNames: every right has a name of its own.
func TestNames(t *testing.T) {
	var sum Right
	seen := map[string]bool{}
	for _, r := range All.List() {
		if name := r.String(); name == "" || seen[name] {
			t.Errorf("%#x is %q", uint32(r), name)
		}
		seen[r.String()] = true
		sum |= r
	}
	if sum != All {
		t.Errorf("the names stand for %#x, want %#x", uint32(sum), uint32(All))
	}
	if diff := cmp.Diff([]Right{Seed, Cluster}, (Seed | Cluster).List()); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecode(f *testing.F) {
	table, err := New(shopRoles(), nil)
	if err != nil {
		f.Fatal(err)
	}
	data, err := Encode(table)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Encode(table)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(again); err != nil {
			t.Fatalf("what was decoded does not come back: %v", err)
		}
	})
}

func BenchmarkAllows(b *testing.B) {
	roles := table(b, shopRoles())
	database, name := []byte("shop"), []byte("orders")
	b.ReportAllocs()
	for b.Loop() {
		if !Allows(roles, "shop.example.org", Generate, database, name) {
			b.Fatal("forbidden")
		}
	}
}

// fuzzedGrant makes a grant for names that begin with text, for names that continue at a boundary
// only, or for one name.
func fuzzedGrant(kind uint8, database, text string, r uint32) Grant {
	switch g := (Grant{Database: database, Rights: Right(r)}); kind % 3 {
	case 0:
		g.Prefix = text
		return g
	case 1:
		g.Prefix, g.Boundary = text, true
		return g
	default:
		g.Name = text
		return g
	}
}

// isFor reports whether a grant is for a name.
func (g Grant) isFor(name string) bool {
	switch {
	case g.Name != "":
		return name == g.Name || name == g.Name+"|"
	case g.Boundary:
		return name == g.Prefix || strings.HasPrefix(name, g.Prefix+"/") || strings.HasPrefix(name, g.Prefix+"|")
	default:
		return strings.HasPrefix(name, g.Prefix)
	}
}

// FuzzAllows: a table answers as its roles say one by one.
func FuzzAllows(f *testing.F) {
	for kind := range uint8(3) {
		for _, name := range []string{"orders", "orders|", "orders/de", "orders/de/1", "orders2", "order"} {
			f.Add("shop.example.org", "*", "shop", "orders", "orders/de", kind, (kind+1)%3, uint32(3), uint32(4), "ops", "shop", name, uint32(4))
			f.Add("ops", "*", "shop", "orders", "orders/de", kind, (kind+1)%3, uint32(3), uint32(4), "dns:ops", "shop", name, uint32(3))
		}
	}
	f.Fuzz(func(t *testing.T, p1, p2, database, text1, text2 string, kind1, kind2 uint8, r1, r2 uint32, who, in, name string, need uint32) {
		roles := []Role{
			{Name: "one", Principals: []string{p1, p2}, Grants: []Grant{fuzzedGrant(kind1, database, text1, r1)}},
			{Name: "two", Principals: []string{p2}, Grants: []Grant{fuzzedGrant(kind2, Any, text2, r2)}},
		}
		table, err := New(roles, nil)
		if err != nil {
			return
		}
		var have Right
		for _, role := range roles {
			for _, p := range role.Principals {
				for _, g := range role.Grants {
					if (p == Any || Principal(p) == Principal(who)) && (g.Database == Any || g.Database == in) && g.isFor(name) {
						have |= g.Rights
					}
				}
			}
		}
		if got := Allows(table, who, Right(need), in, name); got != (have&Right(need) == Right(need)) {
			t.Errorf("%+v: %q may %v on %q of %q: %v", roles, who, Right(need), name, in, got)
		}
		data, err := Encode(table)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Decode(data); err != nil || !cmp.Equal(again.Roles, roles) {
			t.Errorf("%+v came back as %+v: %v", roles, again, err)
		}
	})
}
