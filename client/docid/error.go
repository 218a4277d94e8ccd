package docid

import (
	"errors"
	"strconv"
)

// The reasons of an Error. They travel to callers as they are.
const (
	ReasonInvalidID        = "INVALID_ID"
	ReasonInvalidSeparator = "INVALID_SEPARATOR"
	ReasonInvalidTag       = "INVALID_TAG"
	ReasonInvalidName      = "INVALID_NAME"
	ReasonInvalidDatabase  = "INVALID_DATABASE"
	ReasonInvalidNodeTag   = "INVALID_NODE_TAG"
)

// ErrTagsExhausted means that no node tag follows the highest one.
var ErrTagsExhausted = errors.New("docid: no node tag of four letters is left")

// Error is a problem with a text of a caller. Every function of this package that
// validates returns a *Error, or nil.
type Error struct {
	// Reason is one of the Reason constants.
	Reason string
	// Field is the field of the API at fault: "template", "separator", "tag",
	// "name", "database" or "id".
	Field string
	// Detail is a sentence's end for people: "is empty". It is valid UTF-8 and
	// short, whatever the caller sent.
	Detail string
}

// Error returns the field and what is wrong with it.
func (e *Error) Error() string { return e.Field + " " + e.Detail }

// quote makes a caller's text safe for a message: short, valid UTF-8, without control
// characters.
func quote(s string) string {
	const most = 32
	if len(s) > most {
		return strconv.QuoteToGraphic(s[:most]) + "…"
	}
	return strconv.QuoteToGraphic(s)
}
