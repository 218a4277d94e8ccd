package model

import "fmt"

// Tags judges which directories have which tag, and which tokens let them in: the rules of
// spec/joining.pml. The zero value has none.
type Tags struct {
	owner, tag map[string]string // by tag, and by id
	removed    map[string]bool
	tokens     map[string]bool // that have let nobody in yet
}

// CreateJoinToken has a token made that lets one directory in.
func (t *Tags) CreateJoinToken(token string) {
	if t.tokens == nil {
		t.tokens = map[string]bool{}
	}
	t.tokens[token] = true
}

// AddMember has a directory join with a token; empty for none.
func (t *Tags) AddMember(id, tag, token string) error {
	if _, known := t.tag[id]; !known && token != "" {
		if !t.tokens[token] {
			return fmt.Errorf("lets %x in by a token that lets nobody in, or has let another in", id)
		}
		delete(t.tokens, token)
	}
	return t.Join(id, tag)
}

// Join has a directory be a member with a tag, now or since before.
func (t *Tags) Join(id, tag string) error {
	if t.owner == nil {
		t.owner, t.tag, t.removed = map[string]string{}, map[string]string{}, map[string]bool{}
	}
	owner, taken := t.owner[tag]
	had, known := t.tag[id]
	switch {
	case t.removed[id]:
		return fmt.Errorf("takes %x in again, which was removed", id)
	case taken && owner != id:
		return fmt.Errorf("gives the tag %s to %x, and %x had it", tag, id, owner)
	case known && had != tag:
		return fmt.Errorf("gives the tag %s to %x, which has %s", tag, id, had)
	}
	t.owner[tag], t.tag[id] = id, tag
	return nil
}

// Remove has a member be removed for good.
func (t *Tags) Remove(id string) {
	if t.removed != nil {
		t.removed[id] = true
	}
}
