package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

func newIdentityCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "identity",
		Short: "Counters agreed by the cluster",
		Long: `An identity is a counter with a name; its value is the last one handed out.
'users|' and 'users' name the same identity. Take values with 'idnode next'.`,
	}, newIdentityListCommand(a), newIdentityGetCommand(a), newIdentitySeedCommand(a), newIdentityDeleteCommand(a))
}

func newIdentityListCommand(a *app) *cobra.Command {
	return a.list(&cobra.Command{
		Use:     "list",
		Short:   "List the identities: name and last used value",
		Example: "  idnode identity list --prefix us --limit 10",
	}, a.client, "NAME VALUE", func(ctx context.Context, s *clusterClient, p page) (string, int, error) {
		res, err := idsVia(s.ask).ListIdentities(ctx, &idnodev1.ListIdentitiesRequest{
			Database: s.database, Prefix: p.prefix, PageSize: p.size, PageToken: p.token, Consistency: s.consistency,
		})
		for _, i := range res.GetIdentities() {
			s.out.result(i, func(w io.Writer) { fmt.Fprintf(w, "%s\t%d\n", docid.Escape(i.GetName()), i.GetValue()) })
		}
		return res.GetNextPageToken(), len(res.GetIdentities()), err
	})
}

func newIdentityGetCommand(a *app) *cobra.Command {
	return a.client(reading(&cobra.Command{
		Use:     "get NAME",
		Short:   "Print the last used value",
		Example: "  idnode identity get users",
	}), func(ctx context.Context, s *clusterClient, args []string) error {
		res, err := idsVia(s.ask).GetIdentity(ctx, &idnodev1.GetIdentityRequest{Database: s.database, Name: args[0], Consistency: s.consistency})
		return s.out.value(err, res.GetIdentity(), res.GetIdentity().GetValue())
	})
}

func newIdentitySeedCommand(a *app) *cobra.Command {
	var msg idnodev1.SeedIdentityRequest
	cmd := &cobra.Command{
		Use:   "seed NAME VALUE",
		Short: "Move the last used value up, or with --force anywhere",
		Long: `Sets the last used value to the larger of VALUE and the current one, and prints it;
the next id lies above it. With --force exactly VALUE is set: a lower one makes
values come twice, so the command asks first.`,
		Example: `  idnode identity seed users 1000
  idnode identity seed users --force -- -1
  idnode identity seed users 2000 --expected 1000`,
	}
	f := cmd.Flags()
	f.BoolVar(&msg.Force, "force", false, "set exactly VALUE, also a lower one")
	expected := f.Int64("expected", 0, "only if this is the current value")
	req := newRequest(f)
	sure := a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		value, err := parseNumber("VALUE", args[1])
		if err != nil {
			return err
		}
		msg.Value = &value
		if f.Changed("expected") {
			msg.Expected = expected
		}
		msg.Database, msg.Name = s.database, args[0]
		if err := askToLower(ctx, s, sure, &msg); err != nil {
			return err
		}
		res, err := idsVia(s.once(req, &msg.RequestId)).SeedIdentity(ctx, &msg)
		if err == nil && res.GetValue() > msg.GetValue() {
			fmt.Fprintf(a.stderr, "idnode: not set: the value is above %d already, and only --force lowers it\n", msg.GetValue())
		}
		return s.out.value(err, res, res.GetValue())
	})
}

// askToLower asks before a seed that may lower the value. It may if the present value is unknown,
// as without a quorum.
func askToLower(ctx context.Context, s *clusterClient, sure *confirmation, msg *idnodev1.SeedIdentityRequest) error {
	if !msg.GetForce() || sure.yes {
		return nil
	}
	now, err := idsVia(s.ask).GetIdentity(ctx, &idnodev1.GetIdentityRequest{Database: msg.GetDatabase(), Name: msg.GetName()})
	value := now.GetIdentity().GetValue()
	if err == nil && msg.GetValue() >= value {
		return nil
	}
	was := fmt.Sprintf(" from %d", value)
	if err != nil {
		was = ""
	}
	return s.confirm(ctx, sure, fmt.Sprintf("Sets %s%s to %d: the values above it that were handed out come again.",
		quote(msg.GetName()), was, msg.GetValue()))
}

func newIdentityDeleteCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Hide an identity, or with --forget remove its value too",
		Long: `Hides the identity and prints its last used value, which is kept: the next use of the
name continues above it. With --forget the value is removed too: the identity starts at 1
again, and values come twice, so the command asks first.`,
		Example: "  idnode identity delete users",
	}
	forget := cmd.Flags().Bool("forget", false, "remove the last used value too")
	req := newRequest(cmd.Flags())
	sure := a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		if *forget {
			if err := s.confirm(ctx, sure, fmt.Sprintf("Forgets %s and its last used value: the values that were handed out come again.",
				quote(args[0]))); err != nil {
				return err
			}
		}
		msg := &idnodev1.DeleteIdentityRequest{Database: s.database, Name: args[0], Forget: *forget}
		res, err := idsVia(s.once(req, &msg.RequestId)).DeleteIdentity(ctx, msg)
		return s.out.value(err, res, res.GetValue())
	})
}

func newClaimCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "claim ID",
		Short: "Record a finished id as taken: the first claim wins",
		Long: `Claims an id of your own in the cluster. The next one to claim it, in any case of
letters, is refused, and identities step over it. An id that ends in a number, a dash
and the tag of a node is refused: nodes give such ids.`,
		Example: "  idnode claim users/ayende@example.org",
	}
	separator := cmd.Flags().String("separator", "", `separator of the id's parts (default "/")`)
	req := newRequest(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		msg := &idnodev1.ClaimRequest{Database: s.database, Id: args[0], Separator: *separator}
		res, err := idsVia(s.once(req, &msg.RequestId)).Claim(ctx, msg)
		return s.out.value(err, res, docid.Escape(res.GetId()))
	})
}

func newReleaseCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "release ID",
		Short:   "Give a claimed id free again: anybody may claim it then",
		Example: "  idnode release users/ayende@example.org",
	}
	req := newRequest(cmd.Flags())
	sure := a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		if err := s.confirm(ctx, sure, fmt.Sprintf("Gives up the claim of %s: anybody may claim it then.", quote(args[0]))); err != nil {
			return err
		}
		msg := &idnodev1.ReleaseRequest{Database: s.database, Id: args[0]}
		res, err := idsVia(s.once(req, &msg.RequestId)).Release(ctx, msg)
		return s.out.value(err, res, docid.Escape(args[0]))
	})
}

func newClaimsCommand(a *app) *cobra.Command {
	return a.list(&cobra.Command{
		Use:     "claims",
		Short:   "List the claimed ids",
		Example: "  idnode claims --prefix users/",
	}, a.client, "ID", func(ctx context.Context, s *clusterClient, p page) (string, int, error) {
		res, err := idsVia(s.ask).ListClaims(ctx, &idnodev1.ListClaimsRequest{
			Database: s.database, Prefix: p.prefix, PageSize: p.size, PageToken: p.token, Consistency: s.consistency,
		})
		for _, id := range res.GetIds() {
			s.out.alone("id", id)
		}
		return res.GetNextPageToken(), len(res.GetIds()), err
	})
}
