// Package rights says who may do what: roles, the rights they give, and the
// limits of callers.
//
// It is pure. The door of a node and the replicated state ask the same table, so
// that both decide alike; the table's encoding is part of the log. Databases and
// names are folded; principals have a kind, and are compared as they are.
package rights

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Right is one right, or a set of several.
type Right uint32

// The rights. Their values are in the log: they are never renumbered.
const (
	// Generate takes identity values and server-side ids, and makes GUIDs and
	// semantic ids.
	Generate Right = 1 << iota
	// Ranges reserves HiLo ranges and gives them back.
	Ranges
	// Seed raises an identity or a HiLo counter.
	Seed
	// Force goes with Seed, to set any value, and with Delete, to forget.
	Force
	// Delete deletes identities.
	Delete
	// Claims claims ids and releases them.
	Claims
	// Read reads counters and lists.
	Read
	// Backup copies the whole state out.
	Backup
	// Cluster changes the cluster: members, settings, roles, and the state as a
	// whole.
	Cluster

	all = Cluster<<1 - 1
)

// Guarded are the rights that the list of administrators guards as long as there
// are no roles.
const Guarded = Force | Delete | Cluster

var rightNames = []string{"generate", "ranges", "seed", "force", "delete", "claims", "read", "backup", "cluster"}

// Names returns the words for all rights.
func Names() []string { return slices.Clone(rightNames) }

// Parse returns the right with this name.
func Parse(name string) (Right, bool) {
	i := slices.Index(rightNames, name)
	if i < 0 {
		return 0, false
	}
	return 1 << i, true
}

// List returns the single rights of a set.
func (r Right) List() []Right {
	list := make([]Right, 0, bits.OnesCount32(uint32(r)))
	for i := range rightNames {
		if one := Right(1) << i; r&one != 0 {
			list = append(list, one)
		}
	}
	return list
}

// String returns the names of the rights in the set, with commas between them.
func (r Right) String() string {
	var names []string
	for i, name := range rightNames {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// Any stands for every principal, the one without a name too, and for every
// database.
const Any = "*"

// Grant gives rights on what is in a database and begins with a prefix.
type Grant struct {
	// Database is folded, or Any.
	Database string
	// Prefix is folded: names, HiLo tags, ids and templates begin with it.
	Prefix string
	Rights Right
}

// Role gives its grants to its principals.
type Role struct {
	Name string
	// Principals are names of certificates, with or without their kind, or Any.
	Principals []string
	Grants     []Grant
}

// Limit bounds each of its principals by itself, on each node by itself.
type Limit struct {
	// Principals are names of certificates, with or without their kind, or Any.
	Principals []string
	// InFlight is how many calls may be under way; 0 for no limit.
	InFlight int64
	// IDsPerSecond is how many ids and numbers of ranges may be given; 0 for no
	// limit.
	IDsPerSecond int64
}

// Table is all roles and limits. It is not changed after New; a nil Table has no
// roles and no limits.
type Table struct {
	Roles  []Role
	Limits []Limit

	// grants and limits are by principal with its kind; written has the grants by
	// principal as the table has it.
	grants  map[string][]Grant
	written map[string][]Grant
	limits  map[string]Limit
}

// New returns a table that answers quickly. The error says what is wrong with a
// role or a limit.
func New(roles []Role, limits []Limit) (*Table, error) {
	t := &Table{Roles: roles, Limits: limits, grants: map[string][]Grant{}, written: map[string][]Grant{}, limits: map[string]Limit{}}
	if err := t.validate(); err != nil {
		return nil, err
	}
	for _, role := range roles {
		for _, p := range role.Principals {
			t.grants[Principal(p)] = append(t.grants[Principal(p)], role.Grants...)
			t.written[p] = append(t.written[p], role.Grants...)
		}
	}
	for _, limit := range limits {
		for _, p := range limit.Principals {
			p = Principal(p)
			if _, twice := t.limits[p]; !twice {
				t.limits[p] = limit
			}
		}
	}
	return t, nil
}

// Set says whether there are roles: everything that none of them allows is then
// forbidden.
func (t *Table) Set() bool { return t != nil && len(t.Roles) > 0 }

// Empty says that there is neither a role nor a limit.
func (t *Table) Empty() bool { return t == nil || len(t.Roles) == 0 && len(t.Limits) == 0 }

// Limit returns the bounds of a principal: the first limit that names it, else
// the first for every principal.
func (t *Table) Limit(principal string) (Limit, bool) {
	if t == nil || len(t.limits) == 0 {
		return Limit{}, false
	}
	limit, ok := t.limits[Principal(principal)]
	if !ok {
		limit, ok = t.limits[Any]
	}
	return limit, ok
}

// Allows says whether the roles give a principal all rights in need on a name of
// a database, both folded. What concerns the whole cluster has neither, so that
// only a grant for every database and every name allows it. Without roles
// everything is allowed.
func Allows[T ~string | ~[]byte](t *Table, principal string, need Right, database, name T) bool {
	if !t.Set() {
		return true
	}
	have := held(t.grants[Principal(principal)], database, name) | held(t.grants[Any], database, name)
	return have&need == need
}

// AllowsAsWritten is Allows as nodes judged that knew no kinds of principals: the
// table must have the principal as it is.
func AllowsAsWritten[T ~string | ~[]byte](t *Table, principal string, need Right, database, name T) bool {
	if !t.Set() {
		return true
	}
	have := held(t.written[principal], database, name) | held(t.written[Any], database, name)
	return have&need == need
}

// held returns the rights that grants give on a name of a database.
func held[T ~string | ~[]byte](grants []Grant, database, name T) Right {
	var have Right
	for i := range grants {
		g := &grants[i]
		if (g.Database == Any || g.Database == string(database)) && begins(name, g.Prefix) {
			have |= g.Rights
		}
	}
	return have
}

func begins[T ~string | ~[]byte](name T, prefix string) bool {
	return len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix
}

// shown shortens a text for an error.
func shown(text string) string { return fmt.Sprintf("%.80q", text) }

// MarshalText implements encoding.TextMarshaler, for records that people read.
func (r Right) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
