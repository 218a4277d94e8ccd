package docid

import (
	"bufio"
	"hash/crc32"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// tableVersion is the Unicode version of the frozen tables.
const tableVersion = "15.0.0"

// characters yields every code point of the planes in use, and a sample of the
// others, in which the tables and Unicode 15.0.0 have nothing.
func characters(yield func(rune) bool) {
	for r := rune(-1); r <= unicode.MaxRune+1; r++ {
		if !yield(r) {
			return
		}
		if unused := r > 0x3FFFF && r < 0xDFF00 || r > 0xEFFFF && r < 0x10FF00; unused {
			r += 250
		}
	}
}

// TestTablesAreFrozen fails when either table changes in any way. Do not adjust the
// sums: a change needs a new FoldVersion beside the old one (see doc.go).
func TestTablesAreFrozen(t *testing.T) {
	folding, separating := crc32.NewIEEE(), crc32.NewIEEE()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if to := foldRune(r); to != r {
			folding.Write([]byte(strconv.Itoa(int(r)) + ">" + strconv.Itoa(int(to)) + ";"))
		}
		if isSeparatorRune(r) {
			separating.Write([]byte(strconv.Itoa(int(r)) + ";"))
		}
	}
	if got, want := folding.Sum32(), uint32(0xB1A56A04); got != want {
		t.Errorf("the folding of version %d has the sum %#x, want %#x", FoldVersion, got, want)
	}
	if got, want := separating.Sum32(), uint32(0x6C3ECB71); got != want {
		t.Errorf("the separators of version %d have the sum %#x, want %#x", FoldVersion, got, want)
	}
}

// TestFoldRuneIsTheDatabase compares every code point with the Unicode Character
// Database.
func TestFoldRuneIsTheDatabase(t *testing.T) {
	foldings := readFoldings(t)
	for r := range characters {
		want, listed := foldings[r]
		if !listed {
			want = r
		}
		if got := foldRune(r); got != want {
			t.Errorf("foldRune(%U) = %U, want %U", r, got, want)
		}
	}
}

// TestFoldRuneAgreesWithEqualFold compares every code point with its neighbours in
// the orbit that the unicode package knows, which strings.EqualFold goes by.
func TestFoldRuneAgreesWithEqualFold(t *testing.T) {
	for r := range characters {
		folded := foldRune(r)
		if again := foldRune(folded); again != folded {
			t.Errorf("folding %U gives %U, folding that gives %U", r, folded, again)
		}
		if unicode.Version != tableVersion || !utf8.ValidRune(r) {
			continue
		}
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if foldRune(other) != folded {
				t.Errorf("%U folds to %U, but %U, which equals it, to %U", r, folded, other, foldRune(other))
			}
		}
		if folded != r && !strings.EqualFold(string(r), string(folded)) {
			t.Errorf("%U folds to %U, which EqualFold does not take for equal", r, folded)
		}
	}
}

// TestSeparatorRules compares every code point with the rule in words.
func TestSeparatorRules(t *testing.T) {
	for r := range characters {
		if unicode.Version == tableVersion {
			if got, want := isSeparatorRune(r), separates(r); got != want {
				t.Errorf("isSeparatorRune(%U) = %v, want %v", r, got, want)
			}
		}
		if isSeparatorRune(r) != isSeparatorRune(foldRune(r)) {
			t.Errorf("%U and what it folds to, %U, are not both separators", r, foldRune(r))
		}
		if isSeparatorRune(r) && isSpace(r) {
			t.Errorf("%U is a separator and a space", r)
		}
		if r < utf8.RuneSelf && isSeparatorRune(r) && foldRune(r) != r {
			t.Errorf("the ASCII separator %q folds", r)
		}
		if r >= utf8.RuneSelf && foldRune(r) < utf8.RuneSelf && !unicode.IsLetter(foldRune(r)) {
			t.Errorf("%U folds to the ASCII character %q, which is no letter", r, foldRune(r))
		}
	}
}

// separates is the rule for a separator in the words of the unicode package.
func separates(r rune) bool {
	switch {
	case r == '-', r == '\\', r == '|', r == unicode.ReplacementChar:
		return false
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), unicode.IsSpace(r), unicode.IsControl(r):
		return false
	case unicode.In(r, unicode.C):
		return false // Format characters, surrogates, private use.
	default:
		return unicode.IsGraphic(r) // Not unassigned.
	}
}

// TestIsSpaceIsWhiteSpace compares every code point with the property.
func TestIsSpaceIsWhiteSpace(t *testing.T) {
	if unicode.Version != tableVersion {
		t.Skipf("the unicode package is of version %s, the rule of %s", unicode.Version, tableVersion)
	}
	for r := rune(-1); r <= unicode.MaxRune; r++ {
		if got, want := isSpace(r), unicode.IsSpace(r); got != want {
			t.Errorf("isSpace(%U) = %v, want %v", r, got, want)
		}
	}
}

// readFoldings reads the mappings that the table was made of.
func readFoldings(t *testing.T) map[rune]rune {
	t.Helper()
	file, err := os.Open("testdata/CaseFolding-" + tableVersion + "-CS.txt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	foldings := map[rune]rune{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Split(strings.TrimSuffix(lines.Text(), ";"), "; ")
		if len(fields) == 3 && !strings.HasPrefix(fields[0], "#") {
			foldings[parseHex(t, fields[0])] = parseHex(t, fields[2])
		}
	}
	if len(foldings) != 1454 {
		t.Fatalf("read %d foldings, want 1454", len(foldings))
	}
	return foldings
}

func parseHex(t *testing.T, s string) rune {
	t.Helper()
	n, err := strconv.ParseInt(s, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	return rune(n)
}
