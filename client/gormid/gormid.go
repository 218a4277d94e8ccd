// Package gormid fills fields of GORM's models with ids of an idnode cluster, before their rows
// are inserted. A field says where its ids come from:
//
//	type User struct {
//		ID string `gorm:"primaryKey" idnode:"hilo:users"` // users/65-A
//	}
//	type Invoice struct {
//		ID     string `gorm:"primaryKey" idnode:"hilo:invoices"`
//		Number int64  `idnode:"identity:invoices"` // 1, 2, 3 …
//	}
//
// A text gets the whole id, and an integer the number alone.
package gormid

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/idnode/idnode/client"
)

// Plugin fills the fields: db.Use(gormid.Plugin{Client: c}). A field that is not zero keeps its
// value. The rows of one Create get their ids together, before its transaction begins; the
// statement's context bounds the call. Create fails with the error of the client, and inserts
// nothing.
type Plugin struct{ Client *client.Client }

// Name implements gorm.Plugin.
func (Plugin) Name() string { return "idnode" }

// Initialize implements gorm.Plugin.
func (p Plugin) Initialize(db *gorm.DB) error {
	return db.Callback().Create().Before("gorm:begin_transaction").Register("idnode:fill", p.fill)
}

func (p Plugin) fill(db *gorm.DB) {
	if db.Error != nil || db.Statement.Schema == nil {
		return
	}
	ctx := db.Statement.Context
	for _, field := range db.Statement.Schema.Fields {
		source, ok := field.Tag.Lookup("idnode")
		empty := emptyRows(ctx, db.Statement.ReflectValue, field)
		if !ok || len(empty) == 0 {
			continue
		}
		ids, err := p.take(ctx, source, field.FieldType.Kind() == reflect.String, len(empty))
		for i := 0; err == nil && i < len(ids); i++ {
			err = field.Set(ctx, empty[i], ids[i])
		}
		if err != nil {
			_ = db.AddError(fmt.Errorf("gormid: %s.%s: %w", field.Schema.Name, field.Name, err))
			return
		}
	}
}

// emptyRows returns the structs of a Create whose field is zero; a Create of maps has none.
func emptyRows(ctx context.Context, rows reflect.Value, field *schema.Field) (empty []reflect.Value) {
	switch rows.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range rows.Len() {
			empty = append(empty, emptyRows(ctx, reflect.Indirect(rows.Index(i)), field)...)
		}
	case reflect.Struct:
		if _, zero := field.ValueOf(ctx, rows); zero {
			empty = append(empty, rows)
		}
	}
	return empty
}

// take takes n ids, as texts or as numbers.
func (p Plugin) take(ctx context.Context, source string, text bool, n int) (ids []any, err error) {
	add := func(id string, number int64) {
		if text {
			ids = append(ids, id)
		} else {
			ids = append(ids, number)
		}
	}
	switch kind, name, _ := strings.Cut(source, ":"); kind {
	case "hilo":
		for handle := p.Client.HiLo(name); len(ids) < n; {
			number, err := handle.Next(ctx)
			if err != nil {
				return nil, err
			}
			add(number.String(), number.Value())
		}
	case "identity":
		blocks, err := p.Client.Identity(name).NextN(ctx, n)
		if err != nil {
			return nil, err
		}
		for _, b := range blocks {
			for value := b.First; value <= b.Last; value++ {
				add(fmt.Sprintf("%s/%d", name, value), value)
			}
		}
	default:
		return nil, fmt.Errorf("the tag is hilo:TAG or identity:NAME, not %q", source)
	}
	return ids, nil
}
