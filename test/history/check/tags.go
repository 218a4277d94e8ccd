package check

import "github.com/idnode/idnode/test/history"

// tags judges the owners of node tags. A tag belongs to one node id permanently,
// also after its node was removed, and a node id has one tag.
type tags struct {
	ids, tags map[string]member
}

// member is who had a tag, or which tag somebody had, and where that was seen.
type member struct {
	name string
	pos  int
}

func (t *tags) add(op *history.Op, pos int, f *findings) {
	if t.ids == nil {
		t.ids, t.tags = make(map[string]member), make(map[string]member)
	}
	if first := remember(t.ids, op.Tag, op.ID, pos); first.name != op.ID {
		f.violation("tags/tag", op.Tag, []int{first.pos, pos}, "the tag belongs to node %s, and to node %s", first.name, op.ID)
	}
	if first := remember(t.tags, op.ID, op.Tag, pos); first.name != op.Tag {
		f.violation("tags/id", op.ID, []int{first.pos, pos}, "the node has the tag %s, and the tag %s", first.name, op.Tag)
	}
}

// remember returns what was seen first for the key.
func remember(seen map[string]member, key, name string, pos int) member {
	if first, ok := seen[key]; ok {
		return first
	}
	seen[key] = member{name, pos}
	return seen[key]
}
