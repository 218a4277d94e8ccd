package format

// check computes the check digits of a text.
type check struct {
	name   string
	width  int
	digits func(text string) string
}

// checks has every check by name.
var checks = []check{
	{"luhn", 1, luhn},
	{"damm", 1, damm},
	{"verhoeff", 1, verhoeff},
	{"mod11-10", 1, mod1110},
	{"mod97-10", 2, mod9710},
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// digit returns the text of 0 to 9.
func digit(n int) string { return string(rune('0' + n)) }

// luhn is ISO/IEC 7812-1, annex B.
func luhn(text string) string {
	sum, double := 0, true
	for i := len(text) - 1; i >= 0; i-- {
		if !isDigit(text[i]) {
			continue
		}
		n := int(text[i] - '0')
		if double {
			n = n*2/10 + n*2%10
		}
		sum += n
		double = !double
	}
	return digit((10 - sum%10) % 10)
}

// dammTable is the quasigroup of order 10 from H. M. Damm's dissertation, 2004.
var dammTable = [10]string{
	"0317598642", "7092154863", "4206871359", "1750983426", "6123045978",
	"3674209581", "5869720134", "8945362017", "9438617205", "2581436790",
}

func damm(text string) string {
	state := 0
	for i := range len(text) {
		if isDigit(text[i]) {
			state = int(dammTable[state][text[i]-'0'] - '0')
		}
	}
	return digit(state)
}

// The tables of J. Verhoeff, Error Detecting Decimal Codes, 1969: the group of a
// pentagon's symmetries, its inverses, and the powers of a permutation.
var (
	verhoeffProduct = [10]string{
		"0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
		"5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
	}
	verhoeffPower = [8]string{
		"0123456789", "1576283094", "5803796142", "8916043527",
		"9453126870", "4286573901", "2793806415", "7046913258",
	}
	verhoeffInverse = "0432156789"
)

func verhoeff(text string) string {
	state, place := 0, 1
	for i := len(text) - 1; i >= 0; i-- {
		if isDigit(text[i]) {
			n := verhoeffPower[place%8][text[i]-'0'] - '0'
			state = int(verhoeffProduct[state][n] - '0')
			place++
		}
	}
	return verhoeffInverse[state : state+1]
}

// mod1110 is the hybrid system MOD 11,10 of ISO/IEC 7064.
func mod1110(text string) string {
	product := 10
	for i := range len(text) {
		if !isDigit(text[i]) {
			continue
		}
		sum := (product + int(text[i]-'0')) % 10
		if sum == 0 {
			sum = 10
		}
		product = sum * 2 % 11
	}
	return digit((11 - product) % 10)
}

// mod9710 is the pure system MOD 97-10 of ISO/IEC 7064, with letters as two digits.
func mod9710(text string) string {
	rest := 0
	for i := range len(text) {
		switch c := text[i] | 0x20; {
		case isDigit(text[i]):
			rest = (rest*10 + int(text[i]-'0')) % 97
		case c >= 'a' && c <= 'z':
			rest = (rest*100 + int(c-'a') + 10) % 97
		}
	}
	n := 98 - rest*100%97
	return digit(n/10) + digit(n%10)
}
