package service

import (
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
)

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
			grant := &idnodev1.RoleGrant{Database: g.Database, Prefix: g.Prefix, Boundary: g.Boundary, Name: g.Name}
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

// apiRight returns the API's value for a single right.
func apiRight(r rights.Right) idnodev1.Right {
	n := idnodev1.Right(0)
	for ; r != 0; r >>= 1 {
		n++
	}
	return n
}
