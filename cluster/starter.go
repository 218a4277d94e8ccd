package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// starter finds the node's place in a cluster at its first start.
type starter struct {
	cfg    Config
	record *nodeRecord
	roster *roster
	log    *slog.Logger
	// done is closed when the node has ended.
	done <-chan struct{}
	// invitations hands an accepted invitation to standBy.
	invitations chan member.Invitation
	// problem is why there is no place yet; nil once there is one.
	problem atomic.Pointer[error]
}

// findPlace finds the node's place and records it: from then on it is this member of this
// cluster.
func (s *starter) findPlace(ctx context.Context) error {
	defer s.problem.Store(nil)
	place, err := s.seek(ctx)
	if err != nil {
		return err
	}
	s.log.Info("found a place in a cluster", "tag", place.Tag, "cluster", fmt.Sprintf("%x", place.ClusterID), "founder", place.Founder)
	return s.settle(place)
}

func (s *starter) settle(place member.Place) error {
	err := s.record.update(func(r *member.Record) bool {
		place.Apply(r)
		return true
	})
	s.roster.refresh()
	return err
}

// seek finds a cluster by the configuration's means.
func (s *starter) seek(ctx context.Context) (member.Place, error) {
	self := s.record.member()
	tell := func(err error) { s.problem.Store(&err) }
	switch {
	case len(s.cfg.PeerList) > 0:
		return member.FirstStart{Self: self, Peers: s.cfg.PeerList, Greeter: s.cfg.Peers, Logger: s.log, Tell: tell}.Run(ctx)
	case len(s.cfg.Join) > 0:
		return s.join(ctx, self, tell)
	case s.cfg.Standby:
		return s.standBy(ctx)
	case s.cfg.Watcher:
		return member.Place{}, errors.New("a watcher cannot be a cluster of one")
	}
	if self.Tag == "" {
		self.Tag = "A"
	}
	return member.Alone(self), nil
}

// join asks members to admit this node, and returns the error of each request.
func (s *starter) join(ctx context.Context, self *raftlogv1.Member, tell func(error)) (member.Place, error) {
	token := ""
	if s.cfg.JoinToken != nil {
		var err error
		if token, err = s.cfg.JoinToken(); err != nil {
			return member.Place{}, err
		}
	}
	return member.Join{Self: self, Addresses: s.cfg.Join, Token: token, Joiner: s.cfg.Peers, Logger: s.log, Tell: tell}.Run(ctx)
}

// standBy waits for an invitation that leads to a place.
func (s *starter) standBy(ctx context.Context) (member.Place, error) {
	s.log.Info("waiting for an invitation")
	for {
		select {
		case invitation := <-s.invitations:
			place, err := s.follow(ctx, invitation)
			if err == nil {
				return place, nil
			}
			s.log.Warn("an invitation failed", "through", invitation.Address, "error", err)
		case <-ctx.Done():
			return member.Place{}, fmt.Errorf("waiting for an invitation: %w", context.Cause(ctx))
		}
	}
}

// follow accepts an invitation and answers it. The place is recorded before the answer,
// so that the inviting node never learns of a member that then forgets it is one.
func (s *starter) follow(ctx context.Context, invitation member.Invitation) (member.Place, error) {
	ctx, cancel := context.WithTimeout(ctx, inviteTimeout)
	defer cancel()
	self := s.record.member()
	if invitation.Tag != "" {
		self.Tag = invitation.Tag
	}
	self.Watcher = self.Watcher || invitation.Watcher
	place, err := member.Join{Self: self, Addresses: []string{invitation.Address}, Token: invitation.Token, Joiner: s.cfg.Peers, Logger: s.log}.Run(ctx)
	if err == nil {
		err = s.settle(place)
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

// errNotWaiting means that an invited node does not wait for an invitation.
var errNotWaiting = errors.New("this node does not wait for an invitation: it was not started for that, or has a cluster already")

// invite lets a waiting node join and returns what it became.
func (s *starter) invite(ctx context.Context, req *peerv1.InviteRequest) (*peerv1.InviteResponse, error) {
	if !s.cfg.Standby || s.record.get().InCluster() {
		return nil, refusal(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, errNotWaiting.Error())
	}
	answer := make(chan member.InvitationAnswer, 1)
	invitation := member.Invitation{Address: req.GetAddress(), Tag: req.GetTag(), Watcher: req.GetWatcher(), Token: req.GetToken(), Answer: answer}
	select {
	case s.invitations <- invitation:
	case <-ctx.Done():
		return nil, outcome.NewNotApplied(outcome.Starting, errNotWaiting)
	case <-s.done:
		return nil, outcome.NewNotApplied(outcome.Stopping, nil)
	}
	select {
	case a := <-answer:
		return &peerv1.InviteResponse{Member: a.Member}, a.Err
	case <-ctx.Done():
		return nil, outcome.NewUnknown(outcome.Deadline, ctx.Err())
	}
}

// warnings returns why there is no place yet.
func (s *starter) warnings() []string {
	err := s.problem.Load()
	if err == nil {
		return nil
	}
	return []string{"no place in a cluster yet: " + strings.ReplaceAll((*err).Error(), "\n", "; ")}
}
