package service

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// defaultTokenTime is how long a token is valid by default, maxTokenTime the longest: a
	// forgotten token lets a node in for that long.
	defaultTokenTime = time.Hour
	maxTokenTime     = 30 * 24 * time.Hour
)

// CreateJoinTokenRequest says whom a token lets in.
type CreateJoinTokenRequest struct {
	// Tag is the tag that the node must have; empty for any.
	Tag string
	// Watcher says that it shall never vote.
	Watcher bool
	// For is how long the token is valid; 0 means one hour, 30 days at most.
	For time.Duration
}

// CreateJoinTokenResponse is a token.
type CreateJoinTokenResponse struct {
	// Token lets one node in. Nothing but its hash is kept.
	Token    string
	Expires  time.Time
	LogIndex uint64
}

// CreateJoinToken makes a token with which one node can join by itself, once.
func (m *members) CreateJoinToken(ctx context.Context, req CreateJoinTokenRequest) (CreateJoinTokenResponse, error) {
	return call(ctx, m.calls, "CreateJoinToken", req, m.createJoinToken)
}

func (m *members) createJoinToken(ctx context.Context, req CreateJoinTokenRequest) (CreateJoinTokenResponse, error) {
	if req.Tag != "" {
		if err := checkNodeTag(req.Tag); err != nil {
			return CreateJoinTokenResponse{}, err
		}
	}
	if req.For == 0 {
		req.For = defaultTokenTime
	}
	if req.For < time.Second || req.For > maxTokenTime {
		return CreateJoinTokenResponse{}, invalid(ReasonInvalidRequest, "valid_for", "a token is valid for one second to %s, not %s", maxTokenTime, req.For)
	}
	if err := m.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return CreateJoinTokenResponse{}, err
	}
	res := CreateJoinTokenResponse{Token: rand.Text(), Expires: time.Now().Add(req.For)}
	hash := sha256.Sum256([]byte(res.Token))
	record := recordedToken{Tag: req.Tag, Watcher: req.Watcher, Expires: res.Expires.UTC(), Token: shownToken(hash[:])}
	err := m.audited(ctx, audit.Record{Event: audit.EventJoinToken, Name: req.Tag, After: record}, func() (change, error) {
		result, err := m.propose(ctx, op.Envelope{}, &raftlogv1.JoinTokenCreate{
			TokenHash: hash[:], Tag: req.Tag, Watcher: req.Watcher, ExpiresUnixNano: res.Expires.UnixNano(),
		}, false)
		res.LogIndex = result.GetLogIndex()
		return change{index: res.LogIndex, after: record}, err
	})
	return res, err
}

// recordedToken is what the audit log has of a token, and of a newcomer that has one.
type recordedToken struct {
	Tag     string    `json:"tag,omitempty"`
	Watcher bool      `json:"watcher,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	// Token is the beginning of the token's hash, by which the lines about one token
	// find each other.
	Token string `json:"token,omitempty"`
}

func shownToken(hash []byte) string { return hex.EncodeToString(hash[:min(8, len(hash))]) }
