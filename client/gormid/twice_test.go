package gormid_test

import (
	"errors"
	"testing"
)

type Line struct {
	ID      int64 `gorm:"primaryKey"`
	Number  int64 `idnode:"identity:lines"`
	Invoice *Invoice
	// InvoiceID is empty before the invoice is stored.
	InvoiceID string
	Book      *Book
	BookID    int64
}

// Book has a key of the database.
type Book struct {
	ID     int64 `gorm:"primaryKey"`
	Number int64 `gorm:"uniqueIndex" idnode:"identity:books"`
	Shelf  int64 `idnode:"hilo:shelves"`
}

type Part struct {
	Number int64 `idnode:"identity:parts"`
}

type Whole struct {
	ID int64 `gorm:"primaryKey"`
	*Part
}

// TestTheSamePlace: what is filled once gives no two rows one number.
func TestTheSamePlace(t *testing.T) {
	db := inMemory(t, &Line{}, &Invoice{}, &Book{}, &Part{}, &Whole{})
	line, mapped, part := &Line{}, map[string]any{}, &Part{}
	for name, err := range map[string]error{
		"pointers": db.Create([]*Line{line, line}).Error,
		"maps":     db.Model(&Part{}).Create([]map[string]any{mapped, mapped}).Error,
		"embedded": db.Create([]Whole{{Part: part}, {Part: part}}).Error,
	} {
		if err == nil {
			t.Errorf("two rows of the same %s are stored", name)
		}
	}
	if line.Number != 0 || len(mapped) != 0 || part.Number != 0 {
		t.Error(*line, mapped, *part)
	}
	invoice, book := &Invoice{}, &Book{}
	lines := []Line{{Invoice: invoice, Book: book}, {Invoice: invoice, Book: book}}
	if err := db.Create(&lines).Error; err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if l.InvoiceID != invoice.ID || l.BookID != book.ID || invoice.Number == 0 || book.Number == 0 {
			t.Errorf("%+v of %+v and %+v", l, invoice, book)
		}
	}
	var invoices, books int64
	err := errors.Join(db.Model(&Invoice{}).Count(&invoices).Error, db.Model(&Book{}).Count(&books).Error)
	if err != nil || invoices != 1 || books != 1 {
		t.Errorf("%d invoices and %d books: %v", invoices, books, err)
	}
}
