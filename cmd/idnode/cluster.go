package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/bytesize"
	"github.com/idnode/idnode/internal/pause"
)

func newClusterCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "cluster",
		Short: "Show and change the cluster",
	}, newClusterStatusCommand(a), newClusterMembersCommand(a), newClusterJoinTokenCommand(a), newClusterRemoveCommand(a),
		newClusterPromoteCommand(a), newClusterDemoteCommand(a), newClusterTransferCommand(a), newClusterSettingsCommand(a),
		newClusterSetCommand(a), newClusterRolesCommand(a), newClusterSetRolesCommand(a))
}

func newClusterStatusCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show the cluster as one node sees it; needs no quorum",
		Example: "  idnode cluster status --endpoint 127.0.0.1:7410\n  idnode cluster status --watch",
	}
	every := cmd.Flags().Duration("watch", 0, "show it again and again, until Ctrl-C: each second, or each time of --watch=5s")
	cmd.Flags().Lookup("watch").NoOptDefVal = "1s"
	return a.clusterWide(cmd, func(ctx context.Context, s *clusterClient, _ []string) error {
		if *every <= 0 {
			res, err := clusterOf(ctx, s)
			if err == nil {
				showStatus(s, res)
			}
			return err
		}
		for ctx.Err() == nil {
			res, err := clusterOf(ctx, s)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				fmt.Fprintln(a.stderr, "idnode: "+printable(describe(err))) // It may come back.
			default:
				if a.toTerminal && !s.out.json {
					fmt.Fprint(s.out.w, "\x1b[H\x1b[2J") // Clear the screen.
				}
				showStatus(s, res)
			}
			if err := s.out.flush(); err != nil {
				return err
			}
			pause.For(ctx, *every)
		}
		return nil
	})
}

func showStatus(s *clusterClient, res *idnodev1.GetStatusResponse) {
	s.out.result(res, func(io.Writer) {
		s.out.painted(func(w io.Writer) {
			fields(w, [][2]string{{"context", s.context}})
			printStatus(w, res, s.out.wide)
		})
	})
}

// held shows the counts, which only those get who may read all databases.
func held(c *idnodev1.StateCounts) string {
	if c == nil {
		return "(takes the right read on all databases)"
	}
	return counted(c, " (also those of the nodes themselves)")
}

// counted says what a state holds. It has a remark behind the request ids.
func counted(c *idnodev1.StateCounts, remark string) string {
	many := func(n int64, one, more string) string {
		return fmt.Sprintf("%d %s", n, map[bool]string{true: one, false: more}[n == 1])
	}
	return strings.Join([]string{
		many(c.GetDatabases(), "database", "databases"), many(c.GetIdentities(), "identity", "identities"),
		many(c.GetHilos(), "HiLo tag", "HiLo tags"), many(c.GetClaims(), "claim", "claims"),
		fmt.Sprintf("%d series with ", c.GetSeries()) + many(c.GetSeriesKeys(), "key", "keys"),
		many(c.GetRequestIds(), "request id", "request ids") + remark, bytesize.Size(c.GetBytes()).Rounded() + " of names",
	}, ", ")
}

func printStatus(w io.Writer, r *idnodev1.GetStatusResponse, wide bool) {
	shown := [][2]string{
		{"cluster", cmp.Or(r.GetClusterId(), "not formed yet")},
		{"node", fmt.Sprintf("%s, %s", cmp.Or(r.GetSelf().GetTag(), "?"), roleName(r.GetSelf().GetRole()))},
		{"leader", cmp.Or(r.GetLeaderTag(), "none known")},
		{"quorum", map[bool]string{true: "yes", false: "no"}[r.GetHasQuorum()]},
		{"storage", storage(r)},
		{"term", fmt.Sprint(r.GetTerm())},
		{"log", fmt.Sprintf("applied %d, committed %d, format %d", r.GetAppliedIndex(), r.GetCommitIndex(), r.GetLogFormat())},
		{"contact", r.GetLastContact().AsDuration().Round(time.Millisecond).String() + " ago"},
		{"state", fmt.Sprintf("%016x", r.GetStateHash())},
		{"holds", held(r.GetCounts())},
		{"version", r.GetVersion()},
	}
	for _, warning := range r.GetWarnings() {
		shown = append(shown, [2]string{"warning", warning})
	}
	fields(w, shown)
	fmt.Fprintln(w)
	printMembers(w, r.GetMembers(), wide)
}

