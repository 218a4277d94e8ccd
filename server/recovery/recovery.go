// Package recovery lets the survivors of a lost quorum go on: it looks which members
// are still there, refuses while the old cluster lives or may, and makes the data
// directory of a stopped node that of a member of a new cluster.
//
// It neither asks nor prints anything. How a log is rewritten is package cluster's, and
// how a state is changed package fsm's.
package recovery

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/user"
	"slices"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/internal/fileowner"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Options say what is recovered, and how.
type Options struct {
	// Dir is the data directory of a node that does not run.
	Dir string
	// Keep are the tags of the members that go on, this node's among them.
	Keep []string
	// SkipAhead is by how much every counter is raised. It is not negative.
	SkipAhead int64
	// Lost are tags of members that are lost though something else answers at their
	// addresses, or such addresses to join through.
	Lost []string
	// Peer and Join are the nodes that its configuration lists: members may have moved there.
	Peer map[string]string
	Join []string
	// Audit is the node's audit log; empty if there is none.
	Audit  string
	Logger *slog.Logger
}

// Recovery is one recovery. Its methods are called one after the other.
type Recovery struct {
	Options
	// Record is what the directory knows of its node and of the members.
	Record *member.Record
}

// Open reads who the directory's node is. It changes nothing.
func Open(o Options) (*Recovery, error) {
	record, err := member.Load(o.Dir)
	if err != nil {
		return nil, err
	}
	return &Recovery{Options: o, Record: record}, nil
}

// Check refuses members of which the directory knows nothing, and while the old cluster lives, or may.
func (r *Recovery) Check(found []Probe) error {
	if err := cluster.CheckSurvivors(r.Record, r.Keep); err != nil {
		return err
	}
	there := r.there(found)
	voters, reachable := 0, 0
	for _, m := range r.Record.Members {
		if m.GetVoter() && !m.GetRemoved() {
			voters++
			if m.GetTag() == r.Record.Tag || there[m.GetTag()] != "" {
				reachable++
			}
		}
	}
	if reachable > voters/2 && !r.Record.Recovering {
		return fmt.Errorf("a majority is available: %d of %d voters, this node included; start this node instead", reachable, voters)
	}
	var refused []error
	for _, tag := range slices.Sorted(maps.Keys(there)) {
		refused = append(refused, fmt.Errorf("node %s runs at %s: stop it first", tag, there[tag]))
	}
	for _, p := range found {
		lost := cmp.Or(p.Tag, p.Address) // The owner of an address to join through is unknown.
		if p.open && p.Status == nil && (p.Tag == "" || there[p.Tag] == "") && !slices.Contains(r.Lost, lost) {
			refused = append(refused,
				fmt.Errorf("something answers at the address of node %s, %s, but does not say who it is (%v): if it is another program, use "+
					"--assume-lost %s",
					cmp.Or(p.Tag, "?"), p.Address, p.err, lost))
		}
	}
	return errors.Join(refused...)
}

// there returns the other members that answered, by tag, with an address at which each did:
// whatever was looked for there, for members may have each other's addresses.
func (r *Recovery) there(found []Probe) map[string]string {
	there := map[string]string{}
	for _, p := range found {
		self := p.Status.GetSelf().GetTag()
		if p.Status.GetClusterId() == hex.EncodeToString(r.Record.ClusterID) && self != r.Record.Tag && r.isMember(self) {
			there[self] = p.Address
		}
	}
	return there
}

func (r *Recovery) isMember(tag string) bool {
	return slices.ContainsFunc(r.Record.Members, func(m *raftlogv1.Member) bool { return m.GetTag() == tag && !m.GetRemoved() })
}

// Run recovers the data directory, and records it in the audit log, if there is one:
// what is intended before, and what came of it after. It calls begin before it reads the
// data. After an error it is run again with the same options, unless done has a cluster id:
// then the directory is recovered, and only the record of it may be missing.
func (r *Recovery) Run(ctx context.Context, begin func()) (fsm.Recovered, error) {
	entry := audit.Record{
		Event: audit.EventRecover, Outcome: audit.OutcomeIntended, Principal: localUser(), Node: r.Record.Tag,
		Before: map[string]any{"cluster": hex.EncodeToString(r.Record.ClusterID)},
		After:  map[string]any{"members": r.Keep, "skip_ahead": r.SkipAhead},
	}
	log, err := r.openAudit()
	if err != nil {
		return fsm.Recovered{}, err
	}
	if err := log.Write(ctx, entry); err != nil {
		return fsm.Recovered{}, errors.Join(err, log.Close())
	}
	begin()
	done, failed := r.rewrite(ctx)
	entry.Outcome = audit.OutcomeDone
	if failed != nil {
		entry.Outcome, entry.Reason = audit.OutcomeUnknown, failed.Error()
	}
	entry.After = map[string]any{
		"cluster": hex.EncodeToString(done.ClusterID), "epoch": done.Epoch, "members": r.Keep, "removed": done.Removed, "skip_ahead": r.SkipAhead,
	}
	unrecorded := errors.Join(log.Write(context.WithoutCancel(ctx), entry), log.Close())
	switch {
	case failed != nil:
		return fsm.Recovered{}, errors.Join(failed, unrecorded)
	case unrecorded != nil:
		return done, fmt.Errorf("the directory is recovered, and the node can be started; the record of that "+
			"in the audit log may be missing: %w", unrecorded)
	}
	return done, nil
}

func (r *Recovery) rewrite(ctx context.Context) (done fsm.Recovered, err error) {
	defer func() { err = errors.Join(err, fileowner.KeepIn(r.Dir)) }()
	state := fsm.New(fsm.Config{Logger: r.Logger})
	err = cluster.Recover(ctx, cluster.Recovery{
		DataDir: r.Dir, Keep: r.Keep, StateMachine: state, Registry: state, Logger: r.Logger,
		TakeSnapshot: func() cluster.Snapshot { return state.Snapshot() },
		Change: func() (err error) {
			done, err = state.Recover(fsm.Recovery{Keep: r.Keep, SkipAhead: r.SkipAhead})
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

// openAudit returns nil, which records nothing, without a file.
func (r *Recovery) openAudit() (*audit.Log, error) {
	if r.Audit == "" {
		return nil, nil
	}
	log, err := audit.Open(r.Audit, r.Logger)
	if err != nil {
		return nil, err
	}
	// The node goes on with it, under its own user.
	if err := fileowner.KeepOf(r.Audit, r.Dir); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return log, nil
}

func localUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
