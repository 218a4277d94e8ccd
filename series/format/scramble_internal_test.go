package format

import (
	"crypto/aes"
	"encoding/hex"
	"strings"
	"testing"
	"time"
)

// TestFF1Samples has those of NIST's FF1 samples whose halves have at most 32 bits.
func TestFF1Samples(t *testing.T) {
	for _, tt := range []struct {
		key, tweak string
		want       uint64
	}{
		{"2B7E151628AED2A6ABF7158809CF4F3C", "", 2433477484},
		{"2B7E151628AED2A6ABF7158809CF4F3C", "39383736353433323130", 6124200773},
		{"2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F", "", 2830668132},
		{"2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F", "39383736353433323130", 2496655549},
		{"2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94", "", 6657667009},
		{"2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94", "39383736353433323130", 1001623463},
	} {
		key, _ := hex.DecodeString(tt.key)
		tweak, _ := hex.DecodeString(tt.tweak)
		block, err := aes.NewCipher(key)
		if err != nil {
			t.Fatal(err)
		}
		f := ff1{block, 10, 10}
		if got := f.encrypt(123456789, tweak); got != tt.want {
			t.Errorf("%s, tweak %q: %010d, want %d", tt.key, tt.tweak, got, tt.want)
		}
		if got := f.decrypt(tt.want, tweak); got != 123456789 {
			t.Errorf("%s, tweak %q: decrypted to %d", tt.key, tt.tweak, got)
		}
	}
}

// TestScramblingIsAPermutation of a whole small domain, with halves of one and of two lengths.
func TestScramblingIsAPermutation(t *testing.T) {
	block, _ := aes.NewCipher(make([]byte, 16))
	for _, f := range []ff1{{block, 32, 3}, {block, 10, 4}, {block, 10, 5}} {
		all := power(f.radix, f.digits)
		seen := make([]bool, all)
		for x := range all {
			y := f.encrypt(x, []byte("2026/berlin"))
			if y >= all || seen[y] || f.decrypt(y, []byte("2026/berlin")) != x {
				t.Fatalf("%+v: %d becomes %d", f, x, y)
			}
			seen[y] = true
		}
	}
}

// TestScrambledTexts are read again, in any case, and depend on the secret and the scope.
func TestScrambledTexts(t *testing.T) {
	for _, template := range []string{
		"W{scrambled:8}", "{year}-{scrambled:5}{check:mod97-10}", "{scrambled-digits:8}{check:damm}",
		"{branch}-{scrambled:12}", "{scrambled-digits:18}",
	} {
		f, err := Define(template, ResetNever)
		if err != nil || !f.Scrambled() {
			t.Fatal(template, err)
		}
		d := DateOf(2026, time.November, 29)
		values := [][]string{nil, {"A"}}[len(f.Names())]
		one, other := f.WithSecret([]byte("one")), f.WithSecret([]byte("other"))
		seen := map[string]bool{}
		for n := range int64(500) {
			text, err := one.Format(d, values, n+1)
			if err != nil || seen[text] {
				t.Fatal(template, text, err)
			}
			seen[text] = true
			for _, s := range []string{text, "W" + strings.ToLower(text[1:])} {
				if s[0] != text[0] { // Literal text has a case.
					s = strings.ToLower(text)
				}
				got, err := one.Parse(s)
				if err != nil || got.Number != n+1 {
					t.Fatalf("%s: %s is %+v, %v, want %d", template, s, got, err, n+1)
				}
			}
			if again, _ := other.Format(d, values, n+1); again == text {
				t.Errorf("%s: number %d is %s with two secrets", template, n+1, text)
			}
		}
	}
	f, _ := Define("{branch}-{scrambled:8}", ResetNever)
	f = f.WithSecret(nil)
	a, _ := f.Format(0, []string{"A"}, 1)
	b, _ := f.Format(0, []string{"B"}, 1)
	if a[2:] == b[2:] {
		t.Errorf("the first numbers of two branches are %s and %s", a, b)
	}
}

// TestTokensOfScrambledNumbers: what cannot be one is refused.
func TestTokensOfScrambledNumbers(t *testing.T) {
	for _, template := range []string{
		"{scrambled}", "{scrambled:3}", "{scrambled:13}", "{scrambled:8+}", "{scrambled-digits:5}", "{scrambled-digits:19}",
		"{number}-{scrambled:8}", "{scrambled:8}{scrambled-digits:8}", "{scrambled:8}{check:damm}", "{branch}{scrambled:8}-{scrambled:8}",
	} {
		if _, err := Define(template, ResetNever); err == nil {
			t.Errorf("%s is a format", template)
		}
	}
	f, err := Define("{scrambled:8}", ResetNever)
	if err != nil || f.Most() != 1<<40-1 {
		t.Fatalf("%v, %d", err, f.Most())
	}
	for _, text := range []string{"0000000I", "0000000l", "0000000O", "000000-0", "0000000U"} {
		if _, err := f.Parse(text); err == nil {
			t.Errorf("%s is a text", text)
		}
	}
}