// storage is how the disks are, in words.
func storage(r *idnodev1.GetStatusResponse) string {
	var full []string
	for _, m := range r.GetMembers() {
		if m.GetStorageFull() {
			full = append(full, m.GetTag())
		}
	}
	switch {
	case len(full) > 0:
		return "nearly full on " + strings.Join(full, ", ")
	case r.GetSelf().GetStorageSlow():
		return "slow: it does not get leadership"
	}
	return "ok"
}

func roleName(r idnodev1.Role) string {
	if r == idnodev1.Role_ROLE_UNSPECIFIED {
		return "unknown"
	}
	return word(r)
}

func newClusterRemoveCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove TAG",
		Short: "Remove a member for good; its tag is never given again",
		Long: `Removes a member for good: its tag is never given again, and its data directory
cannot be used again. A node that is to come back is only stopped.

The leader refuses it with LOSES_QUORUM if fewer than a majority of the voters that
remain answer it: the cluster would stand still until they come back, and for good
if they do not. Bring them back, or remove those first that are gone for good.`,
		Example: "  idnode cluster remove C\n  idnode cluster remove C --yes",
	}
	force := cmd.Flags().Bool("force", false, "also if a majority of the voters that remain does not answer: the cluster then stands still")
	sure := a.asks(cmd)
	return a.clusterWide(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		question := fmt.Sprintf("Removes member %s for good: its tag is never given again, and its data directory cannot be used again.",
			args[0])
		if *force {
			question += " Without a majority of the others the cluster stands still."
		}
		if err := s.confirm(ctx, sure, question); err != nil {
			return err
		}
		res, err := clusterVia(s.change).RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: args[0], Force: *force})
		return s.out.value(err, res, args[0]+" removed")
	})
}

func newClusterPromoteCommand(a *app) *cobra.Command {
	return a.clusterWide(&cobra.Command{
		Use:   "promote TAG",
		Short: "Let a watcher vote",
		Long: `Lets a watcher vote: it gets its vote once it has kept up for two seconds, and a
majority of the voters, including it, answers. An even number of voters tolerates
no more failures than one fewer.`,
		Example: "  idnode cluster promote D",
	}, func(ctx context.Context, s *clusterClient, args []string) error {
		res, err := clusterVia(s.change).SetWatcher(ctx, &idnodev1.SetWatcherRequest{Tag: args[0], Watcher: proto.Bool(false)})
		return s.out.value(err, res, args[0]+" votes once it has caught up")
	})
}

func newClusterDemoteCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demote TAG",
		Short: "Make a voter a watcher, which does not vote",
		Long: `Makes a member a watcher: it has all data and answers as before, but does not vote
and does not lead. A leader hands leadership on first. 'idnode cluster promote'
takes it back.

It is refused for the last voter, and with LOSES_QUORUM if fewer than a majority of
the other voters answer the leader.`,
		Example: "  idnode cluster demote D\n  idnode cluster demote D --yes",
	}
	force := cmd.Flags().Bool("force", false, "also if a majority of the other voters does not answer: the cluster then stands still")
	sure := a.asks(cmd)
	return a.clusterWide(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		question := fmt.Sprintf("Takes the vote of member %s: the others that vote may tolerate fewer failures.", args[0])
		if *force {
			question += " Without a majority of them the cluster stands still."
		}
		if err := s.confirm(ctx, sure, question); err != nil {
			return err
		}
		res, err := clusterVia(s.change).SetWatcher(ctx, &idnodev1.SetWatcherRequest{Tag: args[0], Watcher: proto.Bool(true), Force: *force})
		return s.out.value(err, res, args[0]+" is a watcher")
	})
}

func newClusterTransferCommand(a *app) *cobra.Command {
	return a.clusterWide(&cobra.Command{
		Use:     "transfer [TAG]",
		Short:   "Hand leadership to another voter and print the new leader",
		Example: "  idnode cluster transfer B",
	}, func(ctx context.Context, s *clusterClient, args []string) error {
		res, err := clusterVia(s.change).TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{Tag: strings.Join(args, "")})
		return s.out.value(err, res, res.GetLeaderTag())
	})
}

