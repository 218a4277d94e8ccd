package docid

import (
	"cmp"
	"strings"
)

// reservedNodeTag cannot be a node's tag: RavenDB keeps it for itself.
const reservedNodeTag = "RAFT"

// ValidateNodeTag checks a node's tag: one to four letters A-Z, and not RAFT.
//
// The error is an *Error with INVALID_NODE_TAG for the field "tag".
func ValidateNodeTag(tag string) error {
	switch {
	case tag == "" || len(tag) > maxNodeTagBytes || strings.Trim(tag, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return &Error{ReasonInvalidNodeTag, "tag", "must be one to four letters A-Z, but is " + quote(tag)}
	case tag == reservedNodeTag:
		return &Error{ReasonInvalidNodeTag, "tag", "must not be " + reservedNodeTag + ", which is reserved"}
	default:
		return nil
	}
}

// NextNodeTag returns the tag that follows the highest one (see
// CompareNodeTags): A if there is none, then the last letter advanced, and after
// a Z an A appended: A, B, … Z, ZA, … ZZ, ZZA. RAFT is stepped over.
//
// The error is ErrTagsExhausted after ZZZZ, and after any other tag of four letters
// that ends with Z, or an *Error if highest is no tag.
func NextNodeTag(highest string) (string, error) {
	if highest == "" {
		return "A", nil
	}
	if err := ValidateNodeTag(highest); err != nil {
		return "", err
	}
	next := advance(highest)
	if next == reservedNodeTag {
		next = advance(next)
	}
	if len(next) > maxNodeTagBytes {
		return "", ErrTagsExhausted
	}
	return next, nil
}

// advance returns the tag after this one, however long.
func advance(tag string) string {
	last := len(tag) - 1
	if tag[last] == 'Z' {
		return tag + "A"
	}
	return tag[:last] + string(tag[last]+1)
}

// CompareNodeTags orders tags as NextNodeTag generates them: shorter ones first, and by
// letters among tags of one length. It returns -1, 0 or +1.
func CompareNodeTags(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
