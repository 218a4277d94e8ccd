package docid

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ValidateID checks a finished id, one that a caller wrote or claims: not empty
// and not white space (such a template would make a GUID), valid UTF-8, at most
// MaxIDBytes long, without a backslash, and not ending with '|' or with the
// separator of the request. An empty separator means DefaultSeparator.
//
// The error is an *Error: INVALID_SEPARATOR for "separator" or INVALID_ID for "id".
func ValidateID(id, separator string) error {
	separator, err := ParseSeparator(separator)
	if err != nil {
		return err
	}
	detail := finishedProblem(id, separator, MaxIDBytes)
	if detail != "" {
		return &Error{ReasonInvalidID, "id", detail}
	}
	return nil
}

// finishedProblem returns the problem of a text that must not look like a template, or
// "".
func finishedProblem(s, separator string, limit int) string {
	switch {
	case isBlank(s):
		return "is empty or white space"
	case strings.HasSuffix(s, "|"):
		return "ends with '|'"
	case endsWithSeparator(s, separator):
		return "ends with the separator"
	default:
		return textProblem(s, limit)
	}
}

// CheckServerSide reports whether the server-side ids that a node with this tag builds
// from the prefix are short enough. Parse does not know the node's tag, and accepts
// prefixes that fit with a shorter tag only.
//
// The error is an *Error with INVALID_ID for the field "template".
func CheckServerSide(prefix, nodeTag string) error {
	limit := MaxIDBytes - numberDigits - 1 - len(nodeTag)
	if len(prefix) > limit {
		return &Error{ReasonInvalidID, "template", textProblem(prefix, limit)}
	}
	return nil
}

// ServerSideID builds a server-side id: the prefix as the caller wrote it, the
// etag padded with zeros to 19 digits, a dash and the node's tag.
//
// An etag above 10^19 keeps all its digits; counters end long before, at 2^63-1.
func ServerSideID(prefix string, etag uint64, nodeTag string) string {
	var digits [numberDigits + 1]byte
	number := strconv.AppendUint(digits[:0], etag, 10)
	var space [128]byte
	id := append(space[:0], prefix...)
	for range numberDigits - len(number) {
		id = append(id, '0')
	}
	id = append(append(id, number...), '-')
	return string(append(id, nodeTag...))
}

// IdentityID builds an identity's id: name, separator and number, without padding and
// without a node tag. The number is 1 or more unless the identity was seeded lower by
// force.
func IdentityID(name, separator string, value int64) string {
	var space [128]byte
	id := append(space[:0], name...)
	id = append(id, separator...)
	return string(strconv.AppendInt(id, value, 10))
}

// SplitNumbered takes an id apart that an identity could have given:
// "companies/5" is ("companies", "/", 5). The number is a decimal from 1 to
// 2^63-1 as IdentityID writes it, so without leading zeros; the separator is the
// one character before it; the name is one that ParseName leaves as it is, but
// of any length.
//
// The length is not checked because folding changes it: the folded form of a
// name that is just short enough may be too long, and must still be recognised.
// It commutes with Fold: the parts of a folded id are the folded parts. The
// texts are parts of id, and nothing is allocated.
func SplitNumbered(id string) (name, separator string, value int64, ok bool) {
	head, value, ok := cutNumber(id)
	if !ok {
		return "", "", 0, false
	}
	r, size := utf8.DecodeLastRuneInString(head)
	if !isSeparatorRune(r) {
		return "", "", 0, false
	}
	name, separator = head[:len(head)-size], head[len(head)-size:]
	if nameProblem(name, math.MaxInt) != "" {
		return "", "", 0, false
	}
	return name, separator, value, true
}

// NodeTagOf returns the tag of the node that could have given an id: one of the form of server-side ids and of ids of HiLo
// ranges. Those are anything that ends with a separator, a number of 1 to 19 digits, a dash and a tag. The number has
// leading zeros only if it has all 19 digits. An id as Fold returns it has the same tag, which is in capitals.
func NodeTagOf(id string) (tag string, ok bool) {
	dash := strings.LastIndexByte(id, '-')
	if dash < 0 || len(id)-dash-1 > maxNodeTagBytes {
		return "", false
	}
	head := strings.TrimRight(id[:dash], "0123456789")
	digits := id[len(head):dash]
	if r, _ := utf8.DecodeLastRuneInString(head); !isSeparatorRune(r) {
		return "", false
	}
	if n := len(digits); n == 0 || n > numberDigits || n < numberDigits && digits[0] == '0' {
		return "", false
	}
	folded := Fold(id[dash+1:])
	tag = strings.ToUpper(folded)
	return tag, strings.ToLower(tag) == folded && ValidateNodeTag(tag) == nil
}

// cutNumber cuts the digits off the end of s and returns what is before them,
// and their value, if they are a canonical decimal from 1 to 2^63-1.
func cutNumber(s string) (head string, value int64, ok bool) {
	start := len(s)
	for start > 0 && '0' <= s[start-1] && s[start-1] <= '9' {
		start--
	}
	digits := s[start:]
	if digits == "" || digits[0] == '0' || len(digits) > numberDigits {
		return "", 0, false
	}
	var n uint64 // Nineteen digits fit.
	for i := range len(digits) {
		n = n*10 + uint64(digits[i]-'0')
	}
	if n > math.MaxInt64 {
		return "", 0, false
	}
	return s[:start], int64(n), true
}
