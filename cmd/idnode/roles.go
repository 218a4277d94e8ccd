package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/exactproto"
)

// rolesFile is a file of roles, as people write it.
type rolesFile struct {
	// Roles is nil if the file does not say which.
	Roles  *[]fileRole `yaml:"roles"`
	Limits []fileLimit `yaml:"limits,omitempty"`
}

type fileRole struct {
	Name       string      `yaml:"name"`
	Principals []string    `yaml:"principals,flow"`
	Grants     []fileGrant `yaml:"grants"`
}

type fileGrant struct {
	Database string `yaml:"database"`
	Prefix   string `yaml:"prefix,omitempty"`
	// Boundary must be set for a prefix that does not end at a boundary.
	Boundary *bool    `yaml:"boundary,omitempty"`
	Name     string   `yaml:"name,omitempty"`
	Rights   []string `yaml:"rights,flow"`
}

type fileLimit struct {
	Principals      []string `yaml:"principals,flow"`
	InFlight        int64    `yaml:"in-flight,omitempty"`
	IDsPerSecond    int64    `yaml:"ids-per-second,omitempty"`
	NewNamesPerHour int64    `yaml:"new-names-per-hour,omitempty"`
}

const maxRolesFile = 4 << 20

// readRoles reads a file of roles; "-" is the standard input.
func readRoles(ctx context.Context, stdin io.Reader, name string) (*idnodev1.RoleTable, error) {
	in, err := openInput(ctx, name, stdin)
	if err != nil {
		return nil, &usageError{err}
	}
	defer func() { _ = in.Close() }() // It was only read.
	data, err := io.ReadAll(io.LimitReader(in, maxRolesFile))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	table, err := parseRoles(data)
	if err != nil {
		return nil, usagef("%s: %w", name, err)
	}
	return table, nil
}

// parseRoles reads roles. An unknown key is an error: with a misspelt key a grant
// would be for every database.
func parseRoles(data []byte) (*idnodev1.RoleTable, error) {
	var file rolesFile
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New(plainly(err.Error()))
	}
	if err := decoder.Decode(&rolesFile{}); !errors.Is(err, io.EOF) {
		// With what comes first alone, everything might be allowed.
		return nil, errors.New("the file has more than one YAML document")
	}
	if file.Roles == nil {
		// The file may be the wrong one, or truncated.
		return nil, errors.New("the file has no roles; one that takes all of them away says roles: []")
	}
	table := &idnodev1.RoleTable{}
	for _, r := range *file.Roles {
		role := &idnodev1.AccessRole{Name: r.Name, Principals: r.Principals}
		for _, g := range r.Grants {
			grant, err := g.message()
			if err != nil {
				return nil, fmt.Errorf("role %s: %w", r.Name, err)
			}
			role.Grants = append(role.Grants, grant)
		}
		table.Roles = append(table.Roles, role)
	}
	for _, l := range file.Limits {
		table.Limits = append(table.Limits,
			&idnodev1.CallerLimit{Principals: l.Principals, InFlight: l.InFlight, IdsPerSecond: l.IDsPerSecond, NewNamesPerHour: l.NewNamesPerHour})
	}
	return table, nil
}

func (g fileGrant) message() (*idnodev1.RoleGrant, error) {
	if g.Database == "" {
		return nil, errors.New(`a grant has no database; "*" is for all`)
	}
	if g.Boundary == nil && !rights.EndsAtBoundary(g.Prefix) {
		return nil, fmt.Errorf("the prefix %.80q is of %[1]s2 too: say boundary: true for %[1]s, %[1]s/… and %[1]s|…, "+
			"or boundary: false for all", g.Prefix)
	}
	grant := &idnodev1.RoleGrant{Database: g.Database, Prefix: g.Prefix, Name: g.Name}
	if !rights.EndsAtBoundary(g.Prefix) {
		grant.Boundary = g.Boundary
	}
	for _, name := range g.Rights {
		value, ok := idnodev1.Right_value["RIGHT_"+strings.ToUpper(name)]
		if !ok || value == 0 {
			return nil, fmt.Errorf("there is no right %q", name)
		}
		grant.Rights = append(grant.Rights, idnodev1.Right(value))
	}
	return grant, nil
}

