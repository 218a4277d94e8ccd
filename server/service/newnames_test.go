package service

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
)

// A new name with a control character is refused with the reason and the field of the name, and
// changes nothing.
func TestNewNamesWithControlCharacters(t *testing.T) {
	w := newWorld(t)
	s, ctx := newNode(t, w, nil), context.Background()
	_, before := w.State.Hash()
	for what, call := range map[string]struct {
		reason, field string
		err           func(name string) error
	}{
		"identity": {apierror.ReasonInvalidName, "name", func(n string) error {
			_, err := s.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: n, Count: 1})
			return err
		}},
		"seed": {apierror.ReasonInvalidName, "name", func(n string) error {
			_, err := s.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: n, Value: proto.Int64(5)})
			return err
		}},
		"template": {apierror.ReasonInvalidID, "template", func(n string) error {
			_, err := s.Generate(ctx, &idnodev1.GenerateRequest{Template: n + "|"})
			return err
		}},
		"range": {apierror.ReasonInvalidTag, "tag", func(n string) error {
			_, err := s.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: n})
			return err
		}},
		"counter": {apierror.ReasonInvalidTag, "tag", func(n string) error {
			_, err := s.SetHiLo(ctx, &idnodev1.SetHiLoRequest{Tag: n, Max: 5})
			return err
		}},
		"claim": {apierror.ReasonInvalidID, "id", func(n string) error {
			_, err := s.Claim(ctx, &idnodev1.ClaimRequest{Id: n})
			return err
		}},
		"claimed": {apierror.ReasonInvalidID, "template", func(n string) error {
			_, err := s.Generate(ctx, &idnodev1.GenerateRequest{Template: n, Claim: true})
			return err
		}},
	} {
		for _, name := range []string{"a\x00", "a\r\nb", "a\x1b[2Jb", "a\x7f", "a\u009bb", "a\u2028b", "\u202eb", "a\u2067b", "a\u200f"} {
			wantError(t, call.err(name), apierror.CodeInvalidArgument, call.reason, call.field)
			if t.Failed() {
				t.Fatalf("%s %q", what, name)
			}
		}
	}
	if _, after := w.State.Hash(); after != before {
		t.Error("the state has changed")
	}
}
