package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/transport"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// errStarted means that Start was called twice.
var errStarted = errors.New("cluster: the node was started already")

// Start finds the node's place in a cluster, unless its data directory has it, and starts
// Raft. It returns when Raft runs, which is before there is a leader; finding a place may
// take until other nodes are up, or ctx ends. After an error the node must be shut down.
// The Raft port is opened only when the place is settled.
func (n *Node) Start(ctx context.Context) error {
	err := errStarted
	n.startOnce.Do(func() { err = n.start(ctx) })
	return err
}

func (n *Node) start(ctx context.Context) error {
	n.starting.Lock()
	defer n.starting.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.lifecycle.ctx, cancel)()
	if !n.record.get().InCluster() {
		if err := n.findPlace(ctx); err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
	}
	if err := n.compareList(ctx); err != nil {
		return err
	}
	e, err := n.startEngine()
	if err != nil {
		return err
	}
	n.up.Store(e)
	context.AfterFunc(n.lifecycle.ctx, e.silence)
	return n.lifecycle.failure()
}

// silence cuts a failed node off from the others: from then on it neither votes nor
// leads, however long its own shutdown takes. A leader with a hung disk would otherwise
// stay leader until its process is gone. A removed node is not cut off.
func (e *engine) silence() {
	if err := e.node.lifecycle.failure(); err != nil && !errors.Is(err, member.ErrRemoved) {
		_ = e.transport.Close() // Shutdown closes it again, and reports the error.
	}
}

// findPlace finds the node's place and records it: from then on it is this member of this
// cluster.
func (n *Node) findPlace(ctx context.Context) error {
	defer n.warnings.place.Store(nil)
	place, err := n.seek(ctx)
	if err != nil {
		return err
	}
	n.log.Info("found a place in a cluster", "tag", place.Tag, "cluster", fmt.Sprintf("%x", place.ClusterID), "founder", place.Founder)
	return n.settle(place)
}

func (n *Node) settle(place member.Place) error {
	err := n.record.update(func(r *member.Record) bool {
		place.Apply(r)
		return true
	})
	n.roster.refresh()
	return err
}

// seek finds a cluster by the configuration's means.
func (n *Node) seek(ctx context.Context) (member.Place, error) {
	self := n.member()
	tell := func(err error) { n.warnings.place.Store(&err) }
	switch {
	case len(n.cfg.PeerList) > 0:
		return member.FirstStart{Self: self, Peers: n.cfg.PeerList, Greeter: n.cfg.Peers, Logger: n.log, Tell: tell}.Run(ctx)
	case len(n.cfg.Join) > 0:
		return n.join(ctx, self, tell)
	case n.cfg.Standby:
		return n.standBy(ctx)
	case n.cfg.Watcher:
		return member.Place{}, errors.New("a watcher cannot be a cluster of one")
	}
	if self.Tag == "" {
		self.Tag = "A"
	}
	return member.Alone(self), nil
}

// join asks members to admit this node, and returns the error of each request.
func (n *Node) join(ctx context.Context, self *raftlogv1.Member, tell func(error)) (member.Place, error) {
	token := ""
	if n.cfg.JoinToken != nil {
		var err error
		if token, err = n.cfg.JoinToken(); err != nil {
			return member.Place{}, err
		}
	}
	return member.Join{Self: self, Addresses: n.cfg.Join, Token: token, Joiner: n.cfg.Peers, Logger: n.log, Tell: tell}.Run(ctx)
}

// standBy waits for an invitation that leads to a place.
func (n *Node) standBy(ctx context.Context) (member.Place, error) {
	n.log.Info("waiting for an invitation")
	for {
		select {
		case invitation := <-n.invitations:
			place, err := n.follow(ctx, invitation)
			if err == nil {
				return place, nil
			}
			n.log.Warn("an invitation failed", "through", invitation.Address, "error", err)
		case <-ctx.Done():
			return member.Place{}, fmt.Errorf("waiting for an invitation: %w", context.Cause(ctx))
		}
	}
}

// follow accepts an invitation and answers it. The place is recorded before the answer,
// so that the inviting node never learns of a member that then forgets it is one.
func (n *Node) follow(ctx context.Context, invitation member.Invitation) (member.Place, error) {
	ctx, cancel := context.WithTimeout(ctx, inviteTimeout)
	defer cancel()
	self := n.member()
	if invitation.Tag != "" {
		self.Tag = invitation.Tag
	}
	self.Watcher = self.Watcher || invitation.Watcher
	place, err := member.Join{Self: self, Addresses: []string{invitation.Address}, Token: invitation.Token, Joiner: n.cfg.Peers, Logger: n.log}.Run(ctx)
	if err == nil {
		err = n.settle(place)
	}
	answer := member.InvitationAnswer{Err: err}
	for _, m := range place.Members {
		if m.GetTag() == place.Tag {
			answer.Member = m
		}
	}
	invitation.Answer <- answer
	return place, err
}

// member returns this node as it introduces itself.
func (n *Node) member() *raftlogv1.Member {
	r := n.record.get()
	m := &raftlogv1.Member{
		Id: r.ID.Bytes(), Tag: n.Self().Tag,
		GrpcAddress: n.cfg.Advertise.GRPC, RaftAddress: n.cfg.Advertise.Raft, HttpAddress: n.cfg.Advertise.HTTP,
		Watcher: n.cfg.Watcher, LogFormat: n.cfg.LogFormat,
	}
	// The cluster's values count: a flag changes neither later.
	for _, known := range r.Members {
		if string(known.GetId()) == string(m.GetId()) {
			m.Watcher, m.Voter = known.GetWatcher(), known.GetVoter()
		}
	}
	return m
}

// serverOf returns a member as Raft's first configuration names it.
func serverOf(m *raftlogv1.Member) raft.Server {
	id := member.ServerID(m.GetId())
	s := raft.Server{ID: id, Address: transport.Address(id), Suffrage: raft.Voter}
	if m.GetWatcher() {
		s.Suffrage = raft.Nonvoter
	}
	return s
}
