package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Roles is the table of roles and limits.
type Roles struct {
	Roles  []rights.Role
	Limits []rights.Limit
}

// GetRolesResponse shows the roles.
type GetRolesResponse struct {
	Roles
	// SetAt is the log index at which they were set, 0 if there are none.
	SetAt    uint64
	LogIndex uint64
}

// roles are the use cases of roles and limits.
type roles struct {
	*calls
	*proposer
	*reader
}

// GetRoles shows the roles and limits.
func (r *roles) GetRoles(ctx context.Context, consistency Consistency) (GetRolesResponse, error) {
	return call(ctx, r.calls, "GetRoles", consistency, r.getRoles)
}

func (r *roles) getRoles(ctx context.Context, consistency Consistency) (GetRolesResponse, error) {
	index, err := r.settle(ctx, consistency)
	if err != nil {
		return GetRolesResponse{}, err
	}
	// Settled first, so that roles that were set meanwhile guard themselves.
	if err := r.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return GetRolesResponse{}, err
	}
	res := GetRolesResponse{LogIndex: index}
	if now := r.state.Roles(); now.Table != nil {
		res.Roles, res.SetAt = Roles{Roles: now.Table.Roles, Limits: now.Table.Limits}, now.SetAt
	}
	return res, nil
}

// SetRolesRequest replaces all roles and limits.
type SetRolesRequest struct {
	// Roles may be empty: then only administrators are told from others.
	Roles
	// Expected, if set, is the log index at which the present ones must have been
	// set, 0 for none.
	Expected *uint64
}

// SetRoles replaces all roles and limits and returns the index of the log entry.
func (r *roles) SetRoles(ctx context.Context, req SetRolesRequest) (uint64, error) {
	return call(ctx, r.calls, "SetRoles", req, r.setRoles)
}

func (r *roles) setRoles(ctx context.Context, req SetRolesRequest) (uint64, error) {
	if err := r.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return 0, err
	}
	table, err := encodeRoles(req.Roles)
	if err != nil {
		return 0, err
	}
	if len(req.Roles.Roles) == 0 {
		if err := r.keepsAdministrator(ctx); err != nil {
			return 0, err
		}
	}
	var index uint64
	err = r.audited(ctx, audit.Record{Event: audit.EventRoles, After: req.Roles}, func() (done change, err error) {
		before := r.state.Roles()
		var replaced uint64
		index, replaced, err = r.proposeRoles(ctx, table, req.Expected)
		if before.SetAt == replaced && before.Table != nil {
			// Others may have set roles meanwhile, which their own record shows.
			done.before = Roles{Roles: before.Table.Roles, Limits: before.Table.Limits}
		}
		done.index, done.after = index, req.Roles
		return done, err
	})
	return index, err
}

// keepsAdministrator refuses a caller that takes all roles away and is no administrator:
// a caller that changes the roles must be able to change them again. Each node has its
// own administrators, so the state cannot judge that.
func (r *roles) keepsAdministrator(ctx context.Context) error {
	if err := r.authorizeGuarded(ctx, rights.Cluster); err == nil {
		return nil
	} else if len(r.admins) > 0 {
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

// encodeRoles folds what is compared and returns the table for the log.
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

func invalidRoles(err error) error { return invalid(ReasonInvalidRoles, "table", "%v", err) }
