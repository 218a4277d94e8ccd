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

// ErrTagsExhausted says that no node tag follows the highest one.
var ErrTagsExhausted = errors.New("docid: no node tag of four letters is left")

// Error says what is wrong with a text that a caller sent. Every function of
// this package that validates returns a *Error, or nil.
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

// quote makes a short text of the caller's fit for a message: valid UTF-8, no
// control characters, no more than a few bytes.
func quote(s string) string {
	const most = 32
	if len(s) > most {
		return strconv.QuoteToGraphic(s[:most]) + "…"
	}
	return strconv.QuoteToGraphic(s)
}
