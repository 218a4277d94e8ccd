package rights

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/exactproto"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Encode returns a table as it is in the log.
func Encode(t *Table) ([]byte, error) {
	m := &raftlogv1.RoleTable{}
	for _, role := range t.Roles {
		r := &raftlogv1.Role{Name: role.Name, Principals: role.Principals}
		for _, g := range role.Grants {
			r.Grants = append(r.Grants,
				&raftlogv1.Grant{Database: g.Database, Prefix: g.Prefix, Boundary: g.Boundary, Name: g.Name, Rights: uint32(g.Rights)})
		}
		m.Roles = append(m.Roles, r)
	}
	for _, l := range t.Limits {
		m.Limits = append(m.Limits,
			&raftlogv1.CallerLimit{Principals: l.Principals, InFlight: l.InFlight, IdsPerSecond: l.IDsPerSecond, NewNamesPerHour: l.NewNamesPerHour})
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode roles: %w", err)
	}
	if len(data) > MaxEncodedBytes {
		return nil, fmt.Errorf("the roles have %d bytes, more than %d", len(data), MaxEncodedBytes)
	}
	return data, nil
}

// Decode returns the table in data. It refuses data that Encode did not write: every node refuses
// alike.
func Decode(data []byte) (*Table, error) {
	if len(data) > MaxEncodedBytes {
		return nil, fmt.Errorf("the roles have %d bytes, more than %d", len(data), MaxEncodedBytes)
	}
	var m raftlogv1.RoleTable
	switch err := exactproto.Unmarshal(data, &m); {
	case errors.Is(err, exactproto.ErrUnknownField):
		return nil, fmt.Errorf("roles with unknown fields")
	case err != nil:
		return nil, fmt.Errorf("malformed roles")
	}
	var roles []Role
	for _, r := range m.GetRoles() {
		role := Role{Name: r.GetName(), Principals: r.GetPrincipals()}
		for _, g := range r.GetGrants() {
			role.Grants = append(role.Grants,
				Grant{Database: g.GetDatabase(), Prefix: g.GetPrefix(), Boundary: g.GetBoundary(), Name: g.GetName(), Rights: Right(g.GetRights())})
		}
		roles = append(roles, role)
	}
	var limits []Limit
	for _, l := range m.GetLimits() {
		limits = append(limits, Limit{
			Principals: l.GetPrincipals(), InFlight: l.GetInFlight(), IDsPerSecond: l.GetIdsPerSecond(),
			NewNamesPerHour: l.GetNewNamesPerHour(),
		})
	}
	return New(roles, limits)
}
