// Package dialcause says in plain words why a connection of gRPC's failed.
package dialcause

import (
	"regexp"
	"strconv"
	"strings"
)

// Of takes the cause out of gRPC's text for a failed connection, with the address that was dialled:
// connection error: desc = "transport: …: cause". A text of another kind is returned as it is.
func Of(text string) string {
	cause := text // A connection may break after it was made.
	if _, quoted, ok := strings.Cut(text, "desc = "); ok {
		if unquoted, err := strconv.Unquote(quoted); err == nil {
			cause = strings.TrimPrefix(strings.TrimPrefix(unquoted, "transport: "), "Error while dialing: ")
		}
	}
	return strings.ReplaceAll(cause, "name resolver error: produced zero addresses", "no such host")
}

// dialled is how package cluster and the standard library begin such a text.
var dialled = regexp.MustCompile(`dialling \S+: |dial tcp(?: \S+)?: (?:connect: )?(?:lookup \S+(?: on \S+)?: )?`)

// Short is Of without the address, for those who have named it.
func Short(text string) string { return dialled.ReplaceAllLiteralString(Of(text), "") }
