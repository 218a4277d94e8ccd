package gormid_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

type Ship struct {
	ID        string         `gorm:"primaryKey" idnode:"hilo:ships"`
	Number    int64          `gorm:"uniqueIndex:ship" idnode:"identity:ships"`
	DeletedAt gorm.DeletedAt `gorm:"uniqueIndex:ship"`
}

type Captain struct {
	ID      int64   `gorm:"primaryKey"`
	Number  int64   `gorm:"uniqueIndex:captain" idnode:"identity:captains"`
	Deleted counted `gorm:"uniqueIndex:captain;default:0"`
	ShipID  string
	Ship    Ship
}

// counted is as DeletedAt of gorm.io/plugin/soft_delete: 0 where nothing is deleted.
type counted int

func (counted) DeleteClauses(*schema.Field) []clause.Interface { return nil }

// TestSoftDeletes: a row that is not deleted has its number, and a deleted one as its unique index says.
func TestSoftDeletes(t *testing.T) {
	db := inMemory(t, &Ship{}, &Captain{})
	nothing := db.Clauses(clause.OnConflict{DoNothing: true}).Session(&gorm.Session{})
	first := Captain{}
	if err := nothing.Create(&first).Error; err != nil || first.Number == 0 || first.Ship.Number != 0 {
		t.Fatal(first, err)
	}
	second := Captain{Ship: Ship{ID: "second"}}
	if err := db.Create(&second).Error; err != nil || second.Ship.Number == 0 || second.ShipID != "second" {
		t.Fatal(second, err)
	}
	deleted := gorm.DeletedAt{Time: time.Now(), Valid: true}
	err := errors.Join(
		db.Create([]Captain{{Number: second.Number + 1, Deleted: 7}, {Number: second.Number + 2}}).Error,
		db.Create([]Ship{{Number: second.Ship.Number + 1, DeletedAt: deleted}, {Number: second.Ship.Number + 2}}).Error)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(2) {
		captain, ship := Captain{}, Ship{}
		for _, err := range []error{nothing.Create(&captain).Error, nothing.Create(&ship).Error} {
			if (i == 0) != (err == nil) || i == 1 && !errors.Is(err, gorm.ErrDuplicatedKey) {
				t.Errorf("%d: %v", i, err)
			}
		}
	}
}
