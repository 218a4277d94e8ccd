// Package rights judges callers: roles, the rights they give, and the limits of callers.
//
// It is pure. The door of a node and the replicated state ask the same table, so that both decide alike; its
// encoding is part of the log. Databases and names are folded; principals have a kind, and are compared as they
// are.
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
	Generate Right = 1 << iota // takes identity values and server-side ids, and makes GUIDs and semantic ids
	Ranges                     // reserves HiLo ranges and gives them back
	Seed                       // raises an identity or a HiLo counter
	Force                      // goes with Seed, to set any value, and with Delete, to forget
	Delete                     // deletes identities
	Claims                     // claims ids and releases them
	Read                       // reads counters and lists
	Backup                     // copies the whole state out
	Cluster                    // changes the cluster: members, settings, roles, and the state as a whole
	Series                     // defines, deletes, closes and resumes series, and voids, releases and reconciles their numbers
	Number                     // takes document numbers and confirms them

	All = Number<<1 - 1
)

// Guarded are the rights that the list of administrators guards as long as there
// are no roles. A seed that takes very many numbers needs Force then.
const Guarded = Force | Delete | Cluster | Series

var rightNames = []string{"generate", "ranges", "seed", "force", "delete", "claims", "read", "backup", "cluster", "series", "number"}

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

// Any means every principal, even without a name, and every database.
const Any = "*"

// Further, after a name, means all names that begin with it, in lists: no name has this byte.
const Further = "\xff"

// Grant gives rights to names of a database: to one name, or to all with a prefix.
type Grant struct {
	// Database is folded, or Any.
	Database string
	// Prefix is folded: names, HiLo tags, ids and templates begin with it.
	Prefix string
	// Boundary keeps out names that go on behind the prefix with another character than / or |.
	Boundary bool `json:",omitempty"`
	// Name, if not empty, is folded and the only name of the grant, which may be the template of an
	// identity; Prefix is empty then.
	Name   string `json:",omitempty"`
	Rights Right
}

// boundaries are the characters that separate the parts of a name.
const boundaries = "/|"

// EndsAtBoundary reports whether a prefix needs no Boundary, because it ends with a separator
// already.
func EndsAtBoundary(prefix string) bool {
	return prefix == "" || strings.ContainsRune(boundaries, rune(prefix[len(prefix)-1]))
}

// Check refuses grants that give less than they say: they were accepted once, and still count.
func (t *Table) Check() error {
	const whole = Cluster | Backup
	for _, role := range t.Roles {
		for i, g := range role.Grants {
			if g.Rights&whole != 0 && (g.Database != Any || g.Prefix != "" || g.Name != "") {
				return fmt.Errorf("the role %s: grant %d: %s counts only on the database %s, without prefix and name",
					shown(role.Name), i+1, g.Rights&whole, shown(Any))
			}
		}
	}
	return nil
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
	// InFlight bounds the calls in flight; 0 for no limit.
	InFlight int64
	// IDsPerSecond bounds the ids and numbers of ranges issued; 0 for no limit.
	IDsPerSecond int64
	// NewNamesPerHour bounds the identities, HiLo tags, claims and databases that calls
	// create, by the node's state; 0 for no limit.
	NewNamesPerHour int64 `json:",omitempty"`
}

// Table holds all roles and limits. It is immutable after New. A nil Table is empty.
type Table struct {
	Roles  []Role
	Limits []Limit

	// grants and limits are by principal with its kind.
	grants map[string][]Grant
	limits map[string]Limit
}

// New returns a table with indexes for fast checks. The error names the invalid role or limit.
func New(roles []Role, limits []Limit) (*Table, error) {
	t := &Table{Roles: roles, Limits: limits, grants: map[string][]Grant{}, limits: map[string]Limit{}}
	if err := t.validate(); err != nil {
		return nil, err
	}
	for _, role := range roles {
		for _, p := range role.Principals {
			t.grants[Principal(p)] = append(t.grants[Principal(p)], role.Grants...)
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

// Set reports whether there are roles. If so, everything that no role allows is forbidden.
func (t *Table) Set() bool { return t != nil && len(t.Roles) > 0 }

// Empty reports whether there is neither a role nor a limit.
func (t *Table) Empty() bool { return t == nil || len(t.Roles) == 0 && len(t.Limits) == 0 }

// Limit returns the first limit that names a principal, else the first for every principal.
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

// Allows reports whether the roles give a principal all rights in need on a name of a database, both
// folded. Both are empty for the whole cluster, which only a grant for every database and every name
// covers. Without roles everything is allowed.
func Allows[T ~string | ~[]byte](t *Table, principal string, need Right, database, name T) bool {
	return Held(t, principal, database, name)&need == need
}

// Held returns the rights that the roles give a principal on a name of a database, both folded.
func Held[T ~string | ~[]byte](t *Table, principal string, database, name T) Right {
	if !t.Set() {
		return All
	}
	return held(t.grants[Principal(principal)], database, name) | held(t.grants[Any], database, name)
}

// Within returns the grants that the roles give a principal in a database; never nil.
func Within(t *Table, principal, database string) []Grant {
	if !t.Set() {
		return []Grant{{Database: Any, Rights: All}}
	}
	given := append(append([]Grant{}, t.grants[Principal(principal)]...), t.grants[Any]...)
	return slices.DeleteFunc(given, func(g Grant) bool { return g.Database != Any && g.Database != database })
}

func held[T ~string | ~[]byte](grants []Grant, database, name T) Right {
	var have Right
	for i := range grants {
		g := &grants[i]
		if (g.Database == Any || g.Database == string(database)) && covers(g, name) {
			have |= g.Rights
		}
	}
	return have
}

func covers[T ~string | ~[]byte](g *Grant, name T) bool {
	if g.Name != "" {
		return begins(name, g.Name) && (len(name) == len(g.Name) || string(name[len(g.Name):]) == "|")
	}
	return begins(name, g.Prefix) && (!g.Boundary || len(name) == len(g.Prefix) || strings.IndexByte(boundaries, name[len(g.Prefix)]) >= 0)
}

func begins[T ~string | ~[]byte](name T, prefix string) bool {
	return len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix
}

func shown(text string) string { return fmt.Sprintf("%.80q", text) }

// MarshalText implements encoding.TextMarshaler, for records that people read.
func (r Right) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// The kinds of principals: the kinds of alternative names in a certificate. A CA checks each kind
// in its own way, so a name of one kind and the same text of another kind are different principals.
const (
	DNS   = "dns:"
	URI   = "uri:"
	Email = "email:"
)

// Principal returns a principal with its kind. A plain name has that of the only
// certificates that can hold it: a colon makes it a URI and an @ a mail address,
// since no name of a host has either. Any, and the empty name, have no kind.
func Principal(name string) string {
	switch {
	case name == "" || name == Any || hasKind(name):
		return name
	case strings.Contains(name, ":"):
		return URI + name
	case strings.Contains(name, "@"):
		return Email + name
	}
	return DNS + name
}

func hasKind(name string) bool {
	return strings.HasPrefix(name, DNS) || strings.HasPrefix(name, URI) || strings.HasPrefix(name, Email)
}

// Lists reports whether a list has a principal, with or without its kind.
func Lists(list []string, principal string) bool {
	principal = Principal(principal)
	return slices.ContainsFunc(list, func(name string) bool { return Principal(name) == principal })
}
