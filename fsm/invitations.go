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

// maxInvitations bounds the invitations. Each admits one node, so it is far above any
// use.
const maxInvitations = 1_000

// tokenHash is the SHA-256 of a token. The token itself is never in the log: a reader of
// the log, or of a snapshot, cannot join with it.
type tokenHash [sha256.Size]byte

// invitation lets one node become a member, once. It is never changed.
type invitation struct {
	// tag is the tag the node must have; empty for any.
	tag string
	// watcher says that it shall never vote.
	watcher bool
	// expires is compared with the time in entries.
	expires int64
}

// invitations are the tokens by which nodes may become members.
type invitations struct {
	byToken map[tokenHash]invitation
	hash    statehash.Sum
}

func newInvitations() invitations { return invitations{byToken: map[tokenHash]invitation{}} }

// memberInvite records a token. A known one stays as it is.
func (c *contents) memberInvite(dst []byte, now moment, o *op.Operation) ([]byte, *refusal) {
	var invite raftlogv1.MemberInvite
	if err := decodePayload(o, &invite); err != nil {
		return dst, err
	}
	if len(invite.GetTokenHash()) != len(tokenHash{}) {
		return dst, invalid("token_hash", "has %d bytes, must have %d", len(invite.GetTokenHash()), len(tokenHash{}))
	}
	if invite.GetTag() != "" {
		if err := checkTag(invite.GetTag()); err != nil {
			return dst, err
		}
	}
	if invite.GetExpiresUnixNano() <= now.unixNano {
		return dst, invalid("expires_unix_nano", "is in the past")
	}
	c.invitations.dropExpired(now.unixNano)
	hash := tokenHash(invite.GetTokenHash())
	if _, known := c.invitations.byToken[hash]; known {
		return dst, nil
	}
	if len(c.invitations.byToken) >= maxInvitations {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA, "", "there are %d invitations already", maxInvitations)
	}
	c.invitations.put(hash, invitation{tag: invite.GetTag(), watcher: invite.GetWatcher(), expires: invite.GetExpiresUnixNano()})
	return dst, nil
}

// admit refuses a new node without a right: with roles it needs the right to the cluster,
// or a token, which then decides what it becomes.
func admit(roles *roles, invitations *invitations, now moment, o *op.Operation, join *raftlogv1.MemberJoin) *refusal {
	hash := join.GetTokenHash()
	switch {
	case len(hash) > 0:
		return invitations.admitByToken(hash, join.GetMember(), now.unixNano)
	case !roles.set():
		return nil
	case o.Named && allows(roles.table, o, rights.Cluster, nil, nil, true):
		return nil
	}
	return notAdmitted("no role gives %.200q the right cluster, and it has no token", o.Principal)
}

// admitByToken gives a new node the properties of its token.
func (s *invitations) admitByToken(hash []byte, m *raftlogv1.Member, unixNano int64) *refusal {
	i, err := s.find(hash, m.GetTag(), unixNano)
	if err != nil {
		return err
	}
	m.Tag = cmp.Or(m.GetTag(), i.tag)
	m.Watcher = m.GetWatcher() || i.watcher
	return nil
}

// find returns the invitation of a node with a tag, empty for one without, by the
// hash of its token.
func (s *invitations) find(hash []byte, tag string, unixNano int64) (invitation, *refusal) {
	if len(hash) != len(tokenHash{}) {
		return invitation{}, invalid("token_hash", "has %d bytes, must have %d", len(hash), len(tokenHash{}))
	}
	i, ok := s.byToken[tokenHash(hash)]
	switch {
	case !ok:
		return i, notAdmitted("there is no such token, or a node has joined by it")
	case i.expires <= unixNano:
		return i, notAdmitted("the token is no longer valid")
	case i.tag != "" && tag != "" && tag != i.tag:
		return i, notAdmitted("the token is for node %s", i.tag)
	}
	return i, nil
}

func notAdmitted(format string, args ...any) *refusal {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED, "", format, args...)
}

// Invited returns nil if a node with a tag, empty for one without, may become a member
// with the token of this hash now, and otherwise the state's refusal.
func (s *State) Invited(hash []byte, tag string, now time.Time) *raftlogv1.Refusal {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, err := s.contents.invitations.find(hash, tag, now.UnixNano())
	return err.message()
}

// put stores an invitation.
func (s *invitations) put(hash tokenHash, i invitation) {
	s.byToken[hash] = i
	s.hash.Add(hashInvitation(hash, i))
}

// drop removes an invitation, if there is one.
func (s *invitations) drop(hash tokenHash) {
	if i, ok := s.byToken[hash]; ok {
		delete(s.byToken, hash)
		s.hash.Remove(hashInvitation(hash, i))
	}
}

// dropExpired removes the invitations that have expired by a time.
func (s *invitations) dropExpired(unixNano int64) {
	for hash, i := range s.byToken {
		if i.expires <= unixNano {
			s.drop(hash)
		}
	}
}

// records returns all invitations, by the hashes of their tokens.
func (s *invitations) records() []*raftlogv1.MemberInvite {
	var records []*raftlogv1.MemberInvite
	for _, hash := range slices.SortedFunc(maps.Keys(s.byToken), func(a, b tokenHash) int { return bytes.Compare(a[:], b[:]) }) {
		i := s.byToken[hash]
		records = append(records, &raftlogv1.MemberInvite{TokenHash: hash[:], Tag: i.tag, Watcher: i.watcher, ExpiresUnixNano: i.expires})
	}
	return records
}

// restore takes over an invitation of a snapshot.
func (s *invitations) restore(m *raftlogv1.MemberInvite, format uint32) error {
	if len(m.GetTokenHash()) != len(tokenHash{}) || m.GetTag() != "" && checkTag(m.GetTag()) != nil || format < StrictFormat || len(s.byToken) >= maxInvitations {
		return corrupt("an invitation with a bad hash or tag, one too many, or in log format %d", format)
	}
	hash := tokenHash(m.GetTokenHash())
	if _, twice := s.byToken[hash]; twice {
		return corrupt("an invitation twice")
	}
	s.put(hash, invitation{tag: m.GetTag(), watcher: m.GetWatcher(), expires: m.GetExpiresUnixNano()})
	return nil
}

func hashInvitation(hash tokenHash, i invitation) uint64 {
	var s statehash.Space
	return s.Begin(recordInvitation).Data(hash[:]).Text(i.tag).Flag(i.watcher).Number(uint64(i.expires)).Hash()
}
