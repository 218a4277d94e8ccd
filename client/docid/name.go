package docid

import (
	"strconv"
	"strings"
)

// ParseName returns the name of an identity. "name|" and "name" are the same
// identity: one pipe at the end is taken off. What remains must not be empty or
// white space, must be valid UTF-8 of at most MaxNameBytes without a backslash,
// and must not end with another pipe. It may end with a separator: the ids of
// "users/" are "users//1" and so on. The name keeps its case; the caller folds.
//
// The error is an *Error with INVALID_NAME for the field "name".
func ParseName(name string) (string, error) {
	name = strings.TrimSuffix(name, "|")
	if detail := nameProblem(name, MaxNameBytes); detail != "" {
		return "", &Error{ReasonInvalidName, "name", detail}
	}
	return name, nil
}

// ValidateTag checks the tag of a HiLo counter: not empty and not white space,
// valid UTF-8 of at most MaxNameBytes, without a backslash, not ending with '|'
// or with the separator, and with room for the longest id that can come of it
// (tag, separator, 19 digits, a dash, a node tag of four letters). An empty
// separator means DefaultSeparator.
//
// The error is an *Error: INVALID_SEPARATOR for "separator" or INVALID_TAG for "tag".
func ValidateTag(tag, separator string) error {
	separator, err := ParseSeparator(separator)
	if err != nil {
		return err
	}
	limit := min(MaxNameBytes, MaxIDBytes-maxHiLoBytes-len(separator))
	if detail := finishedProblem(tag, separator, limit); detail != "" {
		return &Error{ReasonInvalidTag, "tag", detail}
	}
	return nil
}

// ParseDatabase returns the name of a database: db itself, or DefaultDatabase if
// it is empty. A name has 1 to MaxDatabaseBytes of the characters A-Z, a-z, 0-9,
// '_', '.' and '-'. It keeps its case; the caller folds.
//
// The error is an *Error with INVALID_DATABASE for the field "database".
func ParseDatabase(db string) (string, error) {
	if db == "" {
		return DefaultDatabase, nil
	}
	if len(db) > MaxDatabaseBytes {
		return "", &Error{ReasonInvalidDatabase, "database", "is " + strconv.Itoa(len(db)) + " bytes long, more than the " +
			strconv.Itoa(MaxDatabaseBytes) + " that are allowed"}
	}
	for i := range len(db) {
		if !isDatabaseByte(db[i]) {
			return "", &Error{ReasonInvalidDatabase, "database", "may hold A-Z, a-z, 0-9, '_', '.' and '-' only, but is " + quote(db)}
		}
	}
	return db, nil
}

func isDatabaseByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	default:
		return c == '_' || c == '.' || c == '-'
	}
}
