package docid

import (
	"fmt"
	"strings"
)

// FirstControl returns the first character of s that shows nothing but changes how
// the text around it is shown: a control character (C0, DEL, C1), a line or paragraph
// separator, or one that turns the direction of text. Names, tags and claimed ids
// that exist may have them; new ones may not.
//
// The set is written down here, because the log is applied by it. It needs no valid
// UTF-8.
func FirstControl(s string) (r rune, found bool) {
	for _, r := range s {
		if isControl(r) {
			return r, true
		}
	}
	return 0, false
}

// Escape writes s for people and terminals: what FirstControl looks for becomes \u
// and four hexadecimal digits. In names the escape means nothing else, for they have
// no backslash; in JSON without line ends between its values it means the same.
func Escape(s string) string {
	if _, found := FirstControl(s); !found {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isControl is true of the categories Cc, Zl and Zp, and of the property
// Bidi_Control, as they stand in Unicode 15.0.0.
func isControl(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7F && r < 0xA0:
		return true
	case r < 0x61C:
		return false
	default:
		return r == 0x61C || r == 0x200E || r == 0x200F || r >= 0x2028 && r <= 0x202E || r >= 0x2066 && r <= 0x2069
	}
}
