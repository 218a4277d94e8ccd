package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
)

func newClusterMembersCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the members",
		Long: `Lists the members and their condition. Without a quorum it lists the state of the node
asked, with a warning. With -o wide it has each member's priority, all its
addresses and its id too.`,
		Example: "  idnode cluster members --removed\n  idnode cluster members -o wide",
	}
	removed := cmd.Flags().Bool("removed", false, "also list removed members, whose tags stay taken")
	return a.clusterWide(reading(cmd), func(ctx context.Context, s *clusterClient, _ []string) error {
		members, err := allMembers(ctx, s, *removed)
		if s.consistency != idnodev1.Consistency_CONSISTENCY_STALE && exitCode(err) == exitUnavailable {
			// Without a quorum it is asked first. Any node returns its last knowledge.
			s.consistency = idnodev1.Consistency_CONSISTENCY_STALE
			if known, staleErr := allMembers(ctx, s, *removed); staleErr == nil {
				fmt.Fprintf(a.stderr, "idnode: warning: this is the state of the node asked alone: %s\n", printable(describe(err)))
				members, err = known, nil
			}
		}
		if err != nil {
			return err
		}
		if !s.out.json {
			s.out.painted(func(w io.Writer) { printMembers(w, members, s.out.wide) })
			return nil
		}
		for _, m := range members {
			s.out.object(m)
		}
		return nil
	})
}

func allMembers(ctx context.Context, s *clusterClient, removed bool) (all []*idnodev1.Member, err error) {
	msg := &idnodev1.ListMembersRequest{IncludeRemoved: removed, PageSize: maxPage, Consistency: s.consistency}
	for {
		res, err := clusterVia(s.ask).ListMembers(ctx, msg)
		all = append(all, res.GetMembers()...)
		if msg.PageToken = res.GetNextPageToken(); msg.GetPageToken() == "" {
			return all, err
		}
	}
}

// printMembers prints how each member is, as the node asked heard it last, and where it is; wide, all of it.
func printMembers(w io.Writer, members []*idnodev1.Member, wide bool) {
	rows := [][]string{strings.Fields("TAG ROLE ANSWERS BEHIND STORAGE CERTIFICATE VERSION GRPC PRIORITY RAFT HTTP ID CALLERS")}
	for _, m := range members {
		row := append([]string{m.GetTag(), roleName(m.GetRole())}, conditionOf(m)...)
		rows = append(rows, append(row, m.GetRaftAddress(), cmp.Or(m.GetHttpAddress(), "-"), m.GetId(), callersOf(m)))
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		if !wide {
			row = row[:slices.Index(rows[0], "PRIORITY")]
		}
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	_ = tw.Flush()
}

// callersOf is how many connections callers have, by the CA of their certificates.
func callersOf(m *idnodev1.Member) string {
	var all []string
	for _, c := range m.GetCallers() {
		all = append(all, fmt.Sprintf("%s: %d", c.GetCa(), c.GetConnections()))
	}
	return cmp.Or(strings.Join(all, "; "), "-")
}

// printPlaces prints the members and their addresses: all that a backup knows of them.
func printPlaces(w io.Writer, members []*idnodev1.Member) {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "TAG\tROLE\tGRPC\tRAFT\tHTTP\tID")
	for _, m := range members {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", m.GetTag(), roleName(m.GetRole()),
			m.GetGrpcAddress(), m.GetRaftAddress(), cmp.Or(m.GetHttpAddress(), "-"), m.GetId())
	}
	_ = tw.Flush()
}

// conditionOf is how a member is, in the columns from ANSWERS to PRIORITY; "-" for what is not known.
func conditionOf(m *idnodev1.Member) []string {
	answers, behind, storage, certificate, version, priority := "no", "-", "-", "-", "-", "-"
	switch {
	case m.GetRole() == idnodev1.Role_ROLE_REMOVED:
		answers = "-"
	case m.GetReachable():
		answers, behind, storage, version = "yes", fmt.Sprint(m.GetBehind()), "ok", cmp.Or(m.GetVersion(), "-")
		if m.GetStorageFull() {
			storage = "full"
		} else if m.GetStorageSlow() {
			storage = "slow"
		}
		if m.LeaderPriority != nil {
			priority = fmt.Sprint(m.GetLeaderPriority())
		}
		if at := m.GetCertificateExpiresAt(); at != nil {
			certificate = at.AsTime().Format(time.DateOnly)
		}
	default:
		if d := m.GetUnreachableFor().AsDuration(); d > 0 {
			answers = "no, " + d.Round(time.Second).String()
		}
	}
	return []string{answers, behind, storage, certificate, version, m.GetGrpcAddress(), priority}
}

func newClusterJoinTokenCommand(a *app) *cobra.Command {
	var msg idnodev1.CreateJoinTokenRequest
	cmd := &cobra.Command{
		Use:   "join-token",
		Short: "Make a token with which one node can join, and print it",
		Long: `Makes a token and prints it. One node can join with it, once, and until its time is
over: 'idnode serve --join ... --join-token-file FILE', where - is the standard input.
The cluster keeps the token's hash alone, so it cannot be shown again. Where joining
needs no right, it needs no token either.`,
		Example: "  idnode cluster join-token --tag D > token\n  idnode cluster join-token --watcher --for 10m > token",
	}
	cmd.Flags().StringVar(&msg.Tag, "tag", "", "node tag that the node must have (default: any)")
	cmd.Flags().BoolVar(&msg.Watcher, "watcher", false, "it joins as a watcher, without a vote")
	validFor := cmd.Flags().Duration("for", time.Hour, "how long the token can be used, 30 days (720h) at most")
	return a.clusterWide(cmd, func(ctx context.Context, s *clusterClient, _ []string) error {
		msg.ValidFor = durationpb.New(*validFor)
		res, err := clusterVia(s.change).CreateJoinToken(ctx, &msg)
		return s.out.value(err, res, res.GetToken())
	})
}
