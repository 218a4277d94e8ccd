package docid

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// ParseSeparator returns the separator of a request: s itself, or
// DefaultSeparator if s is empty.
//
// A separator is one visible character that is no letter, digit, combining
// mark, '-', '\' or '|': in terms of Unicode 15.0.0 a punctuation mark, a
// symbol, or a number that is no decimal digit. Spaces, control and format
// characters, private-use and unassigned code points and U+FFFD are refused.
//
// A few separators fold (Ⓐ to ⓐ, Ⅷ to ⅷ). Then both spellings mean the same
// separator wherever texts are compared, and an id keeps the one that was
// written. A key that holds a separator must hold the folded one.
//
// The error is an *Error with the reason INVALID_SEPARATOR.
func ParseSeparator(s string) (string, error) {
	// U+FFFD, which also replaces invalid UTF-8, is in no range of the table.
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case s == "":
		return DefaultSeparator, nil
	case size < len(s) || !isSeparatorRune(r):
		return "", &Error{ReasonInvalidSeparator, "separator", "must be one character that is no letter, digit, '-', " +
			"space, control character, '\\' or '|', but is " + quote(s)}
	}
	return s, nil
}

// isSeparatorRune reports whether r may separate. It reads the frozen table,
// because SplitNumbered decides by it while the log is applied.
func isSeparatorRune(r rune) bool {
	if r == '/' {
		return true
	}
	i, found := slices.BinarySearchFunc(separatorRanges[:], r, func(bounds [2]rune, r rune) int { return cmp.Compare(bounds[0], r) })
	return found || i > 0 && r <= separatorRanges[i-1][1]
}

// endsWithSeparator reports whether the last character of s is the separator in
// any of its spellings. Ids compare by their folded form, so an id that ends
// with ⓐ is the same id as one that ends with Ⓐ.
func endsWithSeparator(s, separator string) bool {
	if strings.HasSuffix(s, separator) {
		return true
	}
	if len(separator) == 1 {
		// Nothing else folds to an ASCII character that is no letter.
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(s)
	wanted, _ := utf8.DecodeRuneInString(separator)
	return foldRune(last) == foldRune(wanted)
}
