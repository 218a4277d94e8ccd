package gormid_test

import (
	"errors"
	"testing"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

type Invoice struct {
	ID     string `gorm:"primaryKey" idnode:"hilo:invoices"`
	Number int64  `gorm:"uniqueIndex" idnode:"identity:invoices"`
}

// use is as dbresolver.Use.
type use struct{ clause.Expr }

func (u use) ModifyStatement(s *gorm.Statement) {
	s.Clauses["gorm:db_resolver:using"] = clause.Clause{Expression: u}
}

// withSecond sends to a second database what reads and what uses it, as gorm.io/plugin/dbresolver does.
func withSecond(t *testing.T, db *gorm.DB) {
	t.Helper()
	second, err := gorm.Open(sqlite.Open(":memory:"))
	if err != nil {
		t.Fatal(err)
	}
	main := db.ConnPool
	resolve := func(reads bool) func(db *gorm.DB) {
		return func(db *gorm.DB) {
			_, begun := db.Statement.ConnPool.(gorm.TxCommitter)
			_, writes := db.Get("gorm:db_resolver:write")
			_, uses := db.Statement.Clauses["gorm:db_resolver:using"].Expression.(use)
			if begun {
				return
			}
			if db.Statement.ConnPool = main; uses || reads && !writes {
				db.Statement.ConnPool = second.ConnPool
			}
		}
	}
	err = errors.Join(second.AutoMigrate(&Invoice{}),
		db.Callback().Create().Before("*").Register("resolve", resolve(false)),
		db.Callback().Query().Before("*").Register("resolve", resolve(true)))
	if err != nil {
		t.Fatal(err)
	}
}

// TestReplicas: a replica that has no row yet hides neither the one that has an id, nor the one that was stored;
// and a statement that uses another database looks there.
func TestReplicas(t *testing.T) {
	for _, cfg := range []gorm.Config{{}, {SkipDefaultTransaction: true}} {
		for name, with := range map[string]func(db *gorm.DB) *gorm.DB{
			"main": func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{}) },
			"use":  func(db *gorm.DB) *gorm.DB { return db.Clauses(use{}).Session(&gorm.Session{}) },
		} {
			db := inDatabase(t, sqlite.Open(":memory:"), cfg, &Invoice{})
			withSecond(t, db)
			db = with(db)
			first := Invoice{}
			if err := db.Create(&first).Error; err != nil {
				t.Fatal(err)
			}
			if err := db.Create(&Invoice{ID: "imported", Number: first.Number + 1}).Error; err != nil {
				t.Fatal(err)
			}
			on := clause.OnConflict{Columns: []clause.Column{{Name: "number"}}, DoUpdates: clause.AssignmentColumns([]string{"id"})}
			if err := db.Clauses(on).Create(&Invoice{}).Error; !errors.Is(err, gorm.ErrDuplicatedKey) {
				t.Errorf("%s: %v", name, err)
			}
			invoice := Invoice{}
			if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&invoice).Error; err != nil || invoice.ID == "" {
				t.Errorf("%s: %+v, %v", name, invoice, err)
			}
		}
	}
}
