package model

import "fmt"

// Tags judges which directories have which tag: the rules of spec/joining.pml. The zero
// value has none.
type Tags struct {
	owner, tag map[string]string // by tag, and by id
	removed    map[string]bool
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
