package fsm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"time"

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

// joinToken lets one node become a member, once. It is never changed.
type joinToken struct {
	// tag is the tag the node must have; empty for any.
	tag string
	// watcher says that it shall never vote.
	watcher bool
	// expires is compared with the time in entries.
	expires int64
}

type joinTokenStore struct {
	byHash map[tokenHash]joinToken
	hash   statehash.Sum
}

func newJoinTokens() joinTokenStore { return joinTokenStore{byHash: map[tokenHash]joinToken{}} }

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
	if create.GetExpiresUnixNano() <= now.unixNano {
		return dst, invalid("expires_unix_nano", "is in the past")
	}
	c.joinTokens.dropExpired(now.unixNano)
	hash := tokenHash(create.GetTokenHash())
	if _, known := c.joinTokens.byHash[hash]; known {
		return dst, nil
	}
	if len(c.joinTokens.byHash) >= maxJoinTokens {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA, "", "there are %d tokens already", maxJoinTokens)
	}
	c.joinTokens.put(hash, joinToken{tag: create.GetTag(), watcher: create.GetWatcher(), expires: create.GetExpiresUnixNano()})
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
	case o.Named && allows(roles.table, o, rights.Cluster, nil, nil):
		return nil
	}
	return joinDenied("no role gives %.200q the right cluster, and it has no token", o.Principal)
}

// apply gives a new node the properties of its token.
func (s *joinTokenStore) apply(hash []byte, m *raftlogv1.Member, unixNano int64) *refusal {
	t, err := s.find(hash, m.GetTag(), unixNano)
	if err != nil {
		return err
	}
	m.Tag = cmp.Or(m.GetTag(), t.tag)
	m.Watcher = m.GetWatcher() || t.watcher
	return nil
}

// find returns the token with this hash for a node with a tag, which may be empty.
func (s *joinTokenStore) find(hash []byte, tag string, unixNano int64) (joinToken, *refusal) {
	if len(hash) != len(tokenHash{}) {
		return joinToken{}, invalid("token_hash", "has %d bytes, must have %d", len(hash), len(tokenHash{}))
	}
	t, ok := s.byHash[tokenHash(hash)]
	switch {
	case !ok:
		return t, joinDenied("there is no such token, or a node has joined by it")
	case t.expires <= unixNano:
		return t, joinDenied("the token is no longer valid")
	case t.tag != "" && tag != "" && tag != t.tag:
		return t, joinDenied("the token is for node %s", t.tag)
	}
	return t, nil
}

func joinDenied(format string, args ...any) *refusal {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED, "", format, args...)
}

// CheckJoinToken returns nil if a node with a tag, which may be empty, may become a member with
// the token of this hash now, and otherwise the state's refusal.
func (s *State) CheckJoinToken(hash []byte, tag string, now time.Time) *raftlogv1.Refusal {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, err := s.contents.joinTokens.find(hash, tag, now.UnixNano())
	return err.message()
}

func (s *joinTokenStore) put(hash tokenHash, t joinToken) {
	s.byHash[hash] = t
	s.hash.Add(hashJoinToken(hash, t))
}

func (s *joinTokenStore) drop(hash tokenHash) {
	if t, ok := s.byHash[hash]; ok {
		delete(s.byHash, hash)
		s.hash.Remove(hashJoinToken(hash, t))
	}
}

func (s *joinTokenStore) dropExpired(unixNano int64) {
	for hash, t := range s.byHash {
		if t.expires <= unixNano {
			s.drop(hash)
		}
	}
}

func (s *joinTokenStore) records() []*raftlogv1.JoinTokenCreate {
	var records []*raftlogv1.JoinTokenCreate
	for _, hash := range slices.SortedFunc(maps.Keys(s.byHash), func(a, b tokenHash) int { return bytes.Compare(a[:], b[:]) }) {
		t := s.byHash[hash]
		records = append(records, &raftlogv1.JoinTokenCreate{TokenHash: hash[:], Tag: t.tag, Watcher: t.watcher, ExpiresUnixNano: t.expires})
	}
	return records
}

func (s *joinTokenStore) restore(m *raftlogv1.JoinTokenCreate) error {
	if len(m.GetTokenHash()) != len(tokenHash{}) || m.GetTag() != "" && checkTag(m.GetTag()) != nil || len(s.byHash) >= maxJoinTokens {
		return corrupt("a join token with a bad hash or tag, or one too many")
	}
	hash := tokenHash(m.GetTokenHash())
	if _, twice := s.byHash[hash]; twice {
		return corrupt("a join token twice")
	}
	s.put(hash, joinToken{tag: m.GetTag(), watcher: m.GetWatcher(), expires: m.GetExpiresUnixNano()})
	return nil
}

func hashJoinToken(hash tokenHash, t joinToken) uint64 {
	var s statehash.Space
	return s.Begin(recordJoinToken).Data(hash[:]).Text(t.tag).Flag(t.watcher).Number(uint64(t.expires)).Hash()
}
