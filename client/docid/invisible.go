package docid

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// FirstInvisible returns the first character of s that cannot be seen: a control character
// (C0, DEL, C1), a line or paragraph separator, a format character (category Cf), as those
// that turn the direction of text, or one that programs may show as nothing
// (Default_Ignorable_Code_Point). They change how the text around them is shown, or make two
// texts look the same. Names, tags and claimed ids that exist may have them; new ones may
// not.
//
// The set is that of Unicode 15.0.0. It is written down here, because the log is applied
// by it. It needs no valid UTF-8.
func FirstInvisible(s string) (r rune, found bool) {
	for _, r := range s {
		if isInvisible(r) {
			return r, true
		}
	}
	return 0, false
}

// Escape writes s for people and terminals: what FirstInvisible looks for becomes \u and
// four hexadecimal digits, twice beyond them, as in UTF-16. In names the escape means nothing
// else, for they have no backslash; in JSON without line ends between its values it means the
// same.
func Escape(s string) string {
	if _, found := FirstInvisible(s); !found {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !isInvisible(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

func isInvisible(r rune) bool {
	if r >= ' ' && r <= '~' {
		return false
	}
	for _, bounds := range invisible {
		if r <= bounds[1] {
			return r >= bounds[0]
		}
	}
	return false
}

// invisible has the first and the last character of each range, ascending.
var invisible = [...][2]rune{
	{0, 0x1F},
	{0x7F, 0x9F},
	{0xAD, 0xAD},
	{0x34F, 0x34F},
	{0x600, 0x605},
	{0x61C, 0x61C},
	{0x6DD, 0x6DD},
	{0x70F, 0x70F},
	{0x890, 0x891},
	{0x8E2, 0x8E2},
	{0x115F, 0x1160},
	{0x17B4, 0x17B5},
	{0x180B, 0x180F},
	{0x200B, 0x200F},
	{0x2028, 0x202E},
	{0x2060, 0x206F},
	{0x3164, 0x3164},
	{0xFE00, 0xFE0F},
	{0xFEFF, 0xFEFF},
	{0xFFA0, 0xFFA0},
	{0xFFF0, 0xFFFB},
	{0x110BD, 0x110BD},
	{0x110CD, 0x110CD},
	{0x13430, 0x1343F},
	{0x1BCA0, 0x1BCA3},
	{0x1D173, 0x1D17A},
	{0xE0000, 0xE0FFF},
}
