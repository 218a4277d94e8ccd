// Package format is the text of a document's number: INV-{branch}-{year}-{number:6}{check:damm}.
//
// It owns the tokens, the check digits, and the rule that two different numbers never
// have one text: Define decides that once, for all dates, values and numbers. It does not
// own the counters; package series has them.
//
// A format is literal text and tokens in braces, each at most once:
//
//	{year} {yy}             the date's year, with four or two digits; two digits mean 2000 to 2099
//	{month} {day}           two digits each
//	{week} {week-year}      the week of ISO 8601 and the year that it belongs to
//	{fiscal-year:04-01}     the year in which the fiscal year begins, here on 1 April
//	{fiscal-year-end:04-01} the year in which it ends
//	{fiscal-yy:04-01}       the year in which it begins, with two digits, as {yy}
//	{fiscal-yy-end:04-01}   the year in which it ends, so too
//	{branch} {branch:3}     a scope value of that name, of any width or of this one
//	{number}                the number without leading zeros
//	{number:6} {number:6+}  the number with six digits; with + it may grow beyond them
//	{scrambled:8}           the number as eight letters and digits that do not tell how many there are
//	{scrambled-digits:8}    so too, as eight digits
//	{check:damm}            a check on all text before it: luhn, damm, verhoeff, mod11-10, mod97-10
//
// The checks of one digit count the digits before them. The two digits of mod97-10 count
// letters too, A as 10 to Z as 35, as in an IBAN. Other characters do not count.
//
// Scrambled numbers are a permutation of all numbers of their width, FF1 of NIST SP 800-38G, by a secret of the
// series and the scope. So two numbers never have one text. Who has the secret can tell them; who has not learns
// nothing from a text, but can guess others where the width is small. They have no case.
//
// Everything here is pure: no clock, no zone tables, no I/O. A Format is immutable.
package format

const (
	// MaxTemplateBytes is the greatest length of a template.
	MaxTemplateBytes = 256
	// MaxTextBytes is the greatest length that a text of a format can have.
	MaxTextBytes = 128
	// MaxValueBytes is the greatest length of a scope value.
	MaxValueBytes = 16
	// MaxDigits is the greatest number of digits of a number.
	MaxDigits = 18
	// maxNumber is the greatest number of MaxDigits digits.
	maxNumber = 1e18 - 1
)
