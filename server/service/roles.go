package service

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// Roles is the table of roles and limits.
type Roles struct {
	Roles  []rights.Role
	Limits []rights.Limit
}

type roles struct {
	*base
	// admins means that the node has administrators.
	admins bool
}

// GetRoles shows the roles and limits.
func (r *roles) GetRoles(ctx context.Context, req *idnodev1.GetRolesRequest) (*idnodev1.GetRolesResponse, error) {
	return admission.Call(ctx, r.Control, "GetRoles", req, r.getRoles)
}

func (r *roles) getRoles(ctx context.Context, req *idnodev1.GetRolesRequest) (*idnodev1.GetRolesResponse, error) {
	index, err := r.settle(ctx, req.GetConsistency())
	if err != nil {
		return nil, err
	}
	// Settled first, so that roles that were set meanwhile guard themselves.
	if err := r.Authorize(ctx, rights.Cluster, "", ""); err != nil {
		return nil, err
	}
	res := &idnodev1.GetRolesResponse{Table: &idnodev1.RoleTable{}, LogIndex: index}
	if now := r.state.Roles(); now.Table != nil {
		res.Table, res.SetAtIndex = Roles{Roles: now.Table.Roles, Limits: now.Table.Limits}.Message(), now.SetAt
	}
	return res, nil
}

// SetRoles replaces all roles and limits.
func (r *roles) SetRoles(ctx context.Context, req *idnodev1.SetRolesRequest) (*idnodev1.SetRolesResponse, error) {
	return admission.Call(ctx, r.Control, "SetRoles", req, r.setRoles)
}

func (r *roles) setRoles(ctx context.Context, req *idnodev1.SetRolesRequest) (*idnodev1.SetRolesResponse, error) {
	if err := r.Authorize(ctx, rights.Cluster, "", ""); err != nil {
		return nil, err
	}
	if req.GetTable() == nil {
		return nil, invalidRoles(errors.New("the table of roles is missing"))
	}
	if err := saysBoundaries(req.GetTable()); err != nil {
		return nil, invalidRoles(err)
	}
	to := RolesOf(req.GetTable())
	table, err := encodeRoles(to)
	if err != nil {
		return nil, err
	}
	if len(to.Roles) == 0 {
		if err := r.keepsAdministrator(ctx); err != nil {
			return nil, err
		}
	}
	res := &idnodev1.SetRolesResponse{}
	err = r.Audited(ctx, audit.Record{Event: audit.EventRoles, After: to}, func() (done admission.Change, err error) {
		before := r.state.Roles()
		var replaced uint64
		res.LogIndex, replaced, err = r.proposeRoles(ctx, table, req.Expected)
		if before.SetAt == replaced && before.Table != nil {
			// Others may have set roles meanwhile, which their own record shows.
			done.Before = Roles{Roles: before.Table.Roles, Limits: before.Table.Limits}
		}
		done.Index, done.After = res.GetLogIndex(), to
		return done, err
	})
	return res, err
}

// keepsAdministrator refuses a caller that takes all roles away and is no administrator:
// a caller that changes the roles must be able to change them again. Each node has its
// own administrators, so the state cannot judge that.
func (r *roles) keepsAdministrator(ctx context.Context) error {
	if err := r.AuthorizeGuarded(ctx, rights.Cluster); err == nil {
		return nil
	} else if r.admins {
		return invalidRoles(fmt.Errorf("without roles its author is shut out: %w", err))
	}
	return invalidRoles(errors.New("without roles everybody is shut out, for no administrators are named: start the nodes with --admin first"))
}

// proposeRoles sets roles, and returns the index of the log entry and that of the
// roles before.
func (r *roles) proposeRoles(ctx context.Context, table []byte, expected *uint64) (index, before uint64, err error) {
	// Named also where there are no roles yet: the state refuses roles that shut
	// their author out.
	result, err := r.once(ctx, op.Envelope{Principal: r.author(ctx)}, &raftlogv1.RolesSet{Table: table, Expected: expected})
	if err != nil {
		return 0, 0, proposalError(err, expected != nil)
	}
	return result.GetLogIndex(), result.GetRolesBefore(), nil
}

