package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/fsm"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// recovery is one run of idnode recover.
type recovery struct {
	dir   string
	keep  []string
	skip  int64
	lost  []string
	audit string
	peers clientFlags
	sure  confirmation
}

func (a *app) recoverCommand() *cobra.Command {
	var r recovery
	cmd := &cobra.Command{
		Use:     "recover",
		GroupID: groupData,
		Short:   "Let survivors go on without a quorum; last resort, nodes stopped",
		Long: `Makes the data directory of a stopped node that of a member of a new cluster,
together with the other members named by --members. It is for the day on which so
many nodes are lost for good that no majority can ever be had again.

The lost nodes may have agreed on ids that no survivor knows of. So every counter
skips ahead by --skip-ahead, which must be more than what was given between the
last entry that a survivor has and the loss; numbers are cheap. Claims that only
the lost nodes knew of are lost. The cluster has a new id: lost nodes that come
back are refused by the survivors. Never start them again with their old data:
enough of them together would go on as the old cluster.

Run it on each survivor that is to go on, with the same --members and
--skip-ahead, while all of them are stopped; then start them. It is refused while
a member that is not to go on answers, or a majority can be had.`,
		Example: `  idnode recover --data-dir /var/lib/idnode --members A --skip-ahead 1000000
  idnode recover --data-dir /var/lib/idnode --members A,D --skip-ahead 1000000`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&r.dir, "data-dir", "", "the node's data directory")
	f.StringSliceVar(&r.keep, "members", nil, "tags of the members that go on, this node's among them")
	f.Int64Var(&r.skip, "skip-ahead", 0, "how much every counter is raised; 0 says that the lost nodes know of nothing more")
	f.StringSliceVar(&r.lost, "assume-lost", nil, "tags of members that are lost though something else answers at their addresses")
	f.StringVar(&r.audit, "audit", "", "the node's audit log; it gets a record of this")
	r.peers.registerTLS(f, a.getenv)
	r.sure.register(f)
	cmd.RunE = a.enter(func(cmd *cobra.Command, _ []string) error {
		switch {
		case r.dir == "" || len(r.keep) == 0:
			return usagef("--data-dir and --members are required")
		case !f.Changed("skip-ahead") || r.skip < 0:
			return usagef("--skip-ahead is required, and not negative: see 'idnode recover --help'")
		}
		r.sure.of(cmd)
		return r.run(cmd.Context(), a)
	})
	return cmd
}

func (r *recovery) run(ctx context.Context, a *app) error {
	record, err := member.Load(r.dir)
	if err != nil {
		return err
	}
	found, err := r.dialAll(ctx, a, record)
	if err != nil {
		return err
	}
	if err := r.refuseIfReachable(record, found); err != nil {
		return err
	}
	printFound(a.stderr, found)
	if err := r.sure.ask(r.question(record)); err != nil {
		return err
	}
	return r.audited(record, func() (fsm.Recovered, error) { return r.rewrite(ctx, a) }, a.stdout)
}

// probe is what was found at a member's address.
type probe struct {
	member *raftlogv1.Member
	// status is its answer; nil if there was none.
	status *idnodev1.GetStatusResponse
	// open says that something takes connections there; err is why it is no answer.
	open bool
	err  error
}

// probeLimit bounds the look at one member.
const probeLimit = 3 * time.Second

// dialAll looks at all members but this one, at the same time.
func (r *recovery) dialAll(ctx context.Context, a *app, record *member.Record) ([]probe, error) {
	config, err := r.peers.tlsConfig()
	if err != nil {
		return nil, &usageError{err: err}
	}
	var found []probe
	for _, m := range record.Members {
		if !m.GetRemoved() && m.GetTag() != record.Tag {
			found = append(found, probe{member: m})
		}
	}
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() {
			s := &clusterClient{timeout: probeLimit, tls: config, endpoints: []string{found[i].member.GetGrpcAddress()}}
			defer s.close()
			found[i].status, found[i].err = clusterOf(ctx, s)
			found[i].open = found[i].err == nil || listens(ctx, found[i].member)
		})
	}
	all.Wait()
	return found, ctx.Err()
}

// listens says whether something takes connections at a member's addresses.
func listens(ctx context.Context, m *raftlogv1.Member) bool {
	dialer := net.Dialer{Timeout: probeLimit}
	for _, address := range []string{m.GetGrpcAddress(), m.GetRaftAddress()} {
		if conn, err := dialer.DialContext(ctx, "tcp", address); err == nil {
			_ = conn.Close() // Nothing was said.
			return true
		}
	}
	return false
}

// is says whether the member itself answered, of the cluster that is to be
// recovered.
func (c probe) is(clusterID string) bool {
	return c.status != nil && c.status.GetSelf().GetTag() == c.member.GetTag() && c.status.GetClusterId() == clusterID
}

