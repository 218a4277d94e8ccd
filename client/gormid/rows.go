package gormid

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// row is a row that is stored: a struct or a map.
type row struct {
	// at counts the rows of a statement.
	at     int
	of     reflect.Value
	mapped map[string]any
}

// rowsOf returns the rows of a Create. What is neither a struct nor a map is refused by GORM.
func rowsOf(s *gorm.Statement) (rows []row) {
	switch dest := s.Dest.(type) {
	case map[string]any:
		return []row{{mapped: dest}}
	case *map[string]any:
		return []row{{mapped: *dest}}
	case []map[string]any:
		return mappedRows(dest)
	case *[]map[string]any:
		return mappedRows(*dest)
	}
	switch s.ReflectValue.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range s.ReflectValue.Len() {
			if of := reflect.Indirect(s.ReflectValue.Index(i)); of.Kind() == reflect.Struct {
				rows = append(rows, row{at: i, of: of})
			}
		}
	case reflect.Struct:
		rows = append(rows, row{of: s.ReflectValue})
	}
	return rows
}

func mappedRows(dest []map[string]any) (rows []row) {
	for i, m := range dest {
		rows = append(rows, row{at: i, mapped: m})
	}
	return rows
}

// distinct parts rows from those of a pointer, or of a map, that came before.
func distinct(all []row) (rows, again []row) {
	seen := make(map[any]bool)
	for _, r := range all {
		place := any(r.at)
		if r.mapped != nil {
			place = reflect.ValueOf(r.mapped).Pointer()
		} else if r.of.CanAddr() {
			place = r.of.Addr().Interface()
		}
		if seen[place] {
			again = append(again, r)
		} else {
			rows = append(rows, r)
		}
		seen[place] = true
	}
	return rows, again
}

// structOf returns the struct by which an update is made, if it is one of the model.
func structOf(s *gorm.Statement) (row, bool) {
	of := reflect.ValueOf(s.Dest)
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return row{of: of}, of.IsValid() && of.Type() == s.Schema.ModelType
}

// key returns the key of a map under which GORM finds a field.
func (r row) key(f *schema.Field) string {
	if _, ok := r.mapped[f.Name]; ok {
		return f.Name
	}
	return f.DBName
}

// value returns the value of a field.
func (r row) value(ctx context.Context, f *schema.Field) reflect.Value {
	if !r.of.IsValid() {
		return reflect.ValueOf(r.mapped[r.key(f)])
	}
	if v, zero := f.ValueOf(ctx, r.of); v != nil && !zero { // ReflectValueOf makes embedded structs.
		return reflect.ValueOf(v)
	}
	return reflect.Value{}
}

// set fills a field. undo gives it what it had.
func (r row) set(ctx context.Context, t target, id id) (undo func(), err error) {
	switch {
	case r.of.IsValid() && !r.of.CanAddr():
		return nil, fmt.Errorf("%s: a row that is no pointer cannot be filled: %w", t, gorm.ErrInvalidValue)
	case r.of.IsValid():
		v := t.field.ReflectValueOf(ctx, r.of)
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		return func() { v.Set(was) }, t.put(v, id)
	case r.mapped == nil:
		return nil, gorm.ErrInvalidData
	}
	key := r.key(t.field)
	was, had := r.mapped[key]
	r.mapped[key] = id.number
	if t.text {
		r.mapped[key] = id.text
	}
	return func() {
		if r.mapped[key] = was; !had {
			delete(r.mapped, key)
		}
	}, nil
}

// copy gives a field what another row, a struct, has.
func (r row) copy(ctx context.Context, f *schema.Field, from row) {
	v := f.ReflectValueOf(ctx, from.of)
	if r.of.IsValid() {
		f.ReflectValueOf(ctx, r.of).Set(v)
	} else {
		r.mapped[r.key(f)] = v.Interface()
	}
}

// keyText returns the primary key of a row in a form that can be compared.
func (r row) keyText(s *gorm.Statement) string {
	var text strings.Builder
	for _, f := range s.Schema.PrimaryFields {
		of := r.of
		if v := r.value(s.Context, f); !of.IsValid() && v.IsValid() { // The value of a map has any type.
			of = reflect.New(s.Schema.ModelType).Elem()
			_ = f.Set(s.Context, of, v.Interface())
		}
		if of.IsValid() {
			fmt.Fprintf(&text, "%q ", fmt.Sprint(reflect.Indirect(f.ReflectValueOf(s.Context, of))))
		}
	}
	return text.String()
}
