package client

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// Convention overrides RavenDB's conventions for ids of one Go type (see IDFor).
type Convention struct {
	// Collection replaces the plural of the type's name as the collection's name. The tag
	// follows from it: see CollectionTag.
	Collection string
	// Separator replaces "/".
	Separator string
	// NextID makes the ids, instead of a HiLo handle. It gets the options of the call.
	NextID func(ctx context.Context, c *Client, opts ...Option) (string, error)
}

// IDFor returns the next id for a document of type T, by the conventions of
// RavenDB's clients: the collection is the plural of the type's short name
// (Company → Companies), the tag follows from it (→ "companies"), and the
// number comes from the collection's HiLo handle: "companies/1-A".
// Config.Conventions overrides this by type. WithDatabase is its only option.
func IDFor[T any](ctx context.Context, c *Client, opts ...Option) (string, error) {
	return c.idFor(ctx, reflect.TypeFor[T](), opts)
}

// FillID gives the document an id if it has none: document is a pointer to
// a struct with a string field ID, which is set to IDFor's id if it is empty.
// Its options are those of IDFor.
func (c *Client) FillID(ctx context.Context, document any, opts ...Option) error {
	field, err := idField(document)
	if err != nil {
		return err
	}
	if have := field.String(); have != "" {
		return usable(have)
	}
	id, err := c.idFor(ctx, reflect.TypeOf(document).Elem(), opts)
	if err != nil {
		return err
	}
	field.SetString(id)
	return nil
}

// idField returns the field that holds a document's id.
func idField(document any) (reflect.Value, error) {
	v := reflect.ValueOf(document)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, notADocument("a document is a pointer to a struct, not %T", document)
	}
	t := v.Elem().Type()
	f, ok := t.FieldByName("ID")
	if !ok || f.Type.Kind() != reflect.String {
		return reflect.Value{}, notADocument("%s has no string field ID", t)
	}
	field, err := v.Elem().FieldByIndexErr(f.Index)
	if err != nil {
		return reflect.Value{}, notADocument("the field ID of %s: %v", t, err)
	}
	return field, nil
}

func notADocument(format string, args ...any) *Error {
	return invalidField("INVALID_DOCUMENT", "", fmt.Sprintf(format, args...))
}

// typeIn is a Go type in a database.
type typeIn struct {
	reflect.Type
	database string
}

func (c *Client) idFor(ctx context.Context, t reflect.Type, opts []Option) (string, error) {
	var key any = t
	database := c.cfg.Database
	if len(opts) > 0 {
		o := c.options(opts, 0)
		if o.err != nil {
			return "", o.err
		}
		database = o.database
		key = typeIn{t, database}
	}
	if h, known := c.byType.Load(key); known {
		id, err := h.(*HiLo).NextID(ctx)
		if err == nil || !errors.Is(err, ErrClosed) {
			return id, err
		}
		// The handle was closed, but perhaps not the client.
	}
	base := t
	for base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	conv := c.cfg.Conventions[base]
	if conv.NextID != nil {
		id, err := conv.NextID(ctx, c, opts...)
		if err != nil {
			return "", err
		}
		return id, usable(id)
	}
	if conv.Collection == "" {
		name, _, _ := strings.Cut(base.Name(), "[") // Without its type arguments.
		if name == "" {
			return "", notADocument("%s has no name to make a collection of", t)
		}
		conv.Collection = c.plurals().Plural(name)
	}
	h := c.HiLo(CollectionTag(conv.Collection), WithSeparator(conv.Separator), WithDatabase(database))
	c.byType.Store(key, h)
	return h.NextID(ctx)
}

// usable refuses ids that RavenDB's clients refuse.
func usable(id string) error {
	if strings.HasPrefix(id, "/") {
		return invalidField("INVALID_ID", "id", "an id must not begin with /")
	}
	return nil
}

// CollectionTag returns the HiLo tag of a collection, with which its ids begin too: the name in
// lower case if it has at most one capital letter (Companies → companies), otherwise unchanged
// (OrderLines). The collection of a type is the plural of its name: Companies for Company.
func CollectionTag(collection string) string {
	capitals := 0
	for _, r := range collection {
		if unicode.IsUpper(r) {
			capitals++
		}
	}
	if capitals > 1 {
		return collection
	}
	return strings.ToLower(collection)
}
