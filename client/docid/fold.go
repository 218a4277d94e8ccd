package docid

import "unicode/utf8"

// Fold returns s in the form in which names, tags, claims and databases are
// compared: every character replaced by its simple case folding (Unicode
// 15.0.0, statuses C and S), and nothing else normalised. So the Kelvin sign is
// a k, ſ is an s, ẞ is an ß and both sigmas are σ, while İ, ı and "ss" stay what
// they are.
//
// Fold is idempotent and keeps the number of characters, but not of bytes: the
// result may be up to half as long again. Bytes that are no UTF-8 stay as they
// are. It returns s itself, without allocating, if nothing changes.
func Fold(s string) string {
	start := firstChange(s)
	if start == len(s) {
		return s
	}
	// Most names fit, and then the string is the only allocation.
	var space [128]byte
	return string(appendFold(append(space[:0], s[:start]...), s[start:]))
}

// firstChange returns where in s the first character begins that folding
// changes, or len(s).
func firstChange(s string) int {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if foldRune(r) != r {
			return i
		}
		i += size
	}
	return len(s)
}

func appendFold(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if folded := foldRune(r); folded != r {
			dst = utf8.AppendRune(dst, folded)
		} else {
			// Copied, not encoded again: r may replace an invalid byte.
			dst = append(dst, s[i:i+size]...)
		}
		i += size
	}
	return dst
}

// foldRune returns the simple case folding of r. The table has two stages: the
// upper bits of r pick a block, the lower bits the distance in that block. Most
// of Unicode shares the block of zeros.
func foldRune(r rune) rune {
	block := uint32(r) >> foldBlockBits
	if block >= uint32(len(foldBlocks)) {
		return r
	}
	return r + foldDistances[foldBlocks[block]][uint32(r)&(1<<foldBlockBits-1)]
}
