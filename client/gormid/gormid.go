// Package gormid fills fields of GORM's models with ids of an idnode cluster, before their rows
// are inserted. A field says where its ids come from:
//
//	type User struct {
//		ID string `gorm:"primaryKey" idnode:"hilo:users"` // users/65-A
//	}
//	type Invoice struct {
//		ID     string `gorm:"primaryKey" idnode:"hilo:invoices"`
//		Number *int64 `gorm:"uniqueIndex" idnode:"identity:invoices"` // 1, 2, 3 …
//	}
//	type Event struct {
//		ID int64 `gorm:"primaryKey" idnode:"snowflake:events"`
//	}
//
// A text gets the whole id, and an integer the number alone; so do pointers to them, types made of
// them, and types such as sql.NullString and sql.NullInt64. A field of another type is refused.
package gormid

import (
	"errors"
	"fmt"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/idnode/idnode/client"
)

// Plugin fills the fields: db.Use(gormid.Plugin{Client: c}). A field that is empty, which is its zero
// value or a pointer to one, gets an id; another keeps its value. The rows of one Create get their ids
// together, before its transaction begins; those of associations and of CreateInBatches are taken inside
// of it. The statement's context bounds the calls. Create fails with the error of the client, and inserts
// nothing. After any error the fields of its rows are as empty as before.
//
// An id that a row has already is an error, whatever ON CONFLICT says, and an update leaves the column
// of an empty field as it is.
type Plugin struct {
	Client *client.Client
	// Models are checked by Initialize, so that a field which cannot be filled is an error at the begin.
	// The fields of other models are checked when their rows are stored.
	Models []any
}

// Name implements gorm.Plugin.
func (Plugin) Name() string { return "idnode" }

// Initialize implements gorm.Plugin.
func (p Plugin) Initialize(db *gorm.DB) error {
	for _, model := range p.Models {
		s, err := schema.Parse(model, &sync.Map{}, db.NamingStrategy)
		if err != nil {
			return fmt.Errorf("gormid: %T: %w", model, err)
		}
		if _, err := targetsOf(s); err != nil {
			return fmt.Errorf("gormid: %w", err)
		}
	}
	return errors.Join( // Without GORM's own transactions it has no callback that begins one, so these are first and last.
		db.Callback().Create().Before("*").Register("idnode:fill", caught(p.fill)),
		db.Callback().Create().After("gorm:create").Before("gorm:save_after_associations").Register("idnode:settle", caught(settle)),
		db.Callback().Create().After("*").Register("idnode:empty", empty),
		db.Callback().Update().Before("*").Register("idnode:keep", caught(keep)),
	)
}

// caught makes a callback of GORM, whose error ends the statement.
func caught(f func(db *gorm.DB) error) func(db *gorm.DB) {
	return func(db *gorm.DB) {
		if db.Error != nil || db.Statement.Schema == nil {
			return
		}
		if err := f(db); err != nil {
			_ = db.AddError(fmt.Errorf("gormid: %w", err))
		}
	}
}

// fill fills the empty fields of the rows of a Create.
func (p Plugin) fill(db *gorm.DB) error {
	targets, err := targetsOf(db.Statement.Schema)
	if err != nil || len(targets) == 0 {
		return err
	}
	_, nested := db.Get("gorm:saved_association_map")
	f := &filling{targets: targets, nested: nested}
	f.rows, f.again = distinct(rowsOf(db.Statement))
	db.InstanceSet(fillingKey, f)
	for _, t := range targets {
		if err := p.fillField(db, t, f); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return f.guard(db)
}

// fillField fills a field in the rows in which it is empty.
func (p Plugin) fillField(db *gorm.DB, t target, f *filling) error {
	ctx := db.Statement.Context
	var empty []row
	for _, r := range f.rows {
		if isEmpty(r.value(ctx, t.field)) {
			empty = append(empty, r)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	if err := f.fillable(db.Statement, t); err != nil {
		return err
	}
	ids, err := p.take(ctx, t, len(empty))
	if err != nil {
		return err
	}
	for i, r := range empty {
		if !isEmpty(r.value(ctx, t.field)) {
			return errors.New("two rows have the field from one embedded struct, and would have one id")
		}
		undo, err := r.set(ctx, t, ids[i])
		if err != nil {
			return err
		}
		f.filled = append(f.filled, filled{r, t, undo})
	}
	return nil
}

// fillable returns why a field that is empty cannot be filled.
func (f *filling) fillable(s *gorm.Statement, t target) error {
	if t.copied {
		return errors.New("a row that is joined has no id: it is not stored")
	}
	if !stores(s, t.field.DBName) {
		return errors.New("the field is empty, and Select or Omit leaves it out: its row would have no id")
	}
	if loses(s) {
		return errors.New("the field is empty, and this INSERT could replace the row that has the new id, or insert none: use clause.OnConflict")
	}
	return f.once(s.DB, t)
}

// stores reports whether Select and Omit leave a column, or an association, in a Create.
func stores(s *gorm.Statement, name string) bool {
	columns, restricted := s.SelectAndOmitColumns(true, false)
	stored, named := columns[name]
	return stored || !named && !restricted
}

// keep leaves the columns of empty fields out of an update by a struct: Save writes all columns, and would
// store 0 or an empty text.
func keep(db *gorm.DB) error {
	targets, err := targetsOf(db.Statement.Schema)
	if err != nil {
		return err
	}
	r, ok := structOf(db.Statement)
	if !ok {
		return nil
	}
	omits := db.Statement.Omits[:len(db.Statement.Omits):len(db.Statement.Omits)] // Others may have the same array.
	for _, t := range targets {
		if isEmpty(r.value(db.Statement.Context, t.field)) {
			omits = append(omits, t.field.DBName)
		}
	}
	db.Statement.Omits = omits
	return nil
}
