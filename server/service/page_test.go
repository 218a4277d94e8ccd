package service

import (
	"context"
	"fmt"
	"strings"
	"testing"
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
		_, err := n.NextIdentity(ctx, NextIdentityRequest{Name: strings.ToUpper(name)})
		check(err)
		_, err = n.NextIdentity(ctx, NextIdentityRequest{Database: strings.ToUpper(name), Name: "orders"})
		check(err)
		_, err = n.NextRange(ctx, NextRangeRequest{Tag: strings.ToUpper(name)})
		check(err)
		_, err = n.Claim(ctx, ClaimRequest{ID: strings.ToUpper(name)})
		check(err)
	}
	for _, other := range []string{"a", "zz"} {
		if _, err := n.NextIdentity(ctx, NextIdentityRequest{Name: other}); err != nil {
			t.Fatal(err)
		}
	}
	for name, list := range listings(n) {
		for size := range 9 {
			t.Run(fmt.Sprintf("%s by %d", name, size), func(t *testing.T) {
				var got []string
				req := ListRequest{Prefix: "USER", PageSize: size}
				for pages := 0; ; pages++ {
					names, next, index, err := list(req)
					if err != nil {
						t.Fatal(err)
					}
					if index != w.state.AppliedIndex() {
						t.Errorf("log index %d, want %d", index, w.state.AppliedIndex())
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

type lister func(ListRequest) (names []string, next string, index uint64, err error)

func listings(n node) map[string]lister {
	ctx := context.Background()
	return map[string]lister{
		"identities": func(r ListRequest) (names []string, next string, index uint64, err error) {
			res, err := n.ListIdentities(ctx, r)
			for _, i := range res.Items {
				names = append(names, i.Name)
			}
			return names, res.NextPageToken, res.LogIndex, err
		},
		"hilo": func(r ListRequest) (names []string, next string, index uint64, err error) {
			res, err := n.ListHiLo(ctx, r)
			for _, h := range res.Items {
				names = append(names, h.Tag)
			}
			return names, res.NextPageToken, res.LogIndex, err
		},
		"claims": func(r ListRequest) ([]string, string, uint64, error) {
			res, err := n.ListClaims(ctx, r)
			return res.Items, res.NextPageToken, res.LogIndex, err
		},
		"databases": func(r ListRequest) ([]string, string, uint64, error) {
			res, err := n.ListDatabases(ctx, r)
			return res.Items, res.NextPageToken, res.LogIndex, err
		},
	}
}

func TestPageLimits(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	identities, err := newCursor(listIdentities, ListRequest{})
	if err != nil {
		t.Fatal(err)
	}
	foreign := map[string]cursor{
		"of another listing":  {scope: listHiLo, database: "default"},
		"of another database": {scope: listIdentities, database: "other"},
		"of another prefix":   {scope: listIdentities, database: "default", prefix: "u"},
	}
	tests := map[string]struct {
		req           ListRequest
		reason, field string
	}{
		"page size":           {ListRequest{PageSize: 1000}, "", ""},
		"page size too large": {ListRequest{PageSize: 1001}, ReasonInvalidPageSize, "page_size"},
		"page size negative":  {ListRequest{PageSize: -1}, ReasonInvalidPageSize, "page_size"},
		"database":            {ListRequest{Database: "a b"}, ReasonInvalidDatabase, "database"},
		"prefix":              {ListRequest{Prefix: strings.Repeat("x", 2025)}, "", ""},
		"prefix too long":     {ListRequest{Prefix: strings.Repeat("x", 2026)}, ReasonInvalidPrefix, "prefix"},
		"prefix no UTF-8":     {ListRequest{Prefix: "\xff"}, ReasonInvalidPrefix, "prefix"},
		"consistency":         {ListRequest{Consistency: 7}, ReasonInvalidConsistency, "consistency"},
		"token":               {ListRequest{PageToken: identities.token("users")}, "", ""},
		"token of nothing":    {ListRequest{PageToken: identities.token("")}, ReasonInvalidPageToken, "page_token"},
		"token no UTF-8":      {ListRequest{PageToken: identities.token("\xff")}, ReasonInvalidPageToken, "page_token"},
		"token no base64":     {ListRequest{PageToken: "!"}, ReasonInvalidPageToken, "page_token"},
		"token of two lines":  {ListRequest{PageToken: identities.token("users") + "\n"}, ReasonInvalidPageToken, "page_token"},
		"token too long":      {ListRequest{PageToken: strings.Repeat("A", 20_000)}, ReasonInvalidPageToken, "page_token"},
		"token beside the prefix": {
			ListRequest{Prefix: "u", PageToken: cursor{scope: listIdentities, database: "default", prefix: "u"}.token("x")},
			ReasonInvalidPageToken, "page_token",
		},
	}
	for name, c := range foreign {
		test := tests["token"]
		test.req.PageToken = c.token("users")
		test.reason, test.field = ReasonInvalidPageToken, "page_token"
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
			wantError(t, err, InvalidArgument, tt.reason, tt.field)
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
		c, err := newCursor(listClaims, ListRequest{Database: database, Prefix: prefix, PageToken: token})
		if err != nil {
			if e, ok := err.(*Error); !ok || e.Code != InvalidArgument || e.Field == "" {
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
