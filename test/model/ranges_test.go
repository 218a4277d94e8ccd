package model

import (
	"errors"
	"strings"
	"testing"
)

// Each rule of spec/hilo.pml has steps that it allows, and steps that it does not. A tag
// begins with 1 to 4 of token 7, and 5 to 8 of token 8.
func TestRanges(t *testing.T) {
	for _, tt := range []struct {
		name, why string // An empty why is a step that is allowed.
		steps     func(r *Ranges) error
	}{
		{"the next numbers", "", func(r *Ranges) error { return r.Issue(9, 12, 0, 9) }},
		{"numbers of another", "a caller has 5 to 8", func(r *Ranges) error { return r.Issue(8, 12, 0, 9) }},
		{"above what the caller knows", "", func(r *Ranges) error { return r.Issue(21, 24, 20, 9) }},
		{"not above what the caller knows", "20 is taken", func(r *Ranges) error { return r.Issue(9, 12, 20, 9) }},
		{"an unused rest comes back", "", func(r *Ranges) error { return errors.Join(r.Return(5, 8, 6, 8, true), r.Issue(7, 10, 0, 9)) }},
		{"all of it, and all of the one before", "", func(r *Ranges) error {
			return errors.Join(r.Return(5, 8, 4, 8, true), r.Return(1, 4, 0, 7, true), r.Issue(1, 9, 0, 9))
		}},
		{"it comes back to a caller of RavenDB's calls", "", func(r *Ranges) error { return r.Return(0, 8, 6, 0, false) }},
		{"a used number is issued again", "a caller has 5 to 6", func(r *Ranges) error {
			return errors.Join(r.Return(5, 8, 6, 8, true), r.Issue(6, 10, 0, 9))
		}},
		{
			"an end names one range", "ended at 8 before",
			func(r *Ranges) error { return errors.Join(r.Return(5, 8, 4, 8, true), r.Issue(5, 8, 0, 9)) },
		},
		{"twice", "nobody holds", func(r *Ranges) error { return errors.Join(r.Return(5, 8, 6, 8, true), r.Return(5, 8, 5, 8, true)) }},
		{"without its token", "does not hold it", func(r *Ranges) error { return r.Return(5, 8, 6, 7, true) }},
		{"another range of the same end", "does not hold it", func(r *Ranges) error { return r.Return(6, 8, 6, 0, false) }},
		{"below its beginning", "takes back what is above 3", func(r *Ranges) error { return r.Return(5, 8, 3, 8, true) }},
		{"a range that is not the newest", "a caller has 5 to 8", func(r *Ranges) error {
			return errors.Join(r.Return(1, 4, 0, 7, true), r.Issue(1, 9, 0, 9))
		}},
		{"a merge takes them", "6 is taken", func(r *Ranges) error {
			r.Raise(6, 6)
			return errors.Join(r.Return(5, 8, 4, 8, true), r.Issue(5, 10, 0, 9))
		}},
		{"a merge passes an end", "ended at 10 before", func(r *Ranges) error {
			r.Raise(3, 10)
			return r.Issue(9, 10, 0, 9)
		}},
		{"a value is set", "", func(r *Ranges) error { return errors.Join(r.Set(12, 8), r.Issue(13, 16, 0, 9)) }},
		{"a value is set on numbers of another", "a caller has 5 to 8", func(r *Ranges) error { return r.Set(12, 7) }},
		{"a set value comes back", "12 is taken", func(r *Ranges) error { return errors.Join(r.Set(12, 8), r.Issue(9, 16, 0, 9)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &Ranges{}
			must(t, errors.Join(r.Issue(1, 4, 0, 7), r.Issue(5, 8, 0, 8)))
			judge(t, tt.steps(r), tt.why)
		})
	}
}

// Each rule of spec/joining.pml that the state alone keeps, in the same way. B was removed.
func TestTags(t *testing.T) {
	for _, tt := range []struct {
		name, why, id, tag string
	}{
		{"a new member", "", "c", "C"},
		{"a member again", "", "a", "A"},
		{"the tag of another", "gives the tag A", "c", "A"},
		{"the tag of a removed one", "gives the tag B", "c", "B"},
		{"another tag", "which has A", "a", "C"},
		{"a removed one comes back", "which was removed", "b", "B"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tags := &Tags{}
			must(t, errors.Join(tags.Join("a", "A"), tags.Join("b", "B")))
			tags.Remove("b")
			judge(t, tags.Join(tt.id, tt.tag), tt.why)
		})
	}
}

// A token lets one new directory in.
func TestTokens(t *testing.T) {
	for _, tt := range []struct {
		name, why, id, token string
	}{
		{"a token", "", "c", "fresh"},
		{"a token that was used", "lets nobody in", "c", "used"},
		{"a token that nobody made", "lets nobody in", "c", "other"},
		{"no token", "", "c", ""},
		{"a member again, with its token", "", "a", "used"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tags := &Tags{}
			tags.CreateJoinToken("used")
			tags.CreateJoinToken("fresh")
			must(t, tags.AddMember("a", "A", "used"))
			judge(t, tags.AddMember(tt.id, strings.ToUpper(tt.id), tt.token), tt.why)
		})
	}
}

// judge compares a step with why it is not allowed; an empty why is that it is.
func judge(t *testing.T, err error, why string) {
	t.Helper()
	if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
		t.Errorf("%v, and not %q", err, why)
	}
}