// refuseIfReachable refuses while the old cluster lives, or may.
func (r *recovery) refuseIfReachable(record *member.Record, found []probe) error {
	clusterID := hex.EncodeToString(record.ClusterID)
	voters, reachable := 0, 0
	for _, m := range record.Members {
		if m.GetVoter() && !m.GetRemoved() {
			voters++
			if m.GetTag() == record.Tag {
				reachable++
			}
		}
	}
	var refused []error
	for _, c := range found {
		tag, address := c.member.GetTag(), c.member.GetGrpcAddress()
		switch {
		case c.is(clusterID):
			if c.member.GetVoter() {
				reachable++
			}
			refused = append(refused, fmt.Errorf("node %s runs at %s: stop it first", tag, address))
		case c.open && c.status == nil && !slices.Contains(r.lost, tag):
			refused = append(refused, fmt.Errorf("something answers at the address of node %s, %s, but does not say who it is (%v): if it is another program, use --assume-lost %s",
				tag, address, c.err, tag))
		}
	}
	if reachable > voters/2 && !record.Recovering {
		return fmt.Errorf("a majority is there: %d of %d voters, this one included; start this node instead", reachable, voters)
	}
	return errors.Join(refused...)
}

func printFound(w io.Writer, found []probe) {
	for _, c := range found {
		state := "does not answer"
		if c.status != nil {
			state = "is node " + c.status.GetSelf().GetTag() + " of cluster " + c.status.GetClusterId()
		}
		fmt.Fprintf(w, "%s at %s %s\n", c.member.GetTag(), c.member.GetGrpcAddress(), state)
	}
}

func (r *recovery) question(record *member.Record) string {
	return fmt.Sprintf("Makes %s, of node %s, part of a new cluster of %s, without the other members, with every counter raised by %d. "+
		"The lost nodes must never be started again with their data. That cannot be undone.",
		r.dir, record.Tag, strings.Join(r.keep, ", "), r.skip)
}

// rewrite recovers the data directory.
func (r *recovery) rewrite(ctx context.Context, a *app) (done fsm.Recovered, err error) {
	logger, err := newLogger(a.stderr, slog.LevelWarn.String(), "text")
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, keepOwner(r.dir)) }()
	state := fsm.New(fsm.Config{Logger: logger})
	fmt.Fprintf(a.stderr, "reading the data in %s, and rewriting it\n", r.dir)
	err = cluster.Recover(ctx, cluster.Recovery{
		DataDir: r.dir, Keep: r.keep, StateMachine: state, Registry: state, Logger: logger,
		TakeSnapshot: func() cluster.Snapshot { return state.Snapshot() },
		Change: func() (err error) {
			done, err = state.Recover(fsm.Recovery{Keep: r.keep, SkipAhead: r.skip})
			return err
		},
	})
	if done.ClusterID == nil {
		// The change was made before a crash; it is the same one.
		_, done.Epoch = state.Floor()
		done.ClusterID = state.ClusterID()
	}
	return done, err
}

// audited runs a recovery and records it: in the audit log, if there is one.
func (r *recovery) audited(record *member.Record, recover func() (fsm.Recovered, error), out io.Writer) (err error) {
	entry := audit.Record{
		Event: audit.EventRecover, Outcome: audit.OutcomeIntended, Principal: localUser(), Node: record.Tag,
		Before: map[string]any{"cluster": hex.EncodeToString(record.ClusterID)},
		After:  map[string]any{"members": r.keep, "skip_ahead": r.skip},
	}
	log, err := r.openAudit()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := log.Write(entry); err != nil {
		return err
	}
	done, failed := recover()
	entry.Outcome = audit.OutcomeDone
	if failed != nil {
		entry.Outcome, entry.Reason = audit.OutcomeUnknown, failed.Error()
	}
	entry.After = map[string]any{
		"cluster": hex.EncodeToString(done.ClusterID), "epoch": done.Epoch, "members": r.keep, "removed": done.Removed, "skip_ahead": r.skip,
	}
	if err := errors.Join(failed, log.Write(entry)); err != nil {
		return err
	}
	fields(out, [][2]string{
		{"recovered", r.dir + ", node " + record.Tag},
		{"cluster", fmt.Sprintf("%x, before %x", done.ClusterID, record.ClusterID)},
		{"epoch", fmt.Sprint(done.Epoch)},
		{"members", strings.Join(r.keep, ", ")},
		{"lost", strings.Join(done.Removed, ", ")},
		{"raised", fmt.Sprintf("%d counters by %d; unknown names begin above at least %d", done.Raised, r.skip, r.skip)},
		{"next", "start the node, with a certificate for the new cluster if its own was for the old one alone; then let new nodes join, under new tags"},
	})
	return nil
}

// openAudit returns nil, which records nothing, without a file.
func (r *recovery) openAudit() (*audit.Log, error) {
	if r.audit == "" {
		return nil, nil
	}
	log, err := audit.Open(r.audit)
	if err != nil {
		return nil, err
	}
	// The node goes on with it, under its own user.
	if err := keepOwnerOf(r.audit, r.dir); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return log, nil
}

// localUser is the user that runs this command.
func localUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
