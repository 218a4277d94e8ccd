package format

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/idnode/idnode/client/docid"
)

// crockford are the digits of Douglas Crockford's base 32, without the letters I, L, O and U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// scrambles has the tokens of numbers that do not tell how many there are: their radix, and their least and greatest
// width. FF1 wants a million numbers at least, and ff1.crypt at most 32 bits in a half.
var scrambles = map[string]struct {
	radix       uint64
	least, most int
}{
	"scrambled": {32, 4, 12}, "scrambled-digits": {10, 6, MaxDigits},
}

// Scrambled reports whether the texts of numbers depend on a secret.
func (f *Format) Scrambled() bool { return f.counter().radix > 0 }

// WithSecret returns the format whose scrambled numbers depend on a secret. Without one they are only written in
// their digits.
func (f *Format) WithSecret(secret []byte) *Format {
	key := sha256.Sum256(secret)
	block, _ := aes.NewCipher(key[:]) // It refuses no key of 32 bytes.
	with := *f
	with.secret = block
	return &with
}

// counter returns the part that shows the number.
func (f *Format) counter() *part {
	for i := range f.parts {
		if f.parts[i].kind == number {
			return &f.parts[i]
		}
	}
	return &part{}
}

// scramble returns the digits of a number of a scope.
func (f *Format) scramble(p *part, scope []string, n int64) string {
	x := uint64(n)
	if f.secret != nil {
		x = ff1{f.secret, p.radix, p.least}.encrypt(x, tweakOf(scope))
	}
	digits := make([]byte, p.least)
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = crockford[x%p.radix]
		x /= p.radix
	}
	return string(digits)
}

// unscramble returns the number of a scope that has some digits, as scrambledOf read them.
func (f *Format) unscramble(p *part, scope []string, digits int64) int64 {
	if f.secret == nil {
		return digits
	}
	return int64(ff1{f.secret, p.radix, p.least}.decrypt(uint64(digits), tweakOf(scope)))
}

// tweakOf has each scope have a permutation of its own: the first numbers of two years do not look alike.
func tweakOf(scope []string) []byte { return []byte(docid.Fold(strings.Join(scope, "/"))) }

// scrambledOf reads digits that the part allows.
func scrambledOf(s string, radix uint64) (x int64) {
	for i := range len(s) {
		x = x*int64(radix) + int64(strings.IndexByte(crockford, upper(s[i])))
	}
	return x
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}

// ff1 is FF1 of NIST SP 800-38G, a permutation of the numbers of so many digits of a radix. The halves of a number
// have at most 32 bits: then all that is counted fits into 64.
type ff1 struct {
	block  cipher.Block
	radix  uint64
	digits int
}

func (f ff1) encrypt(x uint64, tweak []byte) uint64 {
	u, v := f.halves()
	a, b := x/v, x%v
	for round := range 10 {
		m := u
		if round%2 == 1 {
			m = v
		}
		a, b = b, (a+f.round(round, b, tweak)%m)%m
	}
	return a*v + b
}

func (f ff1) decrypt(x uint64, tweak []byte) uint64 {
	u, v := f.halves()
	a, b := x/v, x%v
	for round := 9; round >= 0; round-- {
		m := u
		if round%2 == 1 {
			m = v
		}
		a, b = (b+m-f.round(round, a, tweak)%m)%m, a
	}
	return a*v + b
}

// halves returns how many numbers the first and the second half of the digits can be.
func (f ff1) halves() (u, v uint64) {
	return power(f.radix, f.digits/2), power(f.radix, f.digits-f.digits/2)
}

func power(base uint64, exponent int) uint64 {
	p := uint64(1)
	for range exponent {
		p *= base
	}
	return p
}

// round is steps 6.i to 6.iv of the algorithm: y of a round, the half that does not change, and the tweak.
func (f ff1) round(round int, half uint64, tweak []byte) uint64 {
	_, v := f.halves()
	width := (bits.Len64(v-1) + 7) / 8 // b of the standard. d is 8 for a width of at most 4.
	q := make([]byte, 16, 48+len(tweak))
	q[0], q[1], q[6], q[7] = 1, 2, 10, byte(f.digits/2)
	binary.BigEndian.PutUint32(q[2:], 1<<24|uint32(f.radix))
	binary.BigEndian.PutUint32(q[8:], uint32(f.digits))
	binary.BigEndian.PutUint32(q[12:], uint32(len(tweak)))
	q = append(q, tweak...)
	for (len(q)+1+width)%16 != 0 {
		q = append(q, 0)
	}
	q = append(q, byte(round))
	for i := width - 1; i >= 0; i-- {
		q = append(q, byte(half>>(8*i)))
	}
	var mac [16]byte
	for ; len(q) > 0; q = q[16:] {
		for i := range mac {
			mac[i] ^= q[i]
		}
		f.block.Encrypt(mac[:], mac[:])
	}
	return binary.BigEndian.Uint64(mac[:])
}
