package fsm

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/idnode/idnode/access/rights"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// rolesFormat is the log format that knows of roles and principals.
const rolesFormat = 2

// roles are the roles and rights of principals. The value is never changed, only
// replaced.
type roles struct {
	// table decides; encoded is its encoding in the log.
	table   *rights.Table
	encoded []byte
	// setAt is the log index at which the roles were set.
	setAt uint64
	// hash is that of the record: Hash is called after each entry, and a table may be large.
	hash uint64
}

func newRoles(table *rights.Table, encoded []byte, setAt uint64) *roles {
	r := &roles{table: table, encoded: encoded, setAt: setAt}
	r.hash = hashRoles(r)
	return r
}

// Roles are the roles and limits in force.
type Roles struct {
	// Table is nil if there are none.
	Table *rights.Table
	// SetAt is the log index at which they were set, 0 if there are none.
	SetAt uint64
}

// Roles returns the roles and limits in force. It is quick and never waits for
// Apply: every call asks it.
func (s *State) Roles() Roles {
	if r := s.roles.Load(); r != nil {
		return Roles{Table: r.table, SetAt: r.setAt}
	}
	return Roles{}
}

// publishRoles publishes the roles for readers without the lock. The caller holds it.
func (s *State) publishRoles() {
	if now := s.contents.roles; now != s.roles.Load() {
		s.roles.Store(now)
	}
}

// rolesSet replaces all roles and limits. The caller must still be able to change them
// afterwards: a mistake would otherwise lock all callers out permanently.
func (c *contents) rolesSet(dst []byte, now moment, o *operation) ([]byte, *refusal) {
	var set raftlogv1.RolesSet
	if err := decodePayload(o, &set); err != nil {
		return dst, err
	}
	if c.format < rolesFormat {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED, "", "the cluster writes log format %d, roles need %d", c.format, rolesFormat)
	}
	before := c.roles.index()
	if set.Expected != nil && set.GetExpected() != before {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "expected", "is %d, and the roles were set at %d", set.GetExpected(), before)
	}
	table, err := rights.Decode(set.GetTable())
	if err == nil && !c.strict() && table.Exact() {
		err = errors.New("roles with unknown fields") // So say nodes that do not know these.
	}
	if err != nil {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_ROLES_INVALID, "table", "%v", err)
	}
	if !allows(table, o, rights.Cluster, nil, nil, c.strict()) {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_ROLES_INVALID, "table",
			"it would shut its author out: no role gives %q the right cluster on every database", o.principal)
	}
	if table.Empty() {
		c.roles = nil
	} else {
		c.roles = newRoles(table, bytes.Clone(set.GetTable()), now.index)
	}
	dst = protowire.AppendTag(dst, resultRolesBefore, protowire.VarintType)
	return protowire.AppendVarint(dst, before), nil
}

// index is the log index at which the roles were set, 0 if there are none.
func (r *roles) index() uint64 {
	if r == nil {
		return 0
	}
	return r.setAt
}

// set reports whether there are roles, and not limits alone: only then is a right needed.
func (r *roles) set() bool { return r != nil && r.table.Set() }

// restoredRoles returns the roles of a snapshot; before are those it had already.
func restoredRoles(before *roles, m *raftlogv1.RolesRecord, format uint32) (*roles, error) {
	table, err := rights.Decode(m.GetTable())
	if err != nil || table.Empty() || before != nil || m.GetLogIndex() == 0 || format < rolesFormat {
		return before, corrupt("roles twice, empty, malformed, or in log format %d: %v", format, err)
	}
	return newRoles(table, m.GetTable(), m.GetLogIndex()), nil
}

// check refuses operations that no role allows. Here a change of the roles is
// ordered with all other operations: later ones in the log are checked against it,
// whatever the caller's node knew.
//
// An operation without a principal comes from a node that did not know of the roles yet.
// It is refused too; the node retries with the principal.
func (r *roles) check(o *operation, strict bool) *refusal {
	if !r.set() {
		return nil
	}
	need, name := needOf(o)
	if need == 0 {
		return nil
	}
	database := o.database
	if need == rights.Cluster && strict {
		database = nil // A merge too concerns the whole cluster.
	}
	if o.named && allows(r.table, o, need, database, name, strict) {
		return nil
	}
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED, "", "no role gives %.200q the right %s here", o.principal, need)
}

// allows reports whether a table gives an operation's principal a right. Below
// StrictFormat some nodes know no kinds of principals, and compare the texts.
func allows(table *rights.Table, o *operation, need rights.Right, database, name []byte, strict bool) bool {
	if !strict {
		return rights.AllowsAsWritten(table, string(o.principal), need, database, name)
	}
	return rights.Allows(table, string(o.principal), need, database, name)
}

// needOf returns the rights an operation needs, and the name it is about; none
// for what nodes propose by themselves.
func needOf(o *operation) (rights.Right, []byte) {
	switch o.kind {
	case opIdentityNext:
		return rights.Generate, nameIn(o.payload)
	case opIdentitySeed:
		return forced(rights.Seed, o.payload, 3), nameIn(o.payload)
	case opIdentityDelete:
		return forced(rights.Delete, o.payload, 2), nameIn(o.payload)
	case opHiLoNext, opHiLoReturn:
		return rights.Ranges, nameIn(o.payload)
	case opHiLoSet:
		return rights.Seed, nameIn(o.payload)
	case opClaim, opRelease:
		return rights.Claims, nameIn(o.payload)
	case opSettingSet, opRolesSet, opMerge, opMergeCluster, opMemberRemove, opMemberInvite:
		return rights.Cluster, nil
	default:
		return 0, nil
	}
}

// forced adds the right to force if the payload's flag with this number is set.
func forced(need rights.Right, payload []byte, flag protowire.Number) rights.Right {
	_ = eachField(payload, func(num protowire.Number, f field) bool {
		if num == flag && f.number != 0 {
			need |= rights.Force
		}
		return true
	})
	return need
}

// nameIn returns the name an operation is about: in all of them the first field.
// What is malformed is refused by the operation itself.
func nameIn(payload []byte) (name []byte) {
	_ = eachField(payload, func(num protowire.Number, f field) bool {
		if num == 1 {
			name = f.bytes
		}
		return true
	})
	return name
}
