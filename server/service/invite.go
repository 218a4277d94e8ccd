package service

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// defaultInvitation is how long a token is valid by default, maxInvitation the
	// longest: a forgotten token lets a node in for that long.
	defaultInvitation = time.Hour
	maxInvitation     = 30 * 24 * time.Hour
)

// InviteRequest says whom a token lets in.
type InviteRequest struct {
	// Tag is the tag that the node must have; empty for any.
	Tag string
	// Watcher says that it shall never vote.
	Watcher bool
	// For is how long the token is valid; 0 means one hour, 30 days at most.
	For time.Duration
}

// InviteResponse is a token.
type InviteResponse struct {
	// Token lets one node in. Nothing but its hash is kept.
	Token    string
	Expires  time.Time
	LogIndex uint64
}

// invitations let nodes in that ask for it by themselves.
type invitations struct {
	*calls
	*proposer
	*reader
	cluster Cluster
	// refusals bounds the lines about nodes that are not taken in: whoever has a node's
	// certificate can ask without end.
	refusals rate.Sometimes
}

// Invite makes a token with which one node can join by itself, once.
func (i *invitations) Invite(ctx context.Context, req InviteRequest) (InviteResponse, error) {
	return call(ctx, i.calls, "Invite", req, i.invite)
}

func (i *invitations) invite(ctx context.Context, req InviteRequest) (InviteResponse, error) {
	if req.Tag != "" {
		if err := checkNodeTag(req.Tag); err != nil {
			return InviteResponse{}, err
		}
	}
	if req.For == 0 {
		req.For = defaultInvitation
	}
	if req.For < time.Second || req.For > maxInvitation {
		return InviteResponse{}, invalid(ReasonInvalidRequest, "valid_for", "a token is valid for one second to %s, not %s", maxInvitation, req.For)
	}
	if err := i.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return InviteResponse{}, err
	}
	if err := i.needFormat(fsm.StrictFormat, forTokens); err != nil {
		return InviteResponse{}, err
	}
	res := InviteResponse{Token: rand.Text(), Expires: time.Now().Add(req.For)}
	hash := sha256.Sum256([]byte(res.Token))
	record := invited{Tag: req.Tag, Watcher: req.Watcher, Expires: res.Expires.UTC(), Token: shownToken(hash[:])}
	err := i.audited(ctx, audit.Record{Event: audit.EventInvite, Name: req.Tag, After: record}, func() (change, error) {
		result, err := i.propose(ctx, op.Envelope{}, &raftlogv1.MemberInvite{
			TokenHash: hash[:], Tag: req.Tag, Watcher: req.Watcher, ExpiresUnixNano: res.Expires.UnixNano(),
		}, false)
		res.LogIndex = result.GetLogIndex()
		return change{index: res.LogIndex, after: record}, err
	})
	return res, err
}

// invited is what the audit log has of a token, and of a newcomer that has one.
type invited struct {
	Tag     string    `json:"tag,omitempty"`
	Watcher bool      `json:"watcher,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	// Token is the beginning of the token's hash, by which the lines about one token
	// find each other.
	Token string `json:"token,omitempty"`
}

func shownToken(hash []byte) string { return hex.EncodeToString(hash[:min(8, len(hash))]) }

// Newcomer is a node that asks for membership by itself.
type Newcomer struct {
	// ID is its raw Raft id.
	ID []byte
	// Tag is the tag it asks for.
	Tag string
	// Token lets it in; empty if it has none.
	Token string
}

// Admit takes in a node that asks for it by itself, which take does, and records
// it: only the node asked knows of it. The newcomer needs the right to the
// cluster, or a token; the state judges again, in the order of the log. A node asks
// until it is in; what is asked of a member changes nothing and is not recorded.
func (i *invitations) Admit(ctx context.Context, n Newcomer, take func(tokenHash []byte, principal *string) (*raftlogv1.Member, error)) error {
	var hash []byte
	asks := invited{Tag: n.Tag}
	if n.Token != "" {
		sum := sha256.Sum256([]byte(n.Token))
		hash, asks.Token = sum[:], shownToken(sum[:])
	}
	member, err := i.judgeNewcomer(ctx, n, hash)
	if err != nil {
		i.refusals.Do(func() {
			who := i.caller(ctx)
			i.logger.WarnContext(ctx, "a node is not taken in", "tag", n.Tag, "principal", who.Principal, "address", who.Address, "error", err)
		})
		if r := op.RefusalOf(err); r.GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED {
			i.recordDenial(ctx, "Join", r.GetDetail())
		}
		return err
	}
	if member {
		_, err := take(nil, i.principal(ctx, false))
		return err
	}
	var failed error // In the words that the newcomer understands.
	err = i.audited(ctx, audit.Record{Event: audit.EventJoin, Name: n.Tag, After: asks}, func() (change, error) {
		var m *raftlogv1.Member
		err := i.named(ctx, false, false, func(principal *string) error {
			m, failed = take(hash, principal)
			return failed
		})
		if err != nil {
			return change{}, err
		}
		return change{after: memberOf(m, i.cluster.Status())}, nil
	})
	return cmp.Or(failed, err)
}

// judgeNewcomer says whether a node is a member already, and refuses one that is not
// and has neither the right to the cluster nor a token that there is. So strangers do
// not fill the audit log. It refuses removed members, and callers that say a member's id,
// as the state does: so they write nothing to the log.
//
// A refusal ends the node that asks. So it is never that of a state that is behind:
// the node may have been let in, its token made, or the roles set through another.
func (i *invitations) judgeNewcomer(ctx context.Context, n Newcomer, hash []byte) (member bool, err error) {
	judge := func() (bool, error) {
		for _, m := range i.state.Members() {
			if bytes.Equal(m.GetId(), n.ID) {
				return true, refusedAs(fsm.JoinsAgain(m, n.Tag))
			}
		}
		return false, i.checkNewcomer(ctx, n, hash)
	}
	if member, err := judge(); err == nil {
		return member, nil
	}
	if _, err := i.settle(ctx, Linearizable); err != nil {
		return false, err
	}
	return judge()
}

// checkNewcomer is judgeNewcomer for a node that is no member.
func (i *invitations) checkNewcomer(ctx context.Context, n Newcomer, hash []byte) error {
	strict := i.state.Format() >= fsm.StrictFormat
	switch {
	case hash == nil:
		if err := i.authorize(ctx, rights.Cluster, "", ""); err != nil {
			return notAdmitted(raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED, fmt.Sprintf("node %s has no token to join by, and %v", n.Tag, err))
		}
		return nil
	case !strict:
		return notAdmitted(raftlogv1.RefusalReason_REFUSAL_REASON_FORMAT_UNSUPPORTED, tooOld(forTokens))
	}
	return refusedAs(i.state.Invited(hash, n.Tag, time.Now()))
}

// notAdmitted is a refusal as the state would word it, so that the newcomer need not
// tell the two apart.
func notAdmitted(reason raftlogv1.RefusalReason, detail string) error {
	return refusedAs(&raftlogv1.Refusal{Reason: reason, Detail: detail})
}

// refusedAs is the error of a refusal; nil for none.
func refusedAs(refusal *raftlogv1.Refusal) error {
	if refusal == nil {
		return nil
	}
	return &op.RefusedError{Refusal: refusal}
}
