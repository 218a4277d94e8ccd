package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/recovery"
)

type recoverFlags struct {
	recovery.Options
	peers connection
	sure  *confirmation
}

func newRecoverCommand(a *app) *cobra.Command {
	var r recoverFlags
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Let survivors go on without a quorum; last resort, nodes stopped",
		Long: `Makes the data directory of a stopped node that of a member of a new cluster,
together with the other members named by --members. It is for the day on which so
many nodes are lost for good that no majority can ever be had again.

The lost nodes may have agreed on ids that no survivor knows of. So every counter
skips ahead by --skip-ahead, which must be more than what was given between the
last entry that a survivor has and the loss, with up to 1048576 for each client's
HiLo range and each node's reserve; numbers are cheap. Claims that only
the lost nodes knew of are lost. The cluster has a new id: lost nodes that come
back are refused by the survivors. Never start them again with their old data:
enough of them together would go on as the old cluster.

Run it on each survivor that is to go on, with the same --members and
--skip-ahead, while all of them are stopped; then start them. It is refused while
a member that is not to go on answers, or a majority can be had. Members are asked
where the directory has them registered, and where --peer, or the node's settings,
have them: a member that has moved is found in no other way, and is taken for lost.`,
		Example: `  idnode recover --data-dir /var/lib/idnode --members A --skip-ahead 10000000
  idnode recover --data-dir /var/lib/idnode --members A,D --skip-ahead 10000000 \
    --config /etc/idnode/idnode.yaml`,
	}
	f := cmd.Flags()
	f.StringVar(&r.Dir, "data-dir", "", "the node's data directory")
	f.StringSliceVar(&r.Keep, "members", nil, "tags of the members that go on, this node's among them")
	f.Int64Var(&r.SkipAhead, "skip-ahead", 0, "how much every counter is raised; 0 says that the lost nodes know of nothing more")
	f.StringSliceVar(&r.Lost, "assume-lost", nil, "tags of members that are lost though something else answers at their addresses")
	f.StringVar(&r.Audit, "audit", "", "the node's audit log; it gets a record of this")
	config.AddListFlags(f)
	r.peers.registerTLS(f, a.getenv)
	r.sure = a.asks(cmd)
	cmd.RunE = a.enter(func(cmd *cobra.Command, _ []string) error {
		switch {
		case r.Dir == "" || len(r.Keep) == 0:
			return usagef("--data-dir and --members are required")
		case !f.Changed("skip-ahead"):
			return usagef("--skip-ahead is required: see 'idnode recover --help'")
		}
		if err := checkSkipAhead(r.SkipAhead); err != nil {
			return err
		}
		var err error
		if r.Peer, r.Join, err = config.LoadLists(f, a.env); err != nil {
			return &usageError{err}
		}
		return r.run(cmd.Context(), a)
	})
	return cmd
}

func (f *recoverFlags) run(ctx context.Context, a *app) (err error) {
	f.Logger = newLogger(a.stderr, slog.LevelWarn, "text")
	r, err := recovery.Open(f.Options)
	if err != nil {
		return err
	}
	tlsConfig, err := f.peers.tlsConfig()
	if err != nil {
		return &usageError{err}
	}
	found, err := r.Probe(ctx, func(ctx context.Context, address string) (*idnodev1.GetStatusResponse, error) {
		s := &clusterClient{timeout: recovery.ProbeLimit, tls: tlsConfig, connection: connection{Endpoints: []string{address}}}
		defer s.close()
		return clusterOf(ctx, s)
	})
	if err != nil {
		return err
	}
	if err := r.Check(found); err != nil {
		return err
	}
	printFound(a.stderr, found)
	question := fmt.Sprintf("Makes %s, of node %s, part of a new cluster of %s, without the other members, with every counter raised by %d. "+
		"The lost nodes must never be started again with their data. That cannot be undone.",
		f.Dir, r.Record.Tag, strings.Join(f.Keep, ", "), f.SkipAhead)
	if err := f.sure.ask(question); err != nil {
		return err
	}
	out, _ := newPrinter(a.stdout, "text") // There is this form.
	done, err := r.Run(ctx, func() { fmt.Fprintf(a.stderr, "reading the data in %s, and rewriting it\n", f.Dir) })
	if done.ClusterID == nil {
		return err
	}
	fields(out.w, [][2]string{
		{"recovered", f.Dir + ", node " + r.Record.Tag},
		{"cluster", fmt.Sprintf("%x, before %x", done.ClusterID, r.Record.ClusterID)},
		{"epoch", fmt.Sprint(done.Epoch)},
		{"members", strings.Join(f.Keep, ", ")},
		{"lost", strings.Join(done.Removed, ", ")},
		{"raised", fmt.Sprintf("%d counters by %d; unknown names begin above at least %d", done.Raised, f.SkipAhead, f.SkipAhead)},
		{"settings", fmt.Sprintf("cluster-id: %x, in those of this node, new nodes and callers that name the old one", done.ClusterID)},
		{"next", "start the node, with the new cluster in its certificate if the old one was there; then let new nodes join, under new tags"},
	})
	if unprinted := out.flush(); unprinted != nil {
		return errors.Join(err, fmt.Errorf("the directory is recovered: %w", unprinted))
	}
	return err
}

func printFound(w io.Writer, found []recovery.Probe) {
	for _, p := range found {
		state := "does not answer"
		if p.Status != nil {
			state = "is node " + p.Status.GetSelf().GetTag() + " of cluster " + p.Status.GetClusterId()
		}
		fmt.Fprintf(w, "%s at %s %s\n", cmp.Or(p.Tag, "a member"), p.Address, state)
	}
}
