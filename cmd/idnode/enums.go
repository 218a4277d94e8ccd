package main

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// enum is an enum of the API, with the values 0 for unspecified, 1, 2 and so on.
type enum interface {
	~int32
	protoreflect.Enum
	fmt.Stringer
}

// word is how people write a value of an enum: reuse-lowest for SERIES_ON_RELEASE_REUSE_LOWEST.
func word[E enum](value E) string {
	prefix := strings.TrimSuffix(E(0).String(), "UNSPECIFIED")
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(value.String(), prefix), "_", "-"))
}

// words returns the values of an enum as people write them, in order, without the unspecified one.
func words[E enum]() (all []string) {
	for i := range E(0).Descriptor().Values().Len() - 1 {
		all = append(all, word(E(i+1)))
	}
	return all
}

// choose sets an enum to the value that a flag names.
func choose[E enum](to *E, flag, text string) error {
	allowed := words[E]()
	if i := slices.Index(allowed, text); i >= 0 {
		*to = E(i + 1)
		return nil
	}
	return usagef("%s must be %s, not %q", flag, anyOf(allowed), text)
}

// anyOf lists words: a, b or c.
func anyOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
