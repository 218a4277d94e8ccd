package docid_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/client/docid"
)

func TestValidateNodeTag(t *testing.T) {
	for _, tag := range []string{"A", "Z", "ZA", "AB", "ABCD", "ZZZZ", "RAF", "TFAR"} {
		if err := docid.ValidateNodeTag(tag); err != nil {
			t.Errorf("ValidateNodeTag(%q): %v", tag, err)
		}
	}
	for _, tag := range []string{"", "a", "AAAAA", "A1", "1A", "A1B", "RAFT", "Ä", "A ", "A\x00", "\xff", strings.Repeat("A", 5000), "Ａ"} {
		wantError(t, docid.ValidateNodeTag(tag), docid.ReasonInvalidNodeTag, "tag")
	}
}

func TestNextNodeTag(t *testing.T) {
	for highest, want := range map[string]string{
		"": "A", "A": "B", "Y": "Z", "Z": "ZA", "ZA": "ZB", "ZZ": "ZZA", "ZZZ": "ZZZA", "ZZZY": "ZZZZ", "RAFS": "RAFU", "AB": "AC",
	} {
		if got, err := docid.NextNodeTag(highest); err != nil || got != want {
			t.Errorf("NextNodeTag(%q) = %q, %v, want %q", highest, got, err, want)
		}
	}
	for _, highest := range []string{"ZZZZ", "ABCZ"} {
		if _, err := docid.NextNodeTag(highest); !errors.Is(err, docid.ErrTagsExhausted) {
			t.Errorf("NextNodeTag(%q) fails with %v, want ErrTagsExhausted", highest, err)
		}
	}
	_, err := docid.NextNodeTag("RAFT")
	wantError(t, err, docid.ReasonInvalidNodeTag, "tag")
}

// All tags that a cluster ever gives by itself are valid, different, and ascending.
func TestNextNodeTagGoesThroughAll(t *testing.T) {
	var all []string
	for tag, err := docid.NextNodeTag(""); ; tag, err = docid.NextNodeTag(tag) {
		if errors.Is(err, docid.ErrTagsExhausted) {
			break
		}
		if err != nil || docid.ValidateNodeTag(tag) != nil {
			t.Fatalf("after %v comes %q, %v", all, tag, err)
		}
		all = append(all, tag)
	}
	if len(all) != 4*26 || all[len(all)-1] != "ZZZZ" {
		t.Errorf("there are %d tags, the last is %q", len(all), all[len(all)-1])
	}
	if !slices.IsSortedFunc(all, docid.CompareNodeTags) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("the tags do not ascend: %v", all)
	}
}
