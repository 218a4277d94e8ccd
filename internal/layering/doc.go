// Package layering holds the tests that keep the repository's shape: which part
// may import which, that every package says what it is and has its place in
// docs/design.md, and that the text of the repository refers to nothing outside
// of it.
//
// It has no code of its own.
package layering
