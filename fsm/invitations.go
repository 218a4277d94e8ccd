package fsm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/idnode/idnode/internal/rights"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// maxInvitations is how many there may be; each lets one node in, so people do not
// come near.
const maxInvitations = 1_000

// tokenHash is the SHA-256 of a token. The token itself is never in the log: who
// reads the log, or a snapshot of it, cannot join by it.
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

// memberInvite records a token. One that is known stays as it is.
func (c *contents) memberInvite(dst []byte, now moment, op *operation) ([]byte, *refusal) {
	var invite raftlogv1.MemberInvite
	if err := decodePayload(op, &invite); err != nil {
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
	c.dropExpired(now)
	hash := tokenHash(invite.GetTokenHash())
	if _, known := c.invitations[hash]; known {
		return dst, nil
	}
	if len(c.invitations) >= maxInvitations {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_QUOTA, "", "there are %d invitations already", maxInvitations)
	}
	c.putInvitation(hash, invitation{tag: invite.GetTag(), watcher: invite.GetWatcher(), expires: invite.GetExpiresUnixNano()})
	return dst, nil
}

// admit refuses a newcomer whom nobody let in: with roles it needs the right to the
// cluster, or a token, which then says what it becomes. Below StrictFormat everybody is
// let in, and a token is not looked at: nodes of format 2 do not know that field, and
// this one must come to the same state.
func (c *contents) admit(now moment, op *operation, join *raftlogv1.MemberJoin) *refusal {
	hash := join.GetTokenHash()
	switch {
	case !c.strict():
		return nil
	case len(hash) > 0:
		return c.admitByToken(now, hash, join.GetMember())
	case c.roles == nil || !c.roles.table.Set():
		return nil
	case op.named && c.allows(c.roles.table, op, rights.Cluster, nil, nil):
		return nil
	}
	return notAdmitted("no role gives %.200q the right cluster, and it has no token", op.principal)
}

// admitByToken makes of a newcomer what its token says.
func (c *contents) admitByToken(now moment, hash []byte, m *raftlogv1.Member) *refusal {
	i, err := c.invited(hash, m.GetTag(), now.unixNano)
	if err != nil {
		return err
	}
	m.Tag = cmp.Or(m.GetTag(), i.tag)
	m.Watcher = m.GetWatcher() || i.watcher
	return nil
}

// invited returns the invitation of a node with a tag, empty for one without, by the
// hash of its token.
func (c *contents) invited(hash []byte, tag string, unixNano int64) (invitation, *refusal) {
	if len(hash) != len(tokenHash{}) {
		return invitation{}, invalid("token_hash", "has %d bytes, must have %d", len(hash), len(tokenHash{}))
	}
	i, ok := c.invitations[tokenHash(hash)]
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
// by the token with this hash now, and else how the state would refuse it.
func (s *State) Invited(hash []byte, tag string, now time.Time) *raftlogv1.Refusal {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if _, err := s.contents.invited(hash, tag, now.UnixNano()); err != nil {
		return &raftlogv1.Refusal{Reason: err.reason, Field: err.field, Detail: err.detail}
	}
	return nil
}

// putInvitation stores an invitation.
func (c *contents) putInvitation(hash tokenHash, i invitation) {
	c.invitations[hash] = i
	c.hash.add(hashInvitation(hash, i))
}

// dropInvitation forgets an invitation, if there is one.
func (c *contents) dropInvitation(hash tokenHash) {
	if i, ok := c.invitations[hash]; ok {
		delete(c.invitations, hash)
		c.hash.remove(hashInvitation(hash, i))
	}
}

// dropExpired forgets the invitations that let nobody in any more.
func (c *contents) dropExpired(now moment) {
	for hash, i := range c.invitations {
		if i.expires <= now.unixNano {
			c.dropInvitation(hash)
		}
	}
}

// dropInvitations forgets all of them.
func (c *contents) dropInvitations() {
	for hash := range c.invitations {
		c.dropInvitation(hash)
	}
}

// invitationRecords returns all invitations, by the hashes of their tokens.
func (c *contents) invitationRecords() []*raftlogv1.MemberInvite {
	var records []*raftlogv1.MemberInvite
	for _, hash := range slices.SortedFunc(maps.Keys(c.invitations), func(a, b tokenHash) int { return bytes.Compare(a[:], b[:]) }) {
		i := c.invitations[hash]
		records = append(records, &raftlogv1.MemberInvite{TokenHash: hash[:], Tag: i.tag, Watcher: i.watcher, ExpiresUnixNano: i.expires})
	}
	return records
}

// restoreInvitation takes over an invitation of a snapshot.
func (c *contents) restoreInvitation(m *raftlogv1.MemberInvite) error {
	if len(m.GetTokenHash()) != len(tokenHash{}) || m.GetTag() != "" && checkTag(m.GetTag()) != nil || !c.strict() || len(c.invitations) >= maxInvitations {
		return corrupt("an invitation with a bad hash or tag, one too many, or in log format %d", c.format)
	}
	hash := tokenHash(m.GetTokenHash())
	if _, twice := c.invitations[hash]; twice {
		return corrupt("an invitation twice")
	}
	c.putInvitation(hash, invitation{tag: m.GetTag(), watcher: m.GetWatcher(), expires: m.GetExpiresUnixNano()})
	return nil
}

func hashInvitation(hash tokenHash, i invitation) uint64 {
	var s recordSpace
	return s.begin(recordInvitation).data(hash[:]).text(i.tag).flag(i.watcher).number(uint64(i.expires)).sum()
}
