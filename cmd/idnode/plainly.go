package main

import (
	"regexp"
	"strings"
)

// negative is what cobra says of a negative number among the arguments.
var negative = regexp.MustCompile(`^unknown shorthand flag: '[0-9.]' in (-[0-9.]+)$`)

// parsing is how the standard library says that a flag's value is no number.
var parsing = regexp.MustCompile(`strconv\.Parse(\w+): parsing "[^"]*": (invalid syntax|value out of range)`)

// plainly says what is wrong with a command line without the words of the libraries
// that found it.
func plainly(text string) string {
	if m := negative.FindStringSubmatch(text); m != nil {
		return m[1] + " is taken for a flag: put -- before the arguments, as in '... -- users " + m[1] + "'"
	}
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
