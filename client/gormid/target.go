package gormid

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm/schema"
)

// target is a field that is filled.
type target struct {
	field *schema.Field
	// kind and name are the two parts of the tag, such as hilo and users.
	kind, name string
	// text means that the field gets the whole id, and not the number alone.
	text bool
	// copied means that the field is one of a join table, into which GORM copies the tag of a key.
	copied bool
}

func (t target) String() string { return t.field.Schema.Name + "." + t.field.Name }

// id is one id in both forms.
type id struct {
	text   string
	number int64
}

// targetsOf returns the fields of a model that are filled, or why one cannot be.
func targetsOf(s *schema.Schema) (targets []target, err error) {
	for _, field := range s.Fields {
		source, ok := field.Tag.Lookup("idnode")
		if !ok {
			continue
		}
		t := target{field: field, copied: isCopied(field)}
		t.kind, t.name, _ = strings.Cut(source, ":")
		switch {
		case t.kind != "hilo" && t.kind != "identity" && t.kind != "snowflake" || t.name == "":
			return nil, fmt.Errorf("%s: the tag is hilo:TAG, identity:NAME or snowflake:POOL, not %q", t, source)
		case field.DBName == "" || !field.Creatable:
			return nil, fmt.Errorf("%s: GORM does not store the field", t)
		case field.FieldType.Kind() == reflect.Pointer && field.FieldType.Elem().Kind() == reflect.Pointer:
			return nil, fmt.Errorf("%s: GORM reads no pointer to a pointer", t)
		case field.Serializer != nil:
			return nil, fmt.Errorf("%s: a field with a serializer cannot be filled", t)
		}
		if t.text, err = takesText(field.IndirectFieldType); err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// isCopied reports whether a field is one of a table that GORM has made of a many2many.
func isCopied(f *schema.Field) bool {
	relations := &f.Schema.Relationships
	relations.Mux.RLock() // The schema of another model may add one.
	defer relations.Mux.RUnlock()
	for _, rel := range relations.Relations {
		refers := func(r *schema.Reference) bool { return r.ForeignKey == f }
		if rel.Type == schema.BelongsTo && slices.ContainsFunc(rel.References, refers) && rel.Field.Schema != f.Schema {
			return true
		}
	}
	return false
}

// takesText reports whether a type, which is no pointer, takes a text or an integer.
func takesText(of reflect.Type) (bool, error) {
	switch of.Kind() {
	case reflect.String:
		return true, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return false, nil
	}
	for _, probe := range []any{int64(7), "a/7-A"} { // sql.NullString takes a number too, and makes a text of it.
		value := reflect.New(of).Interface()
		scanner, scans := value.(sql.Scanner)
		valuer, values := value.(driver.Valuer)
		if !scans || !values || scanner.Scan(probe) != nil {
			continue
		}
		if got, err := valuer.Value(); err == nil && got == probe {
			_, text := probe.(string)
			return text, nil
		}
	}
	return false, fmt.Errorf("a field of type %s can be filled with neither a text nor an integer", of)
}

// isEmpty reports whether a value would be stored as NULL, 0 or an empty text.
func isEmpty(v reflect.Value) bool {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	if !v.IsValid() || v.IsZero() {
		return true
	}
	valuer, ok := v.Interface().(driver.Valuer)
	if !ok {
		return false
	}
	stored, err := valuer.Value()
	return err == nil && (stored == nil || stored == "" || stored == int64(0))
}

// put fills a field's value.
func (t target) put(v reflect.Value, id id) error {
	for v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(id.text)
	case v.CanInt() && !v.OverflowInt(id.number):
		v.SetInt(id.number)
	case v.CanUint() && !v.OverflowUint(uint64(id.number)):
		v.SetUint(uint64(id.number))
	case v.CanInt() || v.CanUint():
		return fmt.Errorf("%d is too large for a field of type %s", id.number, v.Type())
	case t.text:
		return v.Addr().Interface().(sql.Scanner).Scan(id.text)
	default:
		return v.Addr().Interface().(sql.Scanner).Scan(id.number)
	}
	return nil
}

// maxSnowflakes is the most that a handle makes in one call.
const maxSnowflakes = 10_000

// take takes n ids.
func (p Plugin) take(ctx context.Context, t target, n int) (ids []id, err error) {
	if p.Client == nil {
		return nil, errors.New("the plugin has no client")
	}
	switch t.kind {
	case "hilo":
		for handle := p.Client.HiLo(t.name); len(ids) < n; {
			number, err := handle.Next(ctx)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id{number.String(), number.Value()})
		}
	case "snowflake":
		for handle := p.Client.Snowflake(t.name); len(ids) < n; {
			numbers, err := handle.NextN(ctx, min(n-len(ids), maxSnowflakes))
			if err != nil {
				return nil, err
			}
			for _, number := range numbers {
				ids = append(ids, id{strconv.FormatInt(number, 10), number})
			}
		}
	default:
		blocks, err := p.Client.Identity(t.name).NextN(ctx, n)
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			for value := b.First; value <= b.Last; value++ {
				ids = append(ids, id{fmt.Sprintf("%s/%d", t.name, value), value})
			}
		}
	}
	return ids, nil
}
