package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// defaultTokenTime is how long a token is valid by default, maxTokenTime the longest: a
	// forgotten token lets a node in for that long.
	defaultTokenTime = time.Hour
	maxTokenTime     = 30 * 24 * time.Hour
)

// CreateJoinToken makes a token with which one node can join, once. Only its hash is stored.
func (m *members) CreateJoinToken(ctx context.Context, req *idnodev1.CreateJoinTokenRequest) (*idnodev1.CreateJoinTokenResponse, error) {
	return call(ctx, m.calls, "CreateJoinToken", req, m.createJoinToken)
}

func (m *members) createJoinToken(ctx context.Context, req *idnodev1.CreateJoinTokenRequest) (*idnodev1.CreateJoinTokenResponse, error) {
	if req.GetTag() != "" {
		if err := checkNodeTag(req.GetTag()); err != nil {
			return nil, err
		}
	}
	valid := cmp.Or(req.GetValidFor().AsDuration(), defaultTokenTime)
	if valid < time.Second || valid > maxTokenTime {
		return nil, invalid(ReasonInvalidRequest, "valid_for", "a token is valid for one second to %s, not %s", maxTokenTime, valid)
	}
	if err := m.authorize(ctx, rights.Cluster, "", ""); err != nil {
		return nil, err
	}
	token, expires := rand.Text(), time.Now().Add(valid)
	hash := sha256.Sum256([]byte(token))
	record := recordedToken{Tag: req.GetTag(), Watcher: req.GetWatcher(), Expires: expires.UTC(), Token: shownToken(hash[:])}
	create := &raftlogv1.JoinTokenCreate{TokenHash: hash[:], Tag: req.GetTag(), Watcher: req.GetWatcher(), ExpiresUnixNano: expires.UnixNano()}
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
