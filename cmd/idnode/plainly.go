package main

import (
	"regexp"
	"strings"
)

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

// plainly says what is wrong with a command line, or a file, without the words of the
// libraries that found it.
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
