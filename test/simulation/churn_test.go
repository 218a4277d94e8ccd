package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/test/history"
)

// churnLimit bounds one change of the membership, once nothing is in its way.
const churnLimit = 40 * time.Second

// churn changes the members of the cluster, one change at a time, amid the faults. A
// change that has begun is brought to its end, after the faults if need be.
type churn struct {
	world *world
	// ctx ends what has begun: with the world, mostly.
	ctx    context.Context
	random *rand.Rand
	client *client
	// joined is what the newest voter had applied when it began to vote.
	joined uint64
}

func newChurn(w *world) *churn {
	return &churn{world: w, ctx: w.ctx, random: w.plan.stream(2), client: newClient(w, w.plan.clients+4)}
}

// run makes changes until the faults end.
func (c *churn) run() {
	defer c.client.close()
	for c.pause(); !c.world.healing.Load(); c.pause() {
		members := c.world.machines()
		s := pick(c.random, members...)
		if !c.settled(s) {
			continue // Its own first start, or the cluster's, comes before its end.
		}
		switch {
		case len(members) <= 2, len(members) < 6 && c.random.IntN(3) == 0:
			if c.random.IntN(2) == 0 {
				c.joinByToken()
			} else {
				c.join(c.world.add(""))
			}
		case c.random.IntN(3) == 0:
			c.demote(s)
		case c.random.IntN(2) == 0:
			if c.othersKnow(s) {
				c.replace(s)
			}
		case len(members) > 3:
			c.remove(s)
			s.off.Store(true)
			s.current().kill(false)
		}
	}
}

func (c *churn) pause() {
	sleep(c.world.ctx, time.Duration(c.random.Int64N(int64(time.Second))))
}

// add puts a new machine into the world, which joins the cluster; with a token, if that is
// not empty.
func (w *world) add(token string) *server {
	w.mu.Lock()
	s := newServer(w, len(w.servers))
	s.join, s.nodeTag, s.token = true, "", token // It takes the next tag.
	w.servers = append(w.servers, s)
	w.mu.Unlock()
	w.running.Go(s.run)
	return s
}

// until does something again and again until it succeeds. The time counts from
// when nothing is in the way.
func (c *churn) until(what string, done func(ctx context.Context) bool) bool {
	var deadline time.Time
	for c.ctx.Err() == nil {
		if c.world.healing.Load() && deadline.IsZero() {
			deadline = time.Now().Add(churnLimit)
		}
		ctx, cancel := context.WithTimeout(c.ctx, 3*time.Second)
		ok := done(ctx)
		cancel()
		if ok {
			return true
		}
		if !deadline.IsZero() && time.Now().After(deadline) {
			c.world.found("%s took more than %v after the faults", what, churnLimit)
			return false
		}
		sleep(c.ctx, 200*time.Millisecond)
	}
	return false
}

// join waits until a new machine's node is a member that votes.
func (c *churn) join(s *server) {
	c.until("the joining of "+s.host, func(ctx context.Context) bool { return c.votes(ctx, s) })
	c.joined = max(c.joined, c.applied(s))
}

// joinByToken has two new machines ask to join with one token, and waits until the node of
// one votes. The other's is not let in.
func (c *churn) joinByToken() {
	token := c.createJoinToken()
	if token == "" {
		return
	}
	first, second := c.world.add(token), c.world.add(token)
	votes := c.until("the joining of "+first.host+" or "+second.host, func(ctx context.Context) bool {
		if c.votes(ctx, second) {
			first, second = second, first
		}
		return c.votes(ctx, first)
	})
	if votes {
		c.joined = max(c.joined, c.applied(first))
		second.left.Store(true)
		second.off.Store(true)
		second.current().kill(false)
	}
}

// createJoinToken makes a token; empty if the world ends first.
func (c *churn) createJoinToken() (token string) {
	c.until("a join token", func(ctx context.Context) bool {
		r, err := c.client.cluster(pick(c.random, c.world.machines()...)).CreateJoinToken(ctx, &idnodev1.CreateJoinTokenRequest{})
		token = r.GetToken()
		return err == nil
	})
	return token
}

// othersKnow says whether all other members know the newest voter. The Raft
// library refuses its vote to a candidate that is no voter in its own
// configuration, however old that is. So where one of four is lost for good, and
// of the others one was cut off since before the fourth became a voter, nobody may
// ever be elected: a gap that this program cannot close (seed 491).
func (c *churn) othersKnow(s *server) bool {
	for _, other := range c.world.machines() {
		if other != s && (!c.settled(other) || c.applied(other) < c.joined) {
			return false
		}
	}
	return true
}

// applied returns what a machine's node has applied; 0 if it does not say.
func (c *churn) applied(s *server) uint64 {
	ctx, cancel := context.WithTimeout(c.world.ctx, time.Second)
	defer cancel()
	r, err := c.client.cluster(s).GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err != nil {
		return 0
	}
	return r.GetAppliedIndex()
}

