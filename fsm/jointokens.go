package fsm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"maps"
	"math"
	"slices"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// maxJoinTokens bounds the tokens. Each lets one node in, so it is far above any use.
const maxJoinTokens = 1_000

// tokenHash is the SHA-256 of a token. The token itself is never in the log: a reader of
// the log, or of a snapshot, cannot join with it.
type tokenHash [sha256.Size]byte

// joinTokenStore has the tokens that each let one node become a member, once. A token is immutable.
type joinTokenStore struct {
	byHash map[tokenHash]*raftlogv1.JoinTokenCreate
	hash   statehash.Sum
}

func newJoinTokens() joinTokenStore {
	return joinTokenStore{byHash: map[tokenHash]*raftlogv1.JoinTokenCreate{}}
}

// joinTokenCreate records a token. A known token is unchanged.
func (c *contents) joinTokenCreate(dst []byte, now moment, _ op.Operation, create *raftlogv1.JoinTokenCreate) ([]byte, *refusal) {
	if len(create.GetTokenHash()) != len(tokenHash{}) {
		return dst, invalid("token_hash", "has %d bytes, must have %d", len(create.GetTokenHash()), len(tokenHash{}))
	}
	if create.GetTag() != "" {
		if err := checkTag(create.GetTag()); err != nil {
			return dst, err
		}
	}
	if create.GetValidNanos() <= 0 || create.GetValidNanos() > math.MaxInt64-now.unixNano {
		return dst, invalid("valid_nanos", "is not a valid duration")
	}
	c.joinTokens.dropExpired(now.unixNano)
	if c.joinTokens.byHash[tokenHash(create.GetTokenHash())] != nil {
		return dst, nil
	}
	if len(c.joinTokens.byHash) >= maxJoinTokens {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA, "", "there are %d tokens already", maxJoinTokens)
	}
	c.joinTokens.put(&raftlogv1.JoinTokenCreate{
		TokenHash: create.GetTokenHash(), Tag: create.GetTag(), Watcher: create.GetWatcher(),
		ExpiresUnixNano: now.unixNano + create.GetValidNanos(),
	})
	return dst, nil
}

// checkAdd refuses a new node without a right: with roles it needs the right to the cluster, or
// a token, which then decides about its rights.
func checkAdd(roles *roleStore, tokens *joinTokenStore, now moment, o *op.Operation, add *raftlogv1.MemberAdd) *refusal {
	hash := add.GetTokenHash()
	switch {
	case len(hash) > 0:
		return tokens.apply(hash, add.GetMember(), now.unixNano)
	case !roles.set():
		return nil
	case o.HasPrincipal && allows(roles.table, o, rights.Cluster, nil, nil):
		return nil
	}
	return joinDenied("no role gives %.200q the right cluster, and it has no token", o.Principal)
}

// apply sets the new node's properties to those of its token.
func (s *joinTokenStore) apply(hash []byte, m *raftlogv1.Member, unixNano int64) *refusal {
	t, err := s.find(hash, m.GetTag(), unixNano)
	if err != nil {
		return err
	}
	m.Tag = cmp.Or(m.GetTag(), t.GetTag())
	m.Watcher = m.GetWatcher() || t.GetWatcher()
	return nil
}

// find returns the token with this hash for a node with a tag, which may be empty.
func (s *joinTokenStore) find(hash []byte, tag string, unixNano int64) (*raftlogv1.JoinTokenCreate, *refusal) {
	if len(hash) != len(tokenHash{}) {
		return nil, invalid("token_hash", "has %d bytes, must have %d", len(hash), len(tokenHash{}))
	}
	t := s.byHash[tokenHash(hash)]
	switch {
	case t == nil:
		return t, joinDenied("there is no such token, or a node has joined by it")
	case t.GetExpiresUnixNano() <= unixNano:
		return t, joinDenied("the token is no longer valid")
	case t.GetTag() != "" && tag != "" && tag != t.GetTag():
		return t, joinDenied("the token is for node %s", t.GetTag())
	}
	return t, nil
}

func joinDenied(format string, args ...any) *refusal {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED, "", format, args...)
}

// CheckJoinToken returns nil if a node with a tag, which may be empty, may become a member with
// the token of this hash at the time of the newest entry, and otherwise the state's refusal.
func (s *State) CheckJoinToken(hash []byte, tag string) *raftlogv1.Refusal {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, err := s.contents.joinTokens.find(hash, tag, s.contents.clock)
	return err.message()
}

func (s *joinTokenStore) put(t *raftlogv1.JoinTokenCreate) {
	s.byHash[tokenHash(t.GetTokenHash())] = t
	s.hash.Add(hashJoinToken(t))
}

func (s *joinTokenStore) drop(hash tokenHash) {
	if t := s.byHash[hash]; t != nil {
		delete(s.byHash, hash)
		s.hash.Remove(hashJoinToken(t))
	}
}

func (s *joinTokenStore) dropExpired(unixNano int64) {
	for hash, t := range s.byHash {
		if t.GetExpiresUnixNano() <= unixNano {
			s.drop(hash)
		}
	}
}

func (s *joinTokenStore) records() records {
	sorted := slices.SortedFunc(maps.Values(s.byHash), func(a, b *raftlogv1.JoinTokenCreate) int {
		return bytes.Compare(a.GetTokenHash(), b.GetTokenHash())
	})
	return recordsOf(sorted, func(t *raftlogv1.JoinTokenCreate) records {
		return these(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_JoinToken{JoinToken: t}})
	})
}

func (s *joinTokenStore) restore(m *raftlogv1.JoinTokenCreate) error {
	if len(m.GetTokenHash()) != len(tokenHash{}) || m.GetTag() != "" && checkTag(m.GetTag()) != nil || len(s.byHash) >= maxJoinTokens {
		return corrupt("a join token with a bad hash or tag, or one too many")
	}
	if s.byHash[tokenHash(m.GetTokenHash())] != nil {
		return corrupt("a join token twice")
	}
	s.put(m)
	return nil
}

func hashJoinToken(t *raftlogv1.JoinTokenCreate) uint64 {
	var s statehash.Space
	return s.Begin(recordJoinToken).Data(t.GetTokenHash()).Text(t.GetTag()).Flag(t.GetWatcher()).Number(uint64(t.GetExpiresUnixNano())).Hash()
}
