package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/docid"
)

// The exit codes of every command. Scripts rely on them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnavailable = 3
	// Of serve, and the first of log verify: these do not go away by starting again.
	exitDamaged = 4
	exitRefused = 5
)

// errorDomain is the domain of the ErrorInfo that every error of an idnode server carries.
const errorDomain = "idnode"

// reasonUnknown is the reason of an answer that leaves open whether the call took effect.
const reasonUnknown = "OUTCOME_UNKNOWN"

// usageError is a command line that makes no sense; nothing was done.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// unavailableError is a failure that may be over in a moment.
type unavailableError struct{ error }

func (e *unavailableError) Unwrap() error { return e.error }

// endedError is a node of this process that ended by itself.
type endedError struct{ error }

func (e *endedError) Unwrap() error { return e.error }

// is reports whether err is, or wraps, an error of type E.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// report prints err as one line, with -v one more for each endpoint, and returns its exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	if a.last != nil {
		a.last.Error("the node ends", "error", oneLine(describe(err)))
		return exitCode(err)
	}
	fmt.Fprintf(a.stderr, "idnode: %s\n", printable(describe(err)))
	if failed := callErrorIn(err); failed != nil && failed.verbose {
		for _, at := range failed.tried {
			fmt.Fprintf(a.stderr, "idnode: %s: %s\n", at.endpoint, printable(describeStatus(at.err)))
		}
	}
	return exitCode(err)
}

// printable makes one line of a text that terminals show as it is.
func printable(text string) string { return docid.Escape(oneLine(text)) }

// oneLine puts the lines of a text, as joined errors have, into one.
func oneLine(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case line == "":
			continue
		case b.Len() == 0:
		case strings.HasSuffix(b.String(), ":"):
			b.WriteString(" ")
		default:
			b.WriteString("; ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// exitCode returns the exit code of err. A value that the server refuses as INVALID_ARGUMENT came
// from the command line, so it is wrong usage, as if the command line had refused it.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case is[*endedError](err):
		return endCode(err)
	case errors.Is(err, context.Canceled):
		return exitFailed // Also where a file was being opened.
	case is[*usageError](err):
		return exitUsage
	case is[*unavailableError](err):
		return exitUnavailable
	}
	switch codeOf(err) {
	case codes.InvalidArgument:
		return exitUsage
	case codes.Unavailable, codes.DeadlineExceeded:
		return exitUnavailable
	default:
		return exitFailed
	}
}

// describe turns err into the words a person reads: reason, message and, where that is known, what to do.
func describe(err error) string {
	failed := callErrorIn(err)
	switch {
	case failed != nil:
		return describeCall(failed)
	case is[*endedError](err), is[*unavailableError](err):
		// A deadline or a status in there is the node's own business.
		return describeEnd(err)
	default:
		return describeStatus(err)
	}
}

// describeEnd says what to do where the system's own words do not.
func describeEnd(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return err.Error() + "; another program uses this address: end it, or choose another one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return err.Error() + "; this machine does not have this address"
	default:
		return err.Error()
	}
}

// describeCall names what is left open by the other attempts.
func describeCall(e *callError) string {
	text := describeStatus(e.err)
	if len(e.tried) > 1 {
		var endpoints []string
		for _, at := range e.tried {
			endpoints = append(endpoints, at.endpoint)
		}
		text += " (tried " + strings.Join(endpoints, ", ") + ")"
	}
	if !e.unknown {
		return text
	}
	if reasonOf(e.err) != reasonUnknown {
		text = reasonUnknown + ": " + text + "; whether it took effect is not known"
	}
	if e.again != "" {
		text += "; " + e.again
	}
	return text
}

// describeStatus describes an answer of a server, or any other error.
func describeStatus(err error) string {
	s, ok := statusOf(err)
	if !ok {
		return err.Error()
	}
	text := s.Message()
	if other := otherHTTP.FindString(text); other != "" {
		text = other // Without the page that came with it.
	}
	if s.Code() == codes.DeadlineExceeded {
		text = "no answer within the timeout"
	}
	if s.Code() == codes.Canceled {
		text = "interrupted"
	}
	if fields := violations(s); fields != "" && !strings.Contains(text, fields) {
		text += " (" + fields + ")"
	}
	reason := reasonOf(err)
	if reason == "" {
		if isNoGRPC(err) {
			text += "; is this the gRPC port of a node (7400), and not its HTTP port (7402)?"
		}
		return code.Code(s.Code()).String() + ": " + text
	}
	if hint := hints[reason]; hint != "" {
		text += "; " + hint
	}
	return reason + ": " + text
}

// otherHTTP is gRPC's text for a refusal by an HTTP server without gRPC. Other codes may be a
// proxy's that forwarded the call.
var otherHTTP = regexp.MustCompile(`unexpected HTTP status code received from server: (400|404|405|415) [^;]*`)

