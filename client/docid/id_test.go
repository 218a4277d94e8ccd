package docid_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/idnode/idnode/client/docid"
)

func TestValidateID(t *testing.T) {
	for _, c := range []struct{ name, id, separator string }{
		{"a semantic id", "users/ayende@example.org", ""},
		{"the longest", strings.Repeat("x", docid.MaxIDBytes), "/"},
		{"a pipe inside", "a|b", "/"},
		{"another separator at the end", "users/", ":"},
		{"only a separator of others", "/", ":"},
		{"letters of every kind", "каталог/字😀", "/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := docid.ValidateID(c.id, c.separator); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestValidateIDRefuses(t *testing.T) {
	for _, c := range []struct{ name, id, separator string }{
		{"empty", "", "/"},
		{"white space", " \t\u2003", "/"},
		{"too long", strings.Repeat("x", docid.MaxIDBytes+1), "/"},
		{"a backslash", `a\b`, "/"},
		{"invalid UTF-8", "a\xff", "/"},
		{"a template for a server-side id", "users/", ""},
		{"a template for an identity", "users|", "/"},
		{"a separator that folds", "usersⒶ", "Ⓐ"},
		{"its other spelling", "usersⓐ", "Ⓐ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, docid.ValidateID(c.id, c.separator), docid.ReasonInvalidID, "id")
		})
	}
}

func TestServerSideID(t *testing.T) {
	for _, c := range []struct {
		etag uint64
		tag  string
		want string
	}{
		{0, "A", "users/0000000000000000000-A"},
		{42, "A", "users/0000000000000000042-A"},
		{math.MaxInt64, "ZZZZ", "users/9223372036854775807-ZZZZ"},
		{9_999_999_999_999_999_999, "B", "users/9999999999999999999-B"},
		{10_000_000_000_000_000_000, "B", "users/10000000000000000000-B"},
		{math.MaxUint64, "B", "users/18446744073709551615-B"},
	} {
		if got := docid.ServerSideID("users/", c.etag, c.tag); got != c.want {
			t.Errorf("ServerSideID(%d, %s) = %q, want %q", c.etag, c.tag, got, c.want)
		}
	}
}

func TestServerSideIDAllocatesOnce(t *testing.T) {
	if got := testing.AllocsPerRun(100, func() { docid.ServerSideID("users/", 42, "A") }); got != 1 {
		t.Errorf("ServerSideID allocates %v times, want once", got)
	}
}

func TestCheckServerSide(t *testing.T) {
	for _, tag := range []string{"A", "ZA", "ZZA", "ZZZA"} {
		fits := strings.Repeat("x", docid.MaxIDBytes-len("0000000000000000042-")-len(tag)-1) + "/"
		if err := docid.CheckServerSide(fits, tag); err != nil {
			t.Error(err)
		}
		if err := docid.ValidateID(docid.ServerSideID(fits, 42, tag), "/"); err != nil {
			t.Error(err)
		}
		wantError(t, docid.CheckServerSide("x"+fits, tag), docid.ReasonInvalidID, "template")
	}
}

func TestIdentityID(t *testing.T) {
	for value, want := range map[int64]string{
		1: "users/1", math.MaxInt64: "users/9223372036854775807", 0: "users/0", -3: "users/-3",
	} {
		if got := docid.IdentityID("users", "/", value); got != want {
			t.Errorf("IdentityID(%d) = %q, want %q", value, got, want)
		}
	}
}

func TestSplitNumbered(t *testing.T) {
	for _, c := range []struct {
		id, name, separator string
		value               int64
	}{
		{"companies/5", "companies", "/", 5},
		{"Companies:50", "Companies", ":", 50},
		{"users//7", "users/", "/", 7},
		{"x😀1", "x", "😀", 1},
		{"xⒶ1", "x", "Ⓐ", 1},
		{"a/1/2", "a/1", "/", 2},
		{"a1/2", "a1", "/", 2},
		{"a|b/9223372036854775807", "a|b", "/", math.MaxInt64},
		{strings.Repeat("x", 3000) + "/5", strings.Repeat("x", 3000), "/", 5},
	} {
		name, separator, value, ok := docid.SplitNumbered(c.id)
		if !ok || name != c.name || separator != c.separator || value != c.value {
			t.Errorf("SplitNumbered(%q) = %q, %q, %d, %v", c.id, name, separator, value, ok)
		}
	}
}

func TestSplitNumberedRefuses(t *testing.T) {
	for _, id := range []string{
		"", "5", "/5", "users", "users/", "users/0", "users/05", "users/-5", "users-5", "users5", "users 5", "users|5", `users\5`,
		"users/9223372036854775808", "users/18446744073709551617", "users/99999999999999999999", "users/0000000000000000042-A",
		"users/٥", "users|/5", " /5", "us\\ers/5", "us\xffers/5", "users\xff5", "users\ufffd5", "users\u03015",
	} {
		name, separator, value, ok := docid.SplitNumbered(id)
		if ok || name != "" || separator != "" || value != 0 {
			t.Errorf("SplitNumbered(%q) = %q, %q, %d, %v", id, name, separator, value, ok)
		}
	}
}

// TestNodeTagOf: every id that a node gives is known as that node's, under every separator and folded too, and others are
// not.
func TestNodeTagOf(t *testing.T) {
	for id, want := range map[string]string{
		"users/3-A": "A", "users/3-a": "A", "users:3-ZA": "ZA", "xⒶ1-B": "B", "a/b/9223372036854775807-ABCD": "ABCD", "/1-A": "A",
		docid.ServerSideID("srv/", 7, "A"): "A", docid.Fold(docid.ServerSideID("Srv/", math.MaxInt64, "KS")): "KS",
		"users/03-A": "", "users/0-A": "", "users/-A": "", "users-3-A": "", "users3-A": "", "3-A": "", "users/3A": "", "users/3-": "",
		"users/3-ABCDE": "", "users/3-A1": "", "users/3-raft": "", "users/3-Ä": "", "users/3": "", "": "", "-": "", "users|3-A": "",
		"users/00000000000000000042-A": "", "users/3-A-": "", "users/٣-A": "",
	} {
		if tag, ok := docid.NodeTagOf(id); ok != (want != "") || ok && tag != want {
			t.Errorf("NodeTagOf(%q) = %q, %v, want %q", id, tag, ok, want)
		}
	}
}

// FuzzNodeTagOf: what nodes give is known as theirs.
func FuzzNodeTagOf(f *testing.F) {
	f.Add("users", "/", uint64(3), "A")
	f.Add("Ⱥ", "Ⓐ", uint64(1)<<62, "KS")
	f.Fuzz(func(t *testing.T, name, separator string, number uint64, tag string) {
		sep, err := docid.ParseSeparator(separator)
		if err != nil || number == 0 || number > math.MaxInt64 || docid.ValidateNodeTag(tag) != nil || docid.ValidateTag(name, sep) != nil {
			return
		}
		for _, id := range []string{docid.ServerSideID(name+sep, number, tag), docid.IdentityID(name, sep, int64(number)) + "-" + tag} {
			for _, id := range []string{id, docid.Fold(id)} {
				if got, ok := docid.NodeTagOf(id); !ok || got != tag {
					t.Errorf("NodeTagOf(%q) = %q, %v, want %q", id, got, ok, tag)
				}
			}
		}
	})
}

// A claim of a folded id must be found under the folded name even where folding
// made the name longer than a name may be.
func TestSplitNumberedTakesFoldedNamesOfAnyLength(t *testing.T) {
	name := strings.Repeat("Ⱥ", docid.MaxNameBytes/2)
	if _, err := docid.ParseName(name); err != nil {
		t.Fatal(err)
	}
	got, _, value, ok := docid.SplitNumbered(docid.Fold(docid.IdentityID(name, "/", 5)))
	if !ok || got != docid.Fold(name) || value != 5 {
		t.Errorf("got a name of %d bytes, %d, %v", len(got), value, ok)
	}
}

// FuzzSplitNumbered checks that the parts make the id again, that they are parts
// an identity has, and that splitting commutes with folding.
func FuzzSplitNumbered(f *testing.F) {
	for _, seed := range []string{
		"companies/5", "users//7", "xⒶ1", "x/0", "x/05", "x/9223372036854775807", "x/9223372036854775808", "K\u212A/1", "x|/1",
		"\xff/1", "x\xff1", "Ⅷ1", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		name, separator, value, ok := docid.SplitNumbered(id)
		folded, foldedSeparator, foldedValue, foldedOK := docid.SplitNumbered(docid.Fold(id))
		if ok != foldedOK || folded != docid.Fold(name) || foldedSeparator != docid.Fold(separator) || foldedValue != value {
			t.Errorf("%q splits into %q, %q, %d, %v, folded into %q, %q, %d, %v",
				id, name, separator, value, ok, folded, foldedSeparator, foldedValue, foldedOK)
		}
		if !ok {
			return
		}
		if again := docid.IdentityID(name, separator, value); again != id || value < 1 {
			t.Errorf("%q splits into %q, %q, %d, which make %q", id, name, separator, value, again)
		}
		if parsed, err := docid.ParseName(name); len(name) <= docid.MaxNameBytes && (err != nil || parsed != name) {
			t.Errorf("%q has the name %q, which parses to %q, %v", id, name, parsed, err)
		}
		if got, err := docid.ParseSeparator(separator); err != nil || got != separator {
			t.Errorf("%q has the separator %q: %v", id, separator, err)
		}
	})
}

// FuzzIdentityID checks that every id an identity gives splits into what it was made
// of: what the stepping over claims rests on.
func FuzzIdentityID(f *testing.F) {
	f.Add("users", "/", int64(1))
	f.Add("users/|", ":", int64(math.MaxInt64))
	f.Add("a1", "Ⓐ", int64(10))
	f.Fuzz(func(t *testing.T, name, separator string, value int64) {
		name, err := docid.ParseName(name)
		separator, separatorErr := docid.ParseSeparator(separator)
		if err != nil || separatorErr != nil || value < 1 {
			return
		}
		id := docid.IdentityID(name, separator, value)
		if err := docid.ValidateID(id, separator); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		gotName, gotSeparator, gotValue, ok := docid.SplitNumbered(id)
		if !ok || gotName != name || gotSeparator != separator || gotValue != value {
			t.Errorf("SplitNumbered(%q) = %q, %q, %s, %v", id, gotName, gotSeparator, strconv.FormatInt(gotValue, 10), ok)
		}
	})
}
