package format

// kind is what a part of a format shows.
type kind uint8

const (
	literal kind = iota
	year
	yy
	month
	day
	week
	weekYear
	fiscalYear
	fiscalYearEnd
	fiscalYY
	fiscalYYEnd
	number
	checkDigits
	value
)

// ofDate reports whether a part shows something of the date.
func (k kind) ofDate() bool { return k >= year && k <= fiscalYYEnd }

// whole returns the kind of four digits that tells, within a century, what this one tells.
func (k kind) whole() kind {
	switch {
	case k == yy:
		return year
	case k.ofFiscal():
		return fiscalYear
	}
	return k
}

func (k kind) ofFiscal() bool { return k >= fiscalYear && k <= fiscalYYEnd }

// ofEnd reports whether a part shows the year in which a fiscal year ends.
func (k kind) ofEnd() bool { return k == fiscalYearEnd || k == fiscalYYEnd }

// ofTwoDigits reports whether a part shows a year of 2000 to 2099 by its last two digits.
func (k kind) ofTwoDigits() bool { return k == yy || k == fiscalYY || k == fiscalYYEnd }

func (k kind) ofYear() bool { return k == year || k == yy || k == weekYear || k.ofFiscal() }

func (k kind) name() string {
	for name, p := range dateTokens {
		if p.kind == k {
			return name
		}
	}
	return ""
}

// part is a literal text or a token.
type part struct {
	kind kind
	// at is the byte of the template at which the part begins.
	at int
	// text is the literal's text, or the name of a scope value.
	text string
	// least and most bound the length of the part's text.
	least, most int
}

func (p *part) varies() bool { return p.least != p.most }

// allows reports whether a text of the part may have a byte at an index.
func (p *part) allows(index int, c byte) bool {
	switch p.kind {
	case literal:
		return p.text[index] == c
	case value:
		return isDigit(c) || isLetter(c)
	case number:
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
