package rights

import (
	"slices"
	"strings"
)

// The kinds of principals: which of a certificate's alternative names a principal
// is. A CA checks each kind in its own way, so a name of one kind never means
// the same text of another.
const (
	DNS   = "dns:"
	URI   = "uri:"
	Email = "email:"
)

// Principal returns a principal with its kind. A plain name has that of the only
// certificates that can hold it: a colon makes it a URI and an @ a mail address,
// since no name of a host has either. Any, and the empty name, have no kind.
func Principal(name string) string {
	switch {
	case name == "" || name == Any || hasKind(name):
		return name
	case strings.Contains(name, ":"):
		return URI + name
	case strings.Contains(name, "@"):
		return Email + name
	}
	return DNS + name
}

func hasKind(name string) bool {
	return strings.HasPrefix(name, DNS) || strings.HasPrefix(name, URI) || strings.HasPrefix(name, Email)
}

// Lists says whether a list has a principal, with or without its kind.
func Lists(list []string, principal string) bool {
	principal = Principal(principal)
	return slices.ContainsFunc(list, func(name string) bool { return Principal(name) == principal })
}