func newClusterSettingsCommand(a *app) *cobra.Command {
	return a.clusterWide(reading(&cobra.Command{
		Use:     "settings",
		Short:   "List the settings that the whole cluster shares",
		Example: "  idnode cluster settings",
	}), func(ctx context.Context, s *clusterClient, _ []string) error {
		res, err := clusterVia(s.ask).ListSettings(ctx, &idnodev1.ListSettingsRequest{Consistency: s.consistency})
		if err != nil {
			return err
		}
		tw := tabwriter.NewWriter(s.out.w, 0, 8, 2, ' ', 0)
		if !s.out.json {
			fmt.Fprintln(tw, "KEY\tVALUE\tDEFAULT\tLIMITS")
		}
		for _, v := range res.GetSettings() {
			s.out.result(v, func(io.Writer) {
				fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", v.GetKey(), settingText(v.GetKey(), v.GetValue()),
					settingText(v.GetKey(), v.GetDefaultValue()), v.GetDescription())
			})
		}
		return tw.Flush()
	})
}

func newClusterSetCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Change a setting on all nodes",
		Long: `Changes a setting, and prints its value and the one before. A lower value loses or
refuses something, so the command says what, and asks first.`,
		Example: "  idnode cluster set max-identities 2000000",
	}
	sure := a.asks(cmd)
	return a.clusterWide(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		value, err := parseSetting(args[0], args[1])
		if err != nil {
			return err
		}
		before, err := settingNow(ctx, s, args[0])
		if err != nil {
			return err
		}
		was, becomes := settingText(args[0], before.GetValue()), settingText(args[0], value)
		if value < before.GetValue() {
			question := fmt.Sprintf("Lowers %s from %s to %s: %s.", args[0], was, becomes, before.GetLowered())
			if err := s.confirm(ctx, sure, question); err != nil {
				return err
			}
		}
		res, err := clusterVia(s.change).UpdateSetting(ctx, &idnodev1.UpdateSettingRequest{Key: args[0], Value: &value})
		return s.out.value(err, res.GetSetting(), fmt.Sprintf("%s\t%s\tbefore\t%s", args[0], becomes, was))
	})
}

// settingNow returns a setting as it is. The cluster refuses one that it does not know.
func settingNow(ctx context.Context, s *clusterClient, key string) (*idnodev1.Setting, error) {
	res, err := clusterVia(s.ask).ListSettings(ctx, &idnodev1.ListSettingsRequest{})
	for _, each := range res.GetSettings() {
		if each.GetKey() == key {
			return each, err
		}
	}
	return &idnodev1.Setting{Value: math.MinInt64}, err
}

func isSize(key string) bool { return strings.Contains(key, "-bytes") }

// settingText is the value of a setting as parseSetting reads it.
func settingText(key string, value int64) string {
	if isSize(key) {
		return bytesize.Size(value).String()
	}
	return strconv.FormatInt(value, 10)
}

func parseSetting(key, text string) (int64, error) {
	if !isSize(key) {
		return parseNumber("VALUE", text)
	}
	size, err := bytesize.Parse(text)
	if err != nil {
		return 0, usagef("VALUE: %w", err)
	}
	return int64(size), nil
}

func newHealthCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Say whether a node serves: exit code 0 yes, 3 no, 1 anything else",
		Long: `Asks a node for its health. By default a healthy node is ready: it serves with a quorum. The
service idnode.live is healthy as long as the process lives and Raft does not hang. The
standard error has the node's warnings, as of a disk that is nearly full. Inside a container the command finds
the node's own TLS files by the same environment variables.`,
		Example: `  idnode health
  idnode health --service idnode.live`,
	}
	service := cmd.Flags().String("service", "", "service to ask about; empty is the node as a whole")
	return a.clusterWide(cmd, func(ctx context.Context, s *clusterClient, _ []string) error {
		// It is about the node, and IDNODE_CLUSTER_ID is the node's own, which may have joined nothing yet.
		s.ClusterID, s.anyCluster = "", true
		var res *healthpb.HealthCheckResponse
		var warnings []string
		err := s.ask(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
			res, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: *service})
			if err == nil {
				// What is not known does not make it less healthy.
				status, _ := idnodev1.NewClusterServiceClient(conn).GetStatus(ctx, &idnodev1.GetStatusRequest{})
				warnings = status.GetWarnings()
			}
			return err
		})
		if err := s.out.value(err, res, res.GetStatus()); err != nil {
			return err
		}
		for _, warning := range warnings {
			fmt.Fprintln(s.stderr, "idnode: warning: "+printable(warning))
		}
		if res.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			return &unavailableError{errors.New("the node does not serve: " + res.GetStatus().String())}
		}
		return nil
	})
}
