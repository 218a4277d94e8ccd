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

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// AddMember makes a member of a node that asks to join, by calling add, and records it. Only the
// node asked can record it. The newcomer needs the right to the cluster, or a token; the state
// checks both again when it applies the change. prove checks first that the node is at its address.
// A node repeats its request until it is a member; a repeated request changes nothing and is not
// recorded.
func (m *members) AddMember(ctx context.Context, req *peerv1.JoinRequest, prove func() error,
	add func(tokenHash []byte, principal *string) (*raftlogv1.Member, error),
) error {
	var hash []byte
	n := req.GetMember()
	asks := recordedToken{Tag: n.GetTag()}
	if req.GetToken() != "" {
		sum := sha256.Sum256([]byte(req.GetToken()))
		hash, asks.Token = sum[:], shownToken(sum[:])
	}
	member, err := m.judgeNewcomer(ctx, n, hash)
	if err == nil && !member {
		err = prove()
	}
	if err != nil {
		m.refusals.Do(func() {
			who := m.Caller(ctx)
			m.logger.WarnContext(ctx, "a node that asks to join is refused", "tag", n.GetTag(), "principal", who.Principal, "address",
				who.Address, "error", err)
		})
		if r := op.RefusalOf(err); r.GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED {
			m.RecordDenial(ctx, "Join", r.GetDetail())
		}
		return err
	}
	if member {
		_, err := add(nil, m.principal(ctx, false))
		return err
	}
	var failed error // In the words that the newcomer understands.
	err = m.Audited(ctx, audit.Record{Event: audit.EventAddMember, Name: n.GetTag(), After: asks}, func() (admission.Change, error) {
		var added *raftlogv1.Member
		err := m.proposeAsCaller(ctx, false, false, func(principal *string) error {
			added, failed = add(hash, principal)
			return failed
		})
		if err != nil {
			return admission.Change{}, err
		}
		return admission.Change{After: memberOf(added, m.cluster.Status())}, nil
	})
	return cmp.Or(failed, err)
}

// judgeNewcomer reports whether a node is a member already. It refuses a node that is not, and
// has neither the right to the cluster nor a valid token, so that strangers do not fill the
// audit log. Like the state it refuses removed members, callers that use a member's id, and those that
// want a member's tag, so that they write nothing to the log.
//
// A refusal ends the node that asks. So it never comes from a state that is behind: the node may
// have been added, its token made, or the roles set through another node.
func (m *members) judgeNewcomer(ctx context.Context, n *raftlogv1.Member, hash []byte) (member bool, err error) {
	judge := func() (bool, error) {
		var taken *raftlogv1.Refusal
		for _, known := range m.state.Members() {
			if bytes.Equal(known.GetId(), n.GetId()) {
				return true, refusedAs(fsm.JoinsAgain(known, n.GetTag()))
			}
			if known.GetTag() == n.GetTag() {
				taken = fsm.TagTaken(known)
			}
		}
		if err := m.checkNewcomer(ctx, n, hash); err != nil {
			return false, err
		}
		return false, refusedAs(taken)
	}
	if member, err := judge(); err == nil {
		return member, nil
	}
	within, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if _, err := m.settle(within, idnodev1.Consistency_CONSISTENCY_LINEARIZABLE); err != nil {
		return false, err
	}
	return judge()
}

// checkNewcomer is judgeNewcomer for a node that is no member.
func (m *members) checkNewcomer(ctx context.Context, n *raftlogv1.Member, hash []byte) error {
	if hash != nil {
		return refusedAs(m.state.CheckJoinToken(hash, n.GetTag()))
	}
	if err := m.Authorize(ctx, rights.Cluster, "", ""); err != nil {
		// As the state would word it, so that the newcomer need not tell the two apart.
		return refusedAs(&raftlogv1.Refusal{
			Reason: raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED,
			Detail: fmt.Sprintf("node %s has no token to join by, and %v", n.GetTag(), err),
		})
	}
	return nil
}

// refusedAs is the error of a refusal; nil for none.
func refusedAs(refusal *raftlogv1.Refusal) error {
	if refusal == nil {
		return nil
	}
	return &op.RefusedError{Refusal: refusal}
}

const (
	// defaultTokenTime is how long a token is valid by default, maxTokenTime the longest: a
	// forgotten token lets a node in for that long.
	defaultTokenTime = time.Hour
	maxTokenTime     = 30 * 24 * time.Hour
)

// CreateJoinToken makes a token with which one node can join, once. Only its hash is stored.
func (m *members) CreateJoinToken(ctx context.Context, req *idnodev1.CreateJoinTokenRequest) (*idnodev1.CreateJoinTokenResponse, error) {
	return admission.Call(ctx, m.Control, "CreateJoinToken", req, m.createJoinToken)
}

func (m *members) createJoinToken(ctx context.Context, req *idnodev1.CreateJoinTokenRequest) (*idnodev1.CreateJoinTokenResponse, error) {
	if req.GetTag() != "" {
		if err := checkNodeTag(req.GetTag()); err != nil {
			return nil, err
		}
	}
	valid := cmp.Or(req.GetValidFor().AsDuration(), defaultTokenTime)
	if valid < time.Second || valid > maxTokenTime {
		return nil, apierror.Invalid(apierror.ReasonInvalidRequest, "valid_for", "a token is valid for one second to %s, not %s", maxTokenTime,
			valid)
	}
	if err := m.Authorize(ctx, rights.Cluster, "", ""); err != nil {
		return nil, err
	}
	token, expires := rand.Text(), time.Now().Add(valid)
	hash := sha256.Sum256([]byte(token))
	record := recordedToken{Tag: req.GetTag(), Watcher: req.GetWatcher(), Expires: expires.UTC(), Token: shownToken(hash[:])}
	create := &raftlogv1.JoinTokenCreate{TokenHash: hash[:], Tag: req.GetTag(), Watcher: req.GetWatcher(), ValidNanos: int64(valid)}
	created, err := m.proposeAudited(ctx, audit.Record{Event: audit.EventJoinToken, Name: req.GetTag(), After: record},
		op.Envelope{}, create, false, thenIs(record))
	return &idnodev1.CreateJoinTokenResponse{Token: token, ExpiresAt: timestamppb.New(expires), LogIndex: created.GetLogIndex()}, err
}

// recordedToken is the audit log's record of a token, and of a newcomer with a token.
type recordedToken struct {
	Tag     string    `json:"tag,omitempty"`
	Watcher bool      `json:"watcher,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	// Token is the beginning of the token's hash, which relates the lines about a token.
	Token string `json:"token,omitempty"`
}

func shownToken(hash []byte) string { return hex.EncodeToString(hash[:min(8, len(hash))]) }
