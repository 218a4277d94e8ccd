package client_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/idnode/idnode/client"
)

type (
	Company     struct{ ID, Name string }
	Person      struct{ ID string }
	User        struct{ ID string }
	Order       struct{ ID string }
	OrderLine   struct{ ID string }
	Category    struct{ ID string }
	Status      struct{ ID string }
	Child       struct{ ID string }
	Leaf        struct{ ID string }
	Human       struct{ ID string }
	Sheep       struct{ ID string }
	HTTPServer  struct{ ID string }
	Users       struct{ ID string }
	SalesMan    struct{ ID string }
	Page[T any] struct {
		ID   string
		Item T
	}
	lower    struct{ ID string }
	Base     struct{ ID string }
	Embedded struct {
		Base
		Name string
	}
	Numbered  struct{ ID int }
	WithoutID struct{ Name string }
)

// idFor returns what IDFor gives for the first document of a type.
func idFor[T any](t *testing.T, f *fakeCluster, overrides map[reflect.Type]client.Convention) (string, error) {
	t.Helper()
	c := connect(t, client.Config{Endpoints: f.addrs(), Conventions: overrides})
	return client.IDFor[T](t.Context(), c)
}

func TestIDFor(t *testing.T) {
	f := newCluster(t, 1)
	for want, get := range map[string]func(*testing.T, *fakeCluster, map[reflect.Type]client.Convention) (string, error){
		"companies/1-A":   idFor[Company],
		"people/1-A":      idFor[Person],
		"users/1-A":       idFor[User],
		"orders/1-A":      idFor[*Order],
		"OrderLines/1-A":  idFor[OrderLine],
		"categories/1-A":  idFor[Category],
		"statuses/1-A":    idFor[Status],
		"children/1-A":    idFor[Child],
		"leaves/1-A":      idFor[Leaf],
		"humans/1-A":      idFor[Human],
		"sheep/1-A":       idFor[Sheep],
		"HTTPServers/1-A": idFor[HTTPServer],
		"SalesMen/1-A":    idFor[SalesMan],
		"pages/1-A":       idFor[Page[Order]],
		"lowers/1-A":      idFor[lower],
	} {
		if got, err := get(t, f, nil); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if id, err := idFor[struct{ ID string }](t, f, nil); err == nil {
		t.Errorf("a type without a name got %q", id)
	}
}

func TestConventions(t *testing.T) {
	f := newCluster(t, 1)
	custom := func(id string) func(context.Context, *client.Client, ...client.Option) (string, error) {
		return func(context.Context, *client.Client, ...client.Option) (string, error) { return id, nil }
	}
	for _, tt := range []struct {
		name string
		conv client.Convention
		want string
	}{
		{"collection", client.Convention{Collection: "Purchases"}, "purchases/1-A"},
		{"collection with two capitals", client.Convention{Collection: "BigOrders"}, "BigOrders/1-A"},
		{"separator", client.Convention{Separator: "#"}, "orders#1-A"},
		{"generator", client.Convention{NextID: custom("orders/mine")}, "orders/mine"},
		{"generator with a slash in front", client.Convention{NextID: custom("/mine")}, ""},
		{"pipe", client.Convention{Separator: "|"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := idFor[Order](t, f, map[reflect.Type]client.Convention{reflect.TypeFor[Order](): tt.conv})
			if got != tt.want && err == nil || (err == nil) != (tt.want != "") {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
			if tt.want == "" && !errors.Is(err, client.ErrInvalid) {
				t.Error(err)
			}
		})
	}
}

func TestFillID(t *testing.T) {
	f := newCluster(t, 1)
	c := connect(t, client.Config{Endpoints: f.addrs()})
	fill := func(document any) error { return c.FillID(t.Context(), document) }
	order, kept, embedded := Order{}, Order{ID: "orders/mine"}, Embedded{}
	for _, d := range []any{&order, &kept, &embedded} {
		if err := fill(d); err != nil {
			t.Error(err)
		}
	}
	if order.ID != "orders/1-A" || kept.ID != "orders/mine" || embedded.ID != "embeddeds/1-A" {
		t.Error(order, kept, embedded)
	}
	for _, d := range []any{order, (*Order)(nil), nil, &Numbered{}, &WithoutID{}, &Order{ID: "/x"}, new(int)} {
		if err := fill(d); err == nil {
			t.Errorf("%T is taken", d)
		}
	}
}

func TestCollectionTag(t *testing.T) {
	for collection, want := range map[string]string{
		"Users": "users", "OrderLines": "OrderLines", "people": "people", "": "",
		"X": "x", "HTTPServers": "HTTPServers", "Öle": "öle", "orderLines": "orderlines",
	} {
		if got := client.CollectionTag(collection); got != want {
			t.Errorf("%q gives %q, want %q", collection, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9]{0,20}`).Draw(t, "collection")
		got := client.CollectionTag(name)
		capitals := strings.IndexFunc(name, unicode.IsUpper) != strings.LastIndexFunc(name, unicode.IsUpper)
		if !strings.EqualFold(got, name) || capitals && got != name || !capitals && got != strings.ToLower(name) {
			t.Fatalf("%q gives %q", name, got)
		}
		if client.CollectionTag(got) != got {
			t.Fatalf("%q changes when it is done twice", name)
		}
	})
}