// encodeRoles folds the names that are compared, and returns the table for the log.
func encodeRoles(r Roles) ([]byte, error) {
	folded := slices.Clone(r.Roles)
	for i := range folded {
		folded[i].Grants = slices.Clone(folded[i].Grants)
		for j := range folded[i].Grants {
			g := &folded[i].Grants[j]
			g.Prefix, g.Name = docid.Fold(g.Prefix), docid.Fold(g.Name)
			g.Boundary = g.Boundary && !rights.EndsAtBoundary(g.Prefix)
			if g.Database == rights.Any {
				continue
			}
			database, err := databaseKey(g.Database)
			if err != nil {
				return nil, invalidRoles(err)
			}
			g.Database = database
		}
	}
	table, err := rights.New(folded, r.Limits)
	if err == nil {
		err = table.Check()
	}
	if err != nil {
		return nil, invalidRoles(err)
	}
	data, err := rights.Encode(table)
	if err != nil {
		return nil, invalidRoles(err)
	}
	return data, nil
}

// saysBoundaries refuses a table with a prefix of which it is not said whether it stands for orders2 too.
func saysBoundaries(m *idnodev1.RoleTable) error {
	for _, r := range m.GetRoles() {
		for _, g := range r.GetGrants() {
			if g.Boundary == nil && !rights.EndsAtBoundary(g.GetPrefix()) {
				return fmt.Errorf("role %.80q: the prefix %.80q is of %[2]s2 too, unless boundary is true: say which", r.GetName(), g.GetPrefix())
			}
		}
	}
	return nil
}

func invalidRoles(err error) error {
	return apierror.Invalid(apierror.ReasonInvalidRoles, "table", "%v", err)
}

// RolesOf returns the roles of a message. The API numbers the rights in the order of package
// rights; an unknown right becomes noRight, which is refused.
func RolesOf(m *idnodev1.RoleTable) Roles {
	var roles Roles
	for _, r := range m.GetRoles() {
		role := rights.Role{Name: r.GetName(), Principals: r.GetPrincipals()}
		for _, g := range r.GetGrants() {
			role.Grants = append(role.Grants, rights.Grant{
				Database: g.GetDatabase(), Prefix: g.GetPrefix(), Boundary: g.GetBoundary(), Name: g.GetName(), Rights: rightsOf(g.GetRights()),
			})
		}
		roles.Roles = append(roles.Roles, role)
	}
	for _, l := range m.GetLimits() {
		roles.Limits = append(roles.Limits, rights.Limit{
			Principals: l.GetPrincipals(), InFlight: l.GetInFlight(), IDsPerSecond: l.GetIdsPerSecond(), NewNamesPerHour: l.GetNewNamesPerHour(),
		})
	}
	return roles
}

// noRight is a bit without a right, so that a table with it is refused.
const noRight rights.Right = 1 << 31

func rightsOf(list []idnodev1.Right) rights.Right {
	var set rights.Right
	for _, r := range list {
		if _, known := idnodev1.Right_name[int32(r)]; !known || r == idnodev1.Right_RIGHT_UNSPECIFIED {
			set |= noRight
			continue
		}
		set |= 1 << (r - 1)
	}
	return set
}

// Message returns the roles as the API has them.
func (roles Roles) Message() *idnodev1.RoleTable {
	m := &idnodev1.RoleTable{}
	for _, role := range roles.Roles {
		r := &idnodev1.AccessRole{Name: role.Name, Principals: role.Principals}
		for _, g := range role.Grants {
			grant := &idnodev1.RoleGrant{Database: g.Database, Prefix: g.Prefix, Name: g.Name}
			if !rights.EndsAtBoundary(g.Prefix) {
				grant.Boundary = &g.Boundary
			}
			for _, right := range g.Rights.List() {
				grant.Rights = append(grant.Rights, apiRight(right))
			}
			r.Grants = append(r.Grants, grant)
		}
		m.Roles = append(m.Roles, r)
	}
	for _, l := range roles.Limits {
		m.Limits = append(m.Limits, &idnodev1.CallerLimit{
			Principals: l.Principals, InFlight: l.InFlight, IdsPerSecond: l.IDsPerSecond, NewNamesPerHour: l.NewNamesPerHour,
		})
	}
	return m
}

func apiRight(r rights.Right) idnodev1.Right { return idnodev1.Right(bits.Len32(uint32(r))) }
