package series

import (
	"fmt"
	"strings"

	"github.com/idnode/idnode/series/format"
)

// InvalidError is a field that is wrong whatever the series' state is.
type InvalidError struct {
	Field, Detail string
	// Index is that of the one at fault, where the field is "keys" or "begins".
	Index int
}

func (e *InvalidError) Error() string { return e.Field + " " + e.Detail }

// VersionError means that the definition is not the expected one.
type VersionError struct{ Version, Expected int64 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the definition has version %d, not %d", e.Version, e.Expected)
}

// OutdatedError means that a call was made by another definition than the present one.
type OutdatedError struct{}

func (*OutdatedError) Error() string { return "the series was defined anew while the call went on" }

// SuspendedError means that a series gives no numbers until it is resumed.
type SuspendedError struct{}

func (*SuspendedError) Error() string {
	return "the series was restored or recovered, and gives no numbers until somebody has looked at the books and resumes it"
}

// InUseError means that numbers are final, so the series cannot be deleted.
type InUseError struct {
	// Scope is one that has such numbers.
	Scope []string
}

func (e *InUseError) Error() string {
	return name(e.Scope) + " has numbers that are confirmed or voided"
}

// DiffersError means that a series of a backup is another one of that name, or that it went
// on in two clusters: a number is another key's there, a scope begins elsewhere, or the texts
// are others.
type DiffersError struct {
	// Format is that of the series here, and BackupFormat that in the backup; both are empty if a
	// scope or a number differs.
	Format, BackupFormat string

	Scope  []string
	Number int64
	Key    string
	// Begins is where the scope begins here, and BackupBegins where in the backup; 0 if the key
	// differs.
	Begins, BackupBegins int64
}

func (e *DiffersError) Error() string {
	if e.Format != "" {
		return fmt.Sprintf("it is another series than that of the backup: here of the format %q, there %q", e.Format, e.BackupFormat)
	}
	if e.Begins > 0 {
		return fmt.Sprintf("%s begins at %d in the backup, and at %d here", name(e.Scope), e.BackupBegins, e.Begins)
	}
	return fmt.Sprintf("number %d of %s is another one's here than in the backup, where it is that of key %q", e.Number, name(e.Scope), e.Key)
}

// ConflictError means that a key has a number of another scope or date.
type ConflictError struct {
	// First is what the key has.
	First Number
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("key %q has number %d of %s, of %s", e.First.Key, e.First.Number, name(e.First.Scope), e.First.Date)
}

// ClosedError means that a scope gives no more numbers.
type ClosedError struct {
	Scope []string
	Last  int64
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("%s is closed, its last number is %d", name(e.Scope), e.Last)
}

// DateBackError means that a date is before that of the scope's last number.
type DateBackError struct{ Date, Last format.Date }

func (e *DateBackError) Error() string {
	return fmt.Sprintf("date %s is before %s, that of the last number", e.Date, e.Last)
}

// TooManyOpenError means that more numbers of a scope would be open than may be.
type TooManyOpenError struct {
	Open, Limit int64
	// Oldest is the key of the lowest open number, "" if none is.
	Oldest string
}

func (e *TooManyOpenError) Error() string {
	return fmt.Sprintf("%d numbers are open, and at most %d may be; the lowest is that of key %q", e.Open, e.Limit, e.Oldest)
}

// FullError means that the series would have more keys or scopes than it may.
type FullError struct {
	// What is "keys" or "scopes".
	What  string
	Limit int64
}

func (e *FullError) Error() string { return fmt.Sprintf("the series may have %d %s", e.Limit, e.What) }

// UnknownKeyError means that a key has no number.
type UnknownKeyError struct{ Key string }

func (e *UnknownKeyError) Error() string { return fmt.Sprintf("key %q has no number", e.Key) }

// UnknownScopeError means that a scope has no numbers.
type UnknownScopeError struct{ Scope []string }

func (e *UnknownScopeError) Error() string { return name(e.Scope) + " has no numbers" }

// ExpiredError means that a number's time ended, and that another key has it.
type ExpiredError struct {
	Key    string
	Number int64
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("the reservation of key %q has expired, and another key has number %d", e.Key, e.Number)
}

// StateError means that a number's state excludes the call.
type StateError struct {
	Key    string
	Number int64
	State  State
	// Reason is that of a voided number.
	Reason string
}

func (e *StateError) Error() string {
	text := fmt.Sprintf("number %d of key %q is %s", e.Number, e.Key, e.State)
	if e.Key == "" {
		text = fmt.Sprintf("number %d is %s", e.Number, e.State)
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// OtherNumberError means that a key has another number than its caller believes.
type OtherNumberError struct {
	Key             string
	Number, Claimed int64
}

func (e *OtherNumberError) Error() string {
	return fmt.Sprintf("key %q has number %d, not %d", e.Key, e.Number, e.Claimed)
}

// VerifyError is the first thing that is not as it must be.
type VerifyError struct {
	Scope  []string
	Number int64
	Detail string
}

func (e *VerifyError) Error() string {
	return fmt.Sprintf("number %d of %s %s", e.Number, name(e.Scope), e.Detail)
}

// name is a scope for people.
func name(scope []string) string {
	if len(scope) == 0 {
		return "the series"
	}
	return strings.Join(scope, " ")
}
