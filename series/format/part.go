package format

import "strings"

// kind is what a part of a format shows.
type kind uint8

const (
	literal kind = iota
	year
	month
	day
	week
	weekYear
	fiscalYear
	fiscalYearEnd
	number
	checkDigits
	value
)

// ofDate reports whether a part shows something of the date.
func (k kind) ofDate() bool { return k >= year && k <= fiscalYearEnd }

// told returns the kind that tells the same as this one.
func (k kind) told() kind {
	if k == fiscalYearEnd {
		return fiscalYear
	}
	return k
}

func (k kind) ofFiscal() bool { return k.told() == fiscalYear }

func (k kind) ofYear() bool { return k == year || k == weekYear || k.ofFiscal() }

// part is a literal text or a token.
type part struct {
	kind kind
	// at is the byte of the template at which the part begins.
	at int
	// text is the literal's text, or the token's name.
	text string
	// least and most bound the length of the part's text.
	least, most int
	// radix is that of the digits of a scrambled number, and 0 for every other part.
	radix uint64
}

func (p *part) varies() bool { return p.least != p.most }

// ofTwoDigits reports whether a part shows a year of 2000 to 2099 by its last two digits.
func (p *part) ofTwoDigits() bool { return p.kind.ofYear() && p.least == 2 }

// allows reports whether a text of the part may have a byte at an index.
func (p *part) allows(index int, c byte) bool {
	switch p.kind {
	case literal:
		return p.text[index] == c
	case value:
		return isDigit(c) || isLetter(c)
	case number:
		if p.radix > 10 {
			return strings.IndexByte(crockford, upper(c)) >= 0
		}
		return isDigit(c) && (c != '0' || index > 0 || p.least > 1)
	default:
		return isDigit(c)
	}
}

// longest returns the greatest length of a text of the part that begins with a byte: a
// number with a leading zero does not grow.
func (p *part) longest(first byte) int {
	if p.kind == number && first == '0' {
		return p.least
	}
	return p.most
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
