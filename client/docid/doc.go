// Package docid handles ids as text: it parses templates, builds and validates ids,
// names, tags and separators, and folds case.
//
// It owns the rules that decide whether two spellings are the same name (Fold) and where
// an id ends in an identity's number (SplitNumbered). Both are used while the replicated
// log is applied, so they must give the same answer in every build of idnode,
// permanently: they read frozen tables of this package and never the unicode package,
// whose tables change with the Go release. A change to either table needs a new
// FoldVersion and with it a new log format.
//
// It does not own counters: packages hilo, identity and etag decide the next number. It
// makes no GUIDs, because it uses no randomness. It knows neither API nor log; it imports
// the standard library only, keeps no state, and every function may be called
// concurrently. It is for idnode's own use: its names may change with any release.
package docid

const (
	// MaxIDBytes is the greatest length of a finished id, in bytes of UTF-8.
	MaxIDBytes = 2025
	// MaxNameBytes is the greatest length of an identity's name and of a HiLo
	// tag, in bytes as the caller wrote it. It is smaller than MaxIDBytes, so
	// that a growing number never makes an id too long. Folding can lengthen a
	// text by half (U+023A takes two bytes, what it folds to takes three): a
	// folded key may be longer than this.
	MaxNameBytes = 2000
	// MaxDatabaseBytes is the greatest length of a database's name.
	MaxDatabaseBytes = 128

	// DefaultSeparator is between a name and its number if a request does
	// not name another separator.
	DefaultSeparator = "/"
	// DefaultDatabase is the database of a request that names none.
	DefaultDatabase = "default"

	// FoldVersion is the version of the frozen tables behind Fold and
	// SplitNumbered. It belongs to the log format.
	FoldVersion = 1
)

const (
	// numberDigits is the length of the greatest int64, and the width to which
	// server-side ids are padded with zeros.
	numberDigits = 19
	// maxNodeTagBytes is the greatest length of a node tag.
	maxNodeTagBytes = 4
	// minServerSideBytes is what a server-side id adds to its prefix at least:
	// the padded etag, a dash and the shortest node tag.
	minServerSideBytes = numberDigits + 1 + 1
	// maxHiLoBytes is what a HiLo id adds to tag and separator at most: the
	// greatest number, a dash and the longest node tag.
	maxHiLoBytes = numberDigits + 1 + maxNodeTagBytes
)
