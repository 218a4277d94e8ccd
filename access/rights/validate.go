package rights

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/idnode/idnode/client/docid"
)

// Bounds of a table: far above tables that people write, and small beside an entry of the log.
const (
	maxRoles      = 1_000
	maxPrincipals = 10_000
	maxGrants     = 10_000
	maxNameBytes  = 1_000
	// MaxEncodedBytes bounds the encoding of a table: an operation of the log has room
	// for it, with the name of its caller.
	MaxEncodedBytes = 60_000
)

func (t *Table) validate() error {
	principals, grants := 0, 0
	names := map[string]bool{}
	for _, role := range t.Roles {
		if names[role.Name] {
			return fmt.Errorf("the role %s is listed twice", shown(role.Name))
		}
		names[role.Name] = true
		if err := role.validate(); err != nil {
			return err
		}
		principals, grants = principals+len(role.Principals), grants+len(role.Grants)
	}
	for i, limit := range t.Limits {
		if err := limit.validate(); err != nil {
			return fmt.Errorf("limit %d: %w", i+1, err)
		}
		principals += len(limit.Principals)
	}
	if len(t.Roles) > maxRoles || len(t.Limits) > maxRoles || principals > maxPrincipals || grants > maxGrants {
		return fmt.Errorf("there are more than %d roles or limits, %d principals, or %d grants", maxRoles, maxPrincipals, maxGrants)
	}
	return nil
}

func (r Role) validate() error {
	if err := checkName(r.Name); err != nil {
		return fmt.Errorf("the role %s: its name %w", shown(r.Name), err)
	}
	if err := checkPrincipals(r.Principals); err != nil {
		return fmt.Errorf("the role %s: %w", shown(r.Name), err)
	}
	if len(r.Grants) == 0 {
		return fmt.Errorf("the role %s grants nothing", shown(r.Name))
	}
	for i, g := range r.Grants {
		if err := g.validate(); err != nil {
			return fmt.Errorf("the role %s: grant %d: %w", shown(r.Name), i+1, err)
		}
	}
	return nil
}

func (g Grant) validate() error {
	if g.Rights == 0 || g.Rights&^All != 0 {
		return fmt.Errorf("it has no rights, or some that do not exist (%#x)", uint32(g.Rights))
	}
	if len(g.Prefix) > docid.MaxIDBytes || !utf8.ValidString(g.Prefix) {
		return fmt.Errorf("its prefix is longer than %d bytes, or not UTF-8", docid.MaxIDBytes)
	}
	if g.Name != "" && (g.Prefix != "" || g.Boundary || len(g.Name) > docid.MaxIDBytes || !utf8.ValidString(g.Name)) {
		return fmt.Errorf("its name is set beside a prefix, is longer than %d bytes, or is not UTF-8", docid.MaxIDBytes)
	}
	if g.Database == Any {
		return nil
	}
	database, err := docid.ParseDatabase(g.Database)
	if err != nil || docid.Fold(database) != g.Database {
		return fmt.Errorf("its database %s is invalid: a name, or %s for all", shown(g.Database), Any)
	}
	return nil
}

func (l Limit) validate() error {
	if least := min(l.InFlight, l.IDsPerSecond, l.NewNamesPerHour); least < 0 || max(l.InFlight, l.IDsPerSecond, l.NewNamesPerHour) == 0 {
		return errors.New("each limit needs a value, not negative")
	}
	return checkPrincipals(l.Principals)
}

func checkPrincipals(principals []string) error {
	if len(principals) == 0 {
		return fmt.Errorf("it has no principals")
	}
	for _, p := range principals {
		if err := checkName(p); err != nil {
			return fmt.Errorf("the principal %s %w", shown(p), err)
		}
	}
	return nil
}

func checkName(name string) error {
	if name == "" || len(name) > maxNameBytes || !utf8.ValidString(name) {
		return fmt.Errorf("is empty, longer than %d bytes, or not UTF-8", maxNameBytes)
	}
	return nil
}