// printRoles writes roles as a file that sets them again.
func printRoles(w io.Writer, table *idnodev1.RoleTable) error {
	roles := []fileRole{}
	for _, r := range table.GetRoles() {
		role := fileRole{Name: r.GetName(), Principals: r.GetPrincipals()}
		for _, g := range r.GetGrants() {
			grant := fileGrant{Database: g.GetDatabase(), Prefix: g.GetPrefix(), Boundary: g.Boundary, Name: g.GetName()}
			for _, right := range g.GetRights() {
				grant.Rights = append(grant.Rights, word(right))
			}
			role.Grants = append(role.Grants, grant)
		}
		roles = append(roles, role)
	}
	file := rolesFile{Roles: &roles}
	for _, l := range table.GetLimits() {
		file.Limits = append(file.Limits,
			fileLimit{
				Principals: l.GetPrincipals(), InFlight: l.GetInFlight(), IDsPerSecond: l.GetIdsPerSecond(),
				NewNamesPerHour: l.GetNewNamesPerHour(),
			})
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(file); err != nil {
		return err
	}
	return encoder.Close()
}

func newClusterRolesCommand(a *app) *cobra.Command {
	return a.clusterWide(reading(&cobra.Command{
		Use:     "roles",
		Short:   "Show all roles and limits, as a file that sets them again",
		Example: "  idnode cluster roles > roles.yaml",
	}), func(ctx context.Context, s *clusterClient, _ []string) error {
		res, err := getRoles(ctx, s)
		return s.out.answer(err, res, func(w io.Writer) {
			fmt.Fprintf(w, "# set at log index %d\n", res.GetSetAtIndex())
			s.out.fail(printRoles(w, res.GetTable()))
		})
	})
}

// getRoles fails if this program does not know all of the roles: a file would lack the rest, and take it away.
func getRoles(ctx context.Context, s *clusterClient) (*idnodev1.GetRolesResponse, error) {
	res, err := clusterVia(s.ask).GetRoles(ctx, &idnodev1.GetRolesRequest{Consistency: s.consistency})
	if err == nil {
		if err := exactproto.Check(res.GetTable()); err != nil {
			return nil, fmt.Errorf("the roles have %w; a newer idnode does", err)
		}
	}
	return res, err
}

func newClusterSetRolesCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set-roles FILE",
		Short: "Replace all roles and limits by those of a file; - is the standard input",
		Long: `Replaces all roles and limits by those of a YAML file. Once there is a role,
everything that no role allows is forbidden. A file that says roles: [] takes all
of them away. The command asks before it takes a role or a right from anybody. A
change that would take the right to set roles from its own caller is refused.

  roles:
    - name: shop
      # Names of client certificates, plain or with dns:, uri: or email:; "*" is every caller.
      principals: [shop.example.org]
      grants:
        # Of names, tags and ids: orders, orders/… and orders|…, not orders2; then one name.
        - {database: shop, prefix: orders, boundary: true, rights: [generate, ranges]}
        - {database: shop, name: invoices, rights: [number]}
    - name: operators
      principals: ["spiffe://example.org/operator"]
      grants:
        - database: "*"
          rights: [generate, ranges, seed, force, delete, claims, read, backup, cluster, series, number]
  # Of each principal, on each node; names are identities, HiLo tags, claims and databases.
  limits:
    - {principals: [shop.example.org], in-flight: 200, ids-per-second: 50000, new-names-per-hour: 100}`,
		Example: "  idnode cluster set-roles roles.yaml\n  idnode cluster set-roles roles.yaml --expected 4711",
	}
	expected := cmd.Flags().Uint64("expected", 0,
		"only if the present roles were set at this log index, 0 for none (default: the present ones)")
	sure := a.asks(cmd)
	return a.clusterWide(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		table, err := readRoles(ctx, a.stdin, args[0])
		if err != nil {
			return err
		}
		now, err := getRoles(ctx, s)
		if err != nil {
			return err
		}
		if lost := lostRoles(now.GetTable(), table); lost != "" {
			if err := s.confirm(ctx, sure, fmt.Sprintf("Replaces %s by %s: %s.", rolesText(now.GetTable()), rolesText(table), lost)); err != nil {
				return err
			}
		}
		msg := &idnodev1.SetRolesRequest{Table: table, Expected: proto.Uint64(*expected)}
		if !cmd.Flags().Changed("expected") {
			// With what is there now expected, setting them twice is harmless.
			msg.Expected = proto.Uint64(now.GetSetAtIndex())
		}
		res, err := clusterVia(s.change).SetRoles(ctx, msg)
		return s.out.value(err, res,
			fmt.Sprintf("%s set at log index %d", rolesText(table), res.GetLogIndex()))
	})
}

func rolesText(table *idnodev1.RoleTable) string {
	return fmt.Sprintf("%d roles and %d limits", len(table.GetRoles()), len(table.GetLimits()))
}

// lostRoles says what one table of roles has that another one lacks or refuses; empty for nothing.
func lostRoles(before, after *idnodev1.RoleTable) string {
	if len(before.GetRoles()) > 0 && len(after.GetRoles()) == 0 {
		return "every caller with a certificate may then do everything but what each node keeps to its administrators (--admin)"
	}
	stays := map[string]*idnodev1.AccessRole{}
	for _, role := range after.GetRoles() {
		stays[role.GetName()] = role
	}
	var lost []string
	if len(before.GetRoles()) == 0 && len(stays) > 0 {
		lost = append(lost, "what no role allows is refused from then on")
	}
	for _, role := range before.GetRoles() {
		switch is := stays[role.GetName()]; {
		case is == nil:
			lost = append(lost, "the role "+quote(role.GetName())+" goes")
		case !proto.Equal(is, role):
			lost = append(lost, "the role "+quote(role.GetName())+" changes")
		}
	}
	if !proto.Equal(&idnodev1.RoleTable{Limits: before.GetLimits()}, &idnodev1.RoleTable{Limits: after.GetLimits()}) {
		lost = append(lost, "the limits change")
	}
	return strings.Join(lost, ", ")
}
