package docid

// FirstInvisible returns the first character of s that cannot be seen: one that
// FirstControl looks for, a format character (category Cf), or one that programs may show
// as nothing (Default_Ignorable_Code_Point). Two texts that differ in such characters alone
// look the same.
//
// The set is that of Unicode 15.0.0. It is written down here, because the log is applied
// by it. It needs no valid UTF-8.
func FirstInvisible(s string) (r rune, found bool) {
	for _, r := range s {
		if isControl(r) || isInvisible(r) {
			return r, true
		}
	}
	return 0, false
}

func isInvisible(r rune) bool {
	if r < invisible[0][0] {
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
	{0x202A, 0x202E},
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
