package gormid

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
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

// set fills a field.
func (r row) set(ctx context.Context, t target, id id) error {
	switch {
	case r.of.IsValid() && !r.of.CanAddr():
		return fmt.Errorf("%s: a row that is no pointer cannot be filled: %w", t, gorm.ErrInvalidValue)
	case r.of.IsValid():
		return t.put(t.field.ReflectValueOf(ctx, r.of), id)
	case r.mapped == nil:
		return gorm.ErrInvalidData
	case t.text:
		r.mapped[r.key(t.field)] = id.text
	default:
		r.mapped[r.key(t.field)] = id.number
	}
	return nil
}

// guard has an id that a row has already be an error where ON CONFLICT would change that row, or leave the
// new one out. In a row that may exist, since the application has given its key, it keeps the columns that
// were empty.
func guard(db *gorm.DB, targets []target, rows []row, filled map[*schema.Field]map[int]row) error {
	on, ok := db.Statement.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	if !ok {
		return nil
	}
	keys := make(map[*schema.Field]bool)
	for _, f := range db.Statement.Schema.PrimaryFields {
		keys[f] = true
	}
	old := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { // Those with no new key.
		return slices.ContainsFunc(targets, func(t target) bool { return keys[t.field] && has(filled[t.field], r) })
	})
	for _, t := range targets {
		if keys[t.field] || t.field.Unique || t.field.UniqueIndex != "" {
			if err := free(db, t, filled[t.field]); err != nil {
				return err
			}
		}
		emptied := slices.DeleteFunc(slices.Clone(old), func(r row) bool { return !has(filled[t.field], r) })
		if keys[t.field] || len(emptied) == 0 {
			continue
		}
		if len(emptied) < len(old) {
			return fmt.Errorf("%s: some rows that may exist have a value and others have none; store them one by one", t)
		}
		on = without(db.Statement, on, t.field)
	}
	db.Statement.AddClause(on)
	return nil
}

func has(rows map[int]row, r row) bool {
	_, ok := rows[r.at]
	return ok
}

// free returns an error if a row, though it is deleted softly, has one of the new ids.
func free(db *gorm.DB, t target, filled map[int]row) error {
	for some := range slices.Chunk(slices.Collect(maps.Values(filled)), 500) {
		ids := make([]any, 0, len(some))
		for _, r := range some {
			ids = append(ids, r.value(db.Statement.Context, t.field).Interface())
		}
		var taken int64
		look := db.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Unscoped().Table(db.Statement.Table)
		if err := look.Where(clause.IN{Column: clause.Column{Name: t.field.DBName}, Values: ids}).Count(&taken).Error; err != nil {
			return err
		}
		if taken > 0 {
			return fmt.Errorf("%s: a row has one of the new ids already: %w", t, gorm.ErrDuplicatedKey)
		}
	}
	return nil
}

// without returns an ON CONFLICT that does not update a field.
func without(s *gorm.Statement, on clause.OnConflict, without *schema.Field) clause.OnConflict {
	if on.UpdateAll {
		on.UpdateAll = false
		for _, f := range s.Schema.Fields {
			columns, restricted := s.SelectAndOmitColumns(true, true)
			stored, named := columns[f.DBName]
			if f.DBName != "" && (stored || !named && !restricted) && !f.PrimaryKey && !f.HasDefaultValue && f.AutoCreateTime == 0 {
				on.DoUpdates = append(on.DoUpdates, clause.AssignmentColumns([]string{f.DBName})...)
			}
		}
		if len(on.Columns) == 0 {
			for _, name := range s.Schema.PrimaryFieldDBNames {
				on.Columns = append(on.Columns, clause.Column{Name: name})
			}
		}
	}
	on.DoUpdates = slices.DeleteFunc(slices.Clone(on.DoUpdates), func(a clause.Assignment) bool { return a.Column.Name == without.DBName })
	on.DoNothing = on.DoNothing || len(on.DoUpdates) == 0
	return on
}
