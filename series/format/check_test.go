package format

import "testing"

// TestPublishedCheckDigits has examples that others published.
func TestPublishedCheckDigits(t *testing.T) {
	for _, tt := range []struct{ check, text, digits, source string }{
		{"luhn", "7992739871", "3", "Wikipedia, Luhn algorithm"},
		{"luhn", "1789372997", "4", "Wikipedia, Luhn algorithm, before 2024"},
		{"luhn", "411111111111111", "1", "test number of a card"},
		{"damm", "572", "4", "Wikipedia, Damm algorithm"},
		{"verhoeff", "236", "3", "Wikipedia, Verhoeff algorithm"},
		{"verhoeff", "12345", "1", "Rosetta Code, Verhoeff algorithm"},
		{"verhoeff", "123456789012", "0", "Rosetta Code, Verhoeff algorithm"},
		{"mod11-10", "0794", "5", "ISO/IEC 7064, MOD 11,10"},
		{"mod11-10", "8609574271", "9", "German tax number, test number"},
		{"mod11-10", "4703689281", "6", "German tax number, test number"},
		{"mod97-10", "794", "44", "ISO/IEC 7064, MOD 97-10"},
		{"mod97-10", "WEST12345698765432GB", "82", "IBAN of the United Kingdom"},
		{"mod97-10", "370400440532013000DE", "89", "IBAN of Germany"},
		{"mod97-10", "539007547034RF", "18", "ISO 11649, a creditor's reference"},
	} {
		for _, c := range checks {
			if got := c.digits(tt.text); c.name == tt.check && got != tt.digits {
				t.Errorf("%s of %s is %s, want %s (%s)", tt.check, tt.text, got, tt.digits, tt.source)
			}
		}
	}
}

// TestChecksFindOneWrongDigit: each check tells any one wrong digit, and all but Luhn's any
// two neighbours that changed places.
func TestChecksFindOneWrongDigit(t *testing.T) {
	const text = "INV-2026-0918273645"
	for _, c := range checks {
		right := c.digits(text)
		for i := range len(text) {
			if !isDigit(text[i]) {
				continue
			}
			for n := range 10 {
				wrong := text[:i] + digit(n) + text[i+1:]
				if wrong != text && c.digits(wrong) == right {
					t.Errorf("%s does not tell %s from %s", c.name, wrong, text)
				}
			}
			if i+1 == len(text) || text[i] == text[i+1] || !isDigit(text[i+1]) || c.name == "luhn" {
				continue
			}
			swapped := text[:i] + text[i+1:i+2] + text[i:i+1] + text[i+2:]
			if c.digits(swapped) == right {
				t.Errorf("%s does not tell %s from %s", c.name, swapped, text)
			}
		}
	}
}
