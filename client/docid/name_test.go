package docid_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/idnode/idnode/client/docid"
)

func TestParseName(t *testing.T) {
	longest := strings.Repeat("x", docid.MaxNameBytes)
	for in, want := range map[string]string{
		"users": "users", "users|": "users", "Users|": "Users", "users/": "users/", "users/|": "users/", "a|b": "a|b", "5": "5",
		longest: longest, longest + "|": longest,
	} {
		if got, err := docid.ParseName(in); err != nil || got != want {
			t.Errorf("ParseName(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestParseNameRefuses(t *testing.T) {
	for _, name := range []string{
		"", "|", "||", "users||", " ", "\u3000|", `us\ers`, "us\xffers", strings.Repeat("x", docid.MaxNameBytes+1), strings.Repeat("x", docid.MaxNameBytes+1) + "|",
	} {
		_, err := docid.ParseName(name)
		wantError(t, err, docid.ReasonInvalidName, "name")
	}
}

func TestValidateTag(t *testing.T) {
	for _, c := range [][2]string{
		{"users", "/"}, {"Raven/Hilo", ""}, {"x/", ":"}, {"a|b", "/"}, {"каталог", "/"}, {strings.Repeat("x", docid.MaxNameBytes), "/"},
	} {
		if err := docid.ValidateTag(c[0], c[1]); err != nil {
			t.Errorf("ValidateTag(%q, %q): %v", c[0], c[1], err)
		}
	}
	for _, c := range [][2]string{
		{"", "/"},
		{"  ", "/"},
		{"x/", "/"},
		{"x/", ""},
		{"x|", "/"},
		{"x|", ":"},
		{`x\y`, "/"},
		{"x\xff", "/"},
		{"xⓐ", "Ⓐ"},
		{strings.Repeat("x", docid.MaxNameBytes+1), "/"},
	} {
		wantError(t, docid.ValidateTag(c[0], c[1]), docid.ReasonInvalidTag, "tag")
	}
}

// The longest tag with the longest separator, number and node tag still makes a
// valid id, and no longer tag is accepted.
func TestValidateTagLeavesRoomForTheID(t *testing.T) {
	for _, separator := range []string{"/", "§", "€", "😀"} {
		room := docid.MaxIDBytes - len(separator) - len(strconv.Itoa(math.MaxInt64)) - len("-ABCD")
		longest := strings.Repeat("x", min(docid.MaxNameBytes, room))
		if err := docid.ValidateTag(longest, separator); err != nil {
			t.Error(err)
		}
		if err := docid.ValidateID(longest+separator+"9223372036854775807-ABCD", separator); err != nil {
			t.Error(err)
		}
		wantError(t, docid.ValidateTag(longest+"x", separator), docid.ReasonInvalidTag, "tag")
	}
}

func TestParseDatabase(t *testing.T) {
	longest := strings.Repeat("d", docid.MaxDatabaseBytes)
	for in, want := range map[string]string{
		"": docid.DefaultDatabase, "Northwind": "Northwind", "a.b_c-1": "a.b_c-1", longest: longest,
	} {
		if got, err := docid.ParseDatabase(in); err != nil || got != want {
			t.Errorf("ParseDatabase(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for _, db := range []string{" ", "a/b", "a b", "ä", "a\x00", "\xff", "K" + "\u212A", longest + "d", strings.Repeat("\xff", 40)} {
		_, err := docid.ParseDatabase(db)
		wantError(t, err, docid.ReasonInvalidDatabase, "database")
	}
}

// FuzzParseName checks that a name that was parsed parses to itself, with and
// without the pipe, and that its folded form fails for its length at most.
func FuzzParseName(f *testing.F) {
	for _, seed := range []string{"users", "users|", "users||", "|", "", "users/", " ", "ſⒶ|", "a\\b", "\xff", strings.Repeat("Ⱥ", 1000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := docid.ParseName(s)
		if err != nil {
			wantError(t, err, docid.ReasonInvalidName, "name")
			return
		}
		for _, spelling := range []string{name, name + "|"} {
			if again, err := docid.ParseName(spelling); err != nil || again != name {
				t.Errorf("ParseName(%q) = %q, and ParseName(%q) = %q, %v", s, name, spelling, again, err)
			}
		}
		folded := docid.Fold(name)
		if again, err := docid.ParseName(folded); len(folded) <= docid.MaxNameBytes && (err != nil || again != folded) {
			t.Errorf("the folded name %q parses to %q, %v", folded, again, err)
		}
		if got, err := docid.Parse(name+"|", "/"); err != nil || got.Name != name {
			t.Errorf("as a template, the name %q is %+v, %v", name, got, err)
		}
	})
}
