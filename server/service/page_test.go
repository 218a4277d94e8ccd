package service

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
)

// TestPages walks through every listing by pages of each size, and sees each
// name once and in order.
func TestPages(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	ctx := context.Background()
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("user%d", i)
		want = append(want, name)
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		_, err := n.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: strings.ToUpper(name)})
		check(err)
		_, err = n.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: strings.ToUpper(name)})
		check(err)
		_, err = n.Claim(ctx, &idnodev1.ClaimRequest{Id: strings.ToUpper(name)})
		check(err)
	}
	for _, other := range []string{"a", "zz"} {
		if _, err := n.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: other}); err != nil {
			t.Fatal(err)
		}
	}
	for name, list := range listings(n) {
		for size := range 9 {
			t.Run(fmt.Sprintf("%s by %d", name, size), func(t *testing.T) {
				var got []string
				req := &idnodev1.ListIdentitiesRequest{Prefix: "USER", PageSize: int32(size)}
				for pages := 0; ; pages++ {
					names, next, index, err := list(req)
					if err != nil {
						t.Fatal(err)
					}
					if index != w.State.AppliedIndex() {
						t.Errorf("log index %d, want %d", index, w.State.AppliedIndex())
					}
					if size > 0 && len(names) > size || pages > 8 {
						t.Fatalf("%d names on a page of %d, page %d", len(names), size, pages)
					}
					got = append(got, names...)
					if next == "" {
						break
					}
					req.PageToken = next
				}
				same(t, got, want)
			})
		}
	}
}

type lister func(*idnodev1.ListIdentitiesRequest) (names []string, next string, index uint64, err error)

func listings(n node) map[string]lister {
	ctx := context.Background()
	return map[string]lister{
		"identities": func(r *idnodev1.ListIdentitiesRequest) (names []string, next string, index uint64, err error) {
			res, err := n.ListIdentities(ctx, r)
			for _, i := range res.GetIdentities() {
				names = append(names, i.Name)
			}
			return names, res.GetNextPageToken(), res.GetLogIndex(), err
		},
		"hilo": func(r *idnodev1.ListIdentitiesRequest) (names []string, next string, index uint64, err error) {
			res, err := n.ListHiLo(ctx, &idnodev1.ListHiLoRequest{
				Database: r.Database, Prefix: r.Prefix, PageSize: r.PageSize, PageToken: r.PageToken, Consistency: r.Consistency,
			})
			for _, h := range res.GetHilos() {
				names = append(names, h.Tag)
			}
			return names, res.GetNextPageToken(), res.GetLogIndex(), err
		},
		"claims": func(r *idnodev1.ListIdentitiesRequest) ([]string, string, uint64, error) {
			res, err := n.ListClaims(ctx, &idnodev1.ListClaimsRequest{
				Database: r.Database, Prefix: r.Prefix, PageSize: r.PageSize, PageToken: r.PageToken, Consistency: r.Consistency,
			})
			return res.GetIds(), res.GetNextPageToken(), res.GetLogIndex(), err
		},
	}
}

func TestPageLimits(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	identities, err := newCursor(listIdentities, &idnodev1.ListIdentitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	foreign := map[string]cursor{
		"of another listing":  {scope: listHiLo, database: "default"},
		"of another database": {scope: listIdentities, database: "other"},
		"of another prefix":   {scope: listIdentities, database: "default", prefix: "u"},
	}
	tests := map[string]struct {
		req           *idnodev1.ListIdentitiesRequest
		reason, field string
	}{
		"page size":           {&idnodev1.ListIdentitiesRequest{PageSize: 1000}, "", ""},
		"page size too large": {&idnodev1.ListIdentitiesRequest{PageSize: 1001}, apierror.ReasonInvalidPageSize, "page_size"},
		"page size negative":  {&idnodev1.ListIdentitiesRequest{PageSize: -1}, apierror.ReasonInvalidPageSize, "page_size"},
		"database":            {&idnodev1.ListIdentitiesRequest{Database: "a b"}, apierror.ReasonInvalidDatabase, "database"},
		"prefix":              {&idnodev1.ListIdentitiesRequest{Prefix: strings.Repeat("x", 2025)}, "", ""},
		"prefix too long":     {&idnodev1.ListIdentitiesRequest{Prefix: strings.Repeat("x", 2026)}, apierror.ReasonInvalidPrefix, "prefix"},
		"prefix no UTF-8":     {&idnodev1.ListIdentitiesRequest{Prefix: "\xff"}, apierror.ReasonInvalidPrefix, "prefix"},
		"consistency":         {&idnodev1.ListIdentitiesRequest{Consistency: 7}, apierror.ReasonInvalidConsistency, "consistency"},
		"token":               {&idnodev1.ListIdentitiesRequest{PageToken: identities.token("users")}, "", ""},
		"token of nothing":    {&idnodev1.ListIdentitiesRequest{PageToken: identities.token("")}, apierror.ReasonInvalidPageToken, "page_token"},
		"token no UTF-8": {
			&idnodev1.ListIdentitiesRequest{PageToken: identities.token("\xff")}, apierror.ReasonInvalidPageToken,
			"page_token",
		},
		"token no base64": {&idnodev1.ListIdentitiesRequest{PageToken: "!"}, apierror.ReasonInvalidPageToken, "page_token"},
		"token of two lines": {
			&idnodev1.ListIdentitiesRequest{PageToken: identities.token("users") + "\n"},
			apierror.ReasonInvalidPageToken, "page_token",
		},
		"token too long": {
			&idnodev1.ListIdentitiesRequest{PageToken: strings.Repeat("A", 20_000)}, apierror.ReasonInvalidPageToken,
			"page_token",
		},
		"token beside the prefix": {
			&idnodev1.ListIdentitiesRequest{Prefix: "u", PageToken: cursor{scope: listIdentities, database: "default", prefix: "u"}.token("x")},
			apierror.ReasonInvalidPageToken, "page_token",
		},
	}
	for name, c := range foreign {
		test := tests["token"]
		test.req = &idnodev1.ListIdentitiesRequest{PageToken: c.token("users")}
		test.reason, test.field = apierror.ReasonInvalidPageToken, "page_token"
		tests[name] = test
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := n.ListIdentities(context.Background(), tt.req)
			if tt.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantError(t, err, apierror.CodeInvalidArgument, tt.reason, tt.field)
		})
	}
}

// FuzzPageToken: a token is one that this very listing gave, or is refused.
func FuzzPageToken(f *testing.F) {
	c := cursor{scope: listClaims, database: "default", prefix: "u"}
	f.Add("default", "u", c.token("users/1"))
	f.Add("default", "", "AQ")
	f.Add("", "u", "")
	f.Fuzz(func(t *testing.T, database, prefix, token string) {
		c, err := newCursor(listClaims, &idnodev1.ListClaimsRequest{Database: database, Prefix: prefix, PageToken: token})
		if err != nil {
			if e, ok := err.(*apierror.Error); !ok || e.Code != apierror.CodeInvalidArgument || e.Field == "" {
				t.Fatalf("error %#v", err)
			}
			return
		}
		if token != "" && c.token(c.after) != token {
			t.Fatalf("the token %q leads on behind %q, whose token is another", token, c.after)
		}
		if !strings.HasPrefix(c.after, c.prefix) && c.after != "" {
			t.Fatalf("%q does not begin with %q", c.after, c.prefix)
		}
	})
}