// settled says whether a machine's node is a member that votes.
func (c *churn) settled(s *server) bool {
	ctx, cancel := context.WithTimeout(c.world.ctx, time.Second)
	defer cancel()
	return c.votes(ctx, s)
}

func (c *churn) votes(ctx context.Context, s *server) bool {
	r, err := c.client.cluster(s).GetStatus(ctx, &idnodev1.GetStatusRequest{})
	role := r.GetSelf().GetRole()
	if err != nil || role != idnodev1.Role_ROLE_FOLLOWER && role != idnodev1.Role_ROLE_LEADER || r.GetAppliedIndex() == 0 {
		return false
	}
	s.setTag(r.GetSelf().GetTag())
	return true
}

// remove removes a machine's node from the cluster, through any other. The node
// may notice at any time, and end.
func (c *churn) remove(s *server) {
	s.left.Store(true)
	tag := s.tag()
	c.until("the removal of "+s.host, func(ctx context.Context) bool {
		_, err := c.client.cluster(pick(c.random, c.world.machines()...)).RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: tag})
		_, code := outcomeOf(err)
		return err == nil || code == "MEMBER_NOT_FOUND" || code == "NOT_A_MEMBER"
	})
}

// demote takes the vote of a machine's node, and gives it again, each through any. It ends
// when the node votes again as it knows itself, and knows of both: one that was cut off still
// takes itself for a voter, while two others are all that vote (seed 102860).
func (c *churn) demote(s *server) {
	tag := s.tag()
	for _, watcher := range []bool{true, false} {
		set := &idnodev1.SetWatcherRequest{Tag: tag, Watcher: proto.Bool(watcher)}
		c.until("the demotion or promotion of "+s.host, func(ctx context.Context) bool {
			_, err := c.client.cluster(pick(c.random, c.world.machines()...)).SetWatcher(ctx, set)
			return err == nil
		})
	}
	for _, other := range c.world.machines() {
		c.joined = max(c.joined, c.applied(other))
	}
	c.until("the vote of "+s.host, func(ctx context.Context) bool { return c.votes(ctx, s) && c.applied(s) >= c.joined })
}

// replace lets a machine lose its disk. Its node must not come back under its old
// tag, neither before that is removed nor after; then it joins under a new one.
func (c *churn) replace(s *server) {
	s.left.Store(true)
	s.wiped.Store(true)
	s.disk.wipe()
	s.current().kill(c.random.IntN(2) == 0)
	if c.random.IntN(2) == 0 {
		c.refused(s)
	}
	c.remove(s)
	c.refused(s)
	s.rejoin()
	s.left.Store(false)
	s.wiped.Store(false)
	c.join(s)
}

// refused waits until a node without its data ended because its tag, or its token, is
// another's.
func (c *churn) refused(s *server) {
	c.until("the refusal of "+s.host, func(ctx context.Context) bool {
		r, err := c.client.cluster(s).GetStatus(ctx, &idnodev1.GetStatusRequest{})
		if err == nil && r.GetSelf().GetTag() != "" && r.GetClusterId() != "" && r.GetAppliedIndex() > 0 {
			now := c.world.history.now()
			c.world.history.add(history.Op{Kind: history.Member, Tag: r.GetSelf().GetTag(), ID: r.GetSelf().GetId(), Call: now, Outcome: history.OK})
		}
		p := s.current()
		select {
		case <-p.gone:
			// With a token it asks to be let in again, but that let it in before.
			return errors.Is(p.failure(), member.ErrTagTaken) || s.joinToken() != "" && errors.Is(p.failure(), member.ErrJoinDenied)
		default:
			return status.Code(err) == 0 && r.GetAppliedIndex() > 0 // It serves, which the judge will notice.
		}
	})
}

// wipe has the next process find an empty disk.
func (d *disk) wipe() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = true
}

// joins says whether the machine's next process is to join a cluster.
func (s *server) joins() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.join
}

// joinToken is what the machine's next process joins with; empty for none.
func (s *server) joinToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// rejoin has the machine's next process join under a tag of its own.
func (s *server) rejoin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.join, s.nodeTag, s.token = true, "", ""
	s.ceilings.forget()
}

func (s *server) setTag(tag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodeTag = tag
}

// mayEnd says whether a node may end by itself for that reason: for its state only
// where that was changed.
func (s *server) mayEnd(err error) bool {
	if errors.Is(err, member.ErrDiverged) {
		return s.changed.Load()
	}
	if s.rewound.Load() && errors.Is(err, member.ErrSetBack) || s.joinToken() != "" && errors.Is(err, member.ErrJoinDenied) {
		return true
	}
	if s.empty.Load() && (errors.Is(err, member.ErrTagTaken) || errors.Is(err, config.ErrNoData)) {
		return true
	}
	return s.left.Load() && (errors.Is(err, member.ErrRemoved) || s.wiped.Load() && errors.Is(err, member.ErrTagTaken))
}
