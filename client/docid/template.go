package docid

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is one of the strategies by which a template becomes an id.
type Kind uint8

const (
	// GUID is a version 4 UUID, for an empty template or one of white space.
	GUID Kind = iota
	// ServerSide is the template, an etag of the node that was asked, and its
	// tag, for a template that ends with the separator.
	ServerSide
	// Identity is the name, the separator and a number that the cluster agreed
	// on, for a template that ends with a pipe.
	Identity
	// Semantic is the template itself.
	Semantic
)

// String returns "guid", "server-side", "identity" or "semantic".
func (k Kind) String() string {
	return [...]string{GUID: "guid", ServerSide: "server-side", Identity: "identity", Semantic: "semantic"}[k]
}

// Template is a template that Parse has taken apart.
type Template struct {
	// Kind is the strategy that the template's form picks.
	Kind Kind
	// Text is the template as the caller wrote it. It is the prefix of a
	// server-side id, and a semantic id whole.
	Text string
	// Name is the identity's name, without the pipe. Other kinds have none.
	Name string
	// Separator is the separator of the request, DefaultSeparator if it named
	// none.
	Separator string
}

// Parse parses a template. An accepted template makes a valid id; for a server-side id
// that holds with a node tag of one letter, and CheckServerSide checks a longer one.
//
// The error is an *Error: INVALID_SEPARATOR for the field "separator", otherwise
// INVALID_ID for the field "template", also when it is an identity's name that
// is wrong.
func Parse(template, separator string) (Template, error) {
	separator, err := ParseSeparator(separator)
	if err != nil {
		return Template{}, err
	}
	t := Template{Kind: kindOf(template, separator), Text: template, Separator: separator}
	var detail string
	switch t.Kind {
	case GUID:
	case ServerSide:
		detail = textProblem(template, MaxIDBytes-minServerSideBytes)
	case Identity:
		t.Name = template[:len(template)-1]
		detail = nameProblem(t.Name, MaxNameBytes)
	default:
		detail = textProblem(template, MaxIDBytes)
	}
	if detail != "" {
		return Template{}, &Error{ReasonInvalidID, "template", detail}
	}
	return t, nil
}

// kindOf returns a template's kind by its form alone.
func kindOf(template, separator string) Kind {
	switch {
	case isBlank(template):
		return GUID
	case strings.HasSuffix(template, "|"):
		return Identity
	case endsWithSeparator(template, separator):
		return ServerSide
	default:
		return Semantic
	}
}

// textProblem returns the problem of a text that becomes part of an id, or "". The limit
// is in bytes.
func textProblem(s string, limit int) string {
	switch {
	case len(s) > limit:
		return "is " + strconv.Itoa(len(s)) + " bytes long, more than the " + strconv.Itoa(limit) + " that are allowed"
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.IndexByte(s, '\\') >= 0:
		return "contains a backslash"
	default:
		return ""
	}
}

// nameProblem returns the problem of an identity's name, or "".
func nameProblem(name string, limit int) string {
	switch {
	case isBlank(name):
		return "names no identity: the name is empty or white space"
	case strings.HasSuffix(name, "|"):
		return "ends with more than one '|'"
	default:
		return textProblem(name, limit)
	}
}

func isBlank(s string) bool {
	for _, r := range s {
		if !isSpace(r) {
			return false
		}
	}
	return true
}

// isSpace reports whether r is white space: the property White_Space as it
// stands in Unicode 15.0.0, written down here so that it cannot change.
func isSpace(r rune) bool {
	switch {
	case r <= ' ':
		return r == ' ' || '\t' <= r && r <= '\r'
	case r < 0x2000:
		return r == 0x85 || r == 0xA0 || r == 0x1680
	case r <= 0x200A:
		return true
	default:
		return r == 0x2028 || r == 0x2029 || r == 0x202F || r == 0x205F || r == 0x3000
	}
}
