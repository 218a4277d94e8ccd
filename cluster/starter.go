package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/idnode/idnode/cluster/member"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// starter finds the node's place in a cluster at its first start.
type starter struct {
	cfg    Config
	record *nodeRecord
	roster *roster
	log    *slog.Logger
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
	if id := fmt.Sprintf("%x", place.ClusterID); s.cfg.ClusterID != "" && id != s.cfg.ClusterID {
		return fmt.Errorf("%w: the settings have the cluster-id %s, and the node has joined cluster %s: remove it there ('idnode cluster remove %s')",
			member.ErrOtherCluster, s.cfg.ClusterID, id, place.Tag)
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
	case s.cfg.Watcher:
		return member.Place{}, errors.New("a watcher cannot be a cluster of one")
	}
	if self.Tag == "" {
		self.Tag = "A"
	}
	return member.Alone(self), nil
}

// join asks members to add this node, and returns the error of each request.
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

// warnings returns why there is no place yet.
func (s *starter) warnings() []string {
	err := s.problem.Load()
	if err == nil {
		return nil
	}
	return []string{"no place in a cluster yet: " + strings.ReplaceAll((*err).Error(), "\n", "; ")}
}