// isNoGRPC reports whether an answer came from no node, or from another port of a node.
func isNoGRPC(err error) bool {
	s, ok := statusOf(err)
	return ok && reasonOf(err) == "" && (s.Code() == codes.Unimplemented || otherHTTP.MatchString(s.Message()))
}

// hints say what to do about the reasons where that is not plain.
var hints = map[string]string{
	"POOL_NOT_FOUND":     "'idnode snowflake define POOL' begins one",
	"SERIES_NOT_FOUND":   "'idnode series define NAME --format FORMAT' begins one",
	"NO_QUORUM":          "try another --endpoint, or see 'idnode cluster status'",
	"LEADER_UNREACHABLE": "try another --endpoint, or see 'idnode cluster status'",
	"STARTING":           "try again in a moment, or another --endpoint",
	reasonOtherCluster: "take the other endpoint out; after 'idnode recover' --cluster-id, " +
		"IDNODE_CLUSTER_ID and contexts need the new id",
	"STOPPING":              "try another --endpoint",
	"OVERLOADED":            "try again in a moment",
	"QUOTA":                 "see 'idnode cluster settings' for the limits",
	"STORAGE_FULL":          "free space on the nodes' disks",
	"CONCURRENCY":           "read the current value and try again",
	"REQUEST_ID_REUSED":     "use another --request-id for another request",
	"REQUEST_ID_EXPIRED":    "check by hand what the first try did",
	"NODE_TAG_NOT_ASSIGNED": "try again in a moment, or another --endpoint",
	"LOSES_QUORUM":          "bring these back, or remove first what is gone for good; --force removes it all the same",
	"CORRUPT":               "the node's data is damaged: see its log",
}

// statusOf returns the gRPC status in err.
func statusOf(err error) (*status.Status, bool) {
	if s := status.FromContextError(err); s.Code() != codes.Unknown {
		return s, err != nil
	}
	var withStatus interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &withStatus) {
		return nil, false
	}
	return withStatus.GRPCStatus(), true
}

func codeOf(err error) codes.Code {
	if s, ok := statusOf(err); ok {
		return s.Code()
	}
	return codes.Unknown
}

// reasonOf returns the reason an idnode server gave, or "" for an error that comes from elsewhere.
func reasonOf(err error) string {
	s, _ := statusOf(err)
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == errorDomain {
			return info.GetReason()
		}
	}
	return ""
}

func violations(s *status.Status) string {
	var fields []string
	for _, d := range s.Details() {
		bad, _ := d.(*errdetails.BadRequest)
		for _, v := range bad.GetFieldViolations() {
			fields = append(fields, v.GetField())
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return "field " + strings.Join(fields, ", ")
}

func quote(s string) string { return strconv.Quote(s) }

// negative is what cobra says of a negative number among the arguments.
var negative = regexp.MustCompile(`^unknown shorthand flag: '[0-9.]' in (-[0-9.]+)$`)

// dashed is what it says of any other argument that begins like a flag.
var dashed = regexp.MustCompile(`^unknown shorthand flag: '(.)' in (-.+)$`)

// parsing is how the standard library says that a flag's value is no number.
var parsing = regexp.MustCompile(`strconv\.Parse(\w+): parsing "[^"]*": (invalid syntax|value out of range)`)

// duration is pflag's error of an invalid duration.
var duration = regexp.MustCompile(`time: (invalid duration|missing unit in duration|unknown unit "[^"]*" in duration) "[^"]*"`)

// YAML's errors: an unknown key, a value of another kind, and the beginning of both.
var (
	yamlKey   = regexp.MustCompile(`field (\S+) not found in type \S+`)
	yamlValue = regexp.MustCompile("cannot unmarshal !!\\w+( `[^`]*`)? into \\S+")
	yamlIntro = regexp.MustCompile(`^yaml: (unmarshal errors:\s*)?`)
)

// plainly says what is wrong without the words of the libraries that found it.
func plainly(text string) string {
	if m := negative.FindStringSubmatch(text); m != nil {
		return m[1] + " is taken for a flag: put -- before the arguments, as in '... -- users " + m[1] + "'"
	}
	text = dashed.ReplaceAllString(text, "there is no flag -$1; if $2 is a value, put -- before the arguments")
	text = duration.ReplaceAllLiteralString(text, "not a duration such as 500ms or 2s")
	text = yamlIntro.ReplaceAllLiteralString(text, "")
	text = yamlKey.ReplaceAllString(text, "there is no key $1")
	text = yamlValue.ReplaceAllString(text, "the value$1 is of another kind than it must be")
	return parsing.ReplaceAllStringFunc(text, func(found string) string {
		switch {
		case strings.HasSuffix(found, "range"):
			return "out of range"
		case strings.Contains(found, "Bool"):
			return "neither true nor false"
		case strings.Contains(found, "Uint"):
			return "not a whole number from 0 on"
		default:
			return "not a whole number"
		}
	})
}
