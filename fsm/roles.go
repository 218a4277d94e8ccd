package fsm

import (
	"bytes"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// roleStore has the roles and rights of principals. The value is never changed, only
// replaced.
type roleStore struct {
	// table decides; encoded is its encoding in the log.
	table   *rights.Table
	encoded []byte
	// setAt is the log index at which the roles were set.
	setAt uint64
	// hash is that of the record: Hash is called after each entry, and a table may be large.
	hash uint64
}

func newRoles(table *rights.Table, encoded []byte, setAt uint64) *roleStore {
	r := &roleStore{table: table, encoded: encoded, setAt: setAt}
	r.hash = hashRoles(r)
	return r
}

// Roles are the roles and limits in force.
type Roles struct {
	// Table is nil without roles.
	Table *rights.Table
	// SetAt is the log index at which the roles were set; 0 without roles.
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
func (c *contents) rolesSet(dst []byte, now moment, o op.Operation, set *raftlogv1.RolesSet) ([]byte, *refusal) {
	before := c.roles.index()
	if set.Expected != nil && set.GetExpected() != before {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "expected", "is %d, and the roles were set at %d",
			set.GetExpected(), before)
	}
	table, err := rights.Decode(set.GetTable())
	if err != nil {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_ROLES_INVALID, "table", "%v", err)
	}
	if !allows(table, &o, rights.Cluster, nil, nil) {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_ROLES_INVALID, "table",
			"it would shut its author out: no role gives %.200q the right cluster on every database", o.Principal)
	}
	if table.Empty() {
		c.roles = nil
	} else {
		c.roles = newRoles(table, bytes.Clone(set.GetTable()), now.index)
	}
	return op.AppendRolesBefore(dst, before), nil
}

// index is the log index at which the roles were set; 0 without roles.
func (r *roleStore) index() uint64 {
	if r == nil {
		return 0
	}
	return r.setAt
}

// set reports whether there are roles, and not limits alone: only then is a right needed.
func (r *roleStore) set() bool { return r != nil && r.table.Set() }

func (r *roleStore) records() records {
	if r == nil {
		return these()
	}
	roles := &raftlogv1.RolesRecord{Table: r.encoded, LogIndex: r.setAt}
	return these(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Roles{Roles: roles}})
}

// restoredRoles returns the roles of a snapshot; before are those it had already.
func restoredRoles(before *roleStore, m *raftlogv1.RolesRecord) (*roleStore, error) {
	table, err := rights.Decode(m.GetTable())
	if err != nil || table.Empty() || before != nil || m.GetLogIndex() == 0 {
		return before, corrupt("roles twice, empty or malformed: %v", err)
	}
	return newRoles(table, m.GetTable(), m.GetLogIndex()), nil
}

// check refuses operations that no role allows. A change of the roles is ordered with all other
// operations: operations after it in the log are checked against it, whatever roles the caller's
// node had.
//
// An operation without a principal comes from a node whose state had no roles yet. It is refused
// too; the node retries with the principal.
func (r *roleStore) check(o *op.Operation) *refusal {
	if !r.set() {
		return nil
	}
	need, name := needOf(o)
	if need == 0 {
		return nil
	}
	database := o.Database
	if need == rights.Cluster {
		database = nil // A merge too concerns the whole cluster.
	}
	if o.HasPrincipal && allows(r.table, o, need, database, name) {
		return nil
	}
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED, "", "no role gives %.200q the right %s here", o.Principal, need)
}

// allows reports whether a table gives an operation's principal a right.
func allows(table *rights.Table, o *op.Operation, need rights.Right, database, name []byte) bool {
	return rights.Allows(table, string(o.Principal), need, database, name)
}

// needOf returns the rights an operation needs, and the name that they are needed for; no rights
// for operations that nodes propose by themselves. With rights.Cluster alone there is no name.
func needOf(o *op.Operation) (rights.Right, []byte) {
	need := operations[o.Kind].need
	switch {
	case o.Kind == op.KindPoolDefine && o.Forced():
		need = rights.Cluster
	case o.Forced():
		need |= rights.Force
	case o.Confirms():
		need = rights.Number
	case o.Enters():
		need = rights.Series
	}
	if need == 0 || need == rights.Cluster {
		return need, nil
	}
	return need, o.Name()
}
