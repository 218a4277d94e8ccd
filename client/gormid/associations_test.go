package gormid_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

type Team struct {
	ID      int64  `gorm:"primaryKey" idnode:"identity:teams"`
	Name    string `gorm:"uniqueIndex"`
	Tags    []Tag  `gorm:"many2many:team_tags"`
	Badge   *Badge
	Players []Player
}

type Tag struct {
	ID   int64  `gorm:"primaryKey" idnode:"identity:tags"`
	Name string `gorm:"uniqueIndex"`
}

type Badge struct {
	ID     int64 `gorm:"primaryKey"`
	TeamID int64
}

type Player struct {
	ID     int64 `gorm:"primaryKey" idnode:"hilo:players"`
	TeamID int64
	Team   *Team
}

// TestReferencesToNoRow: a row that was left out, because another has its name, cannot be one of an association.
func TestReferencesToNoRow(t *testing.T) {
	nothing := clause.OnConflict{DoNothing: true}
	for name, store := range map[string]func(db *gorm.DB) error{
		"many2many": func(db *gorm.DB) error { return db.Create(&Team{Name: "b", Tags: []Tag{{Name: "a"}}}).Error },
		"Append": func(db *gorm.DB) error {
			return db.Model(&Team{ID: -1}).Association("Tags").Append(&Tag{Name: "a"})
		},
		"belongs to": func(db *gorm.DB) error { return db.Create(&Player{Team: &Team{Name: "a"}}).Error },
		"has one":    func(db *gorm.DB) error { return db.Clauses(nothing).Create(&Team{Name: "a", Badge: &Badge{}}).Error },
		"has many": func(db *gorm.DB) error {
			return db.Clauses(nothing).Create(&Team{Name: "a", Players: []Player{{}}}).Error
		},
		"has many to many": func(db *gorm.DB) error {
			return db.Clauses(nothing).Create(&Team{Name: "a", Tags: []Tag{{Name: "b"}}}).Error
		},
		"tags without keys": func(db *gorm.DB) error {
			return db.Omit("Tags.*").Create(&Team{Name: "b", Tags: []Tag{{Name: "b"}}}).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := inMemory(t, &Team{}, &Tag{}, &Badge{}, &Player{})
			if err := db.Create(&Team{ID: -1, Name: "a", Tags: []Tag{{ID: -1, Name: "a"}}}).Error; err != nil {
				t.Fatal(err)
			}
			if err := store(db); err == nil {
				t.Error("no error")
			}
			for table, want := range map[string]int64{"teams": 1, "tags": 1, "team_tags": 1, "badges": 0, "players": 0} {
				var count int64
				if err := db.Table(table).Count(&count).Error; err != nil || count != want {
					t.Errorf("%d %s in place of %d: %v", count, table, want, err)
				}
			}
		})
	}
}

// TestAssociationsOfRows: what refers to rows that are stored is stored, and takes no number of its own.
func TestAssociationsOfRows(t *testing.T) {
	db := inMemory(t, &Team{}, &Tag{}, &Badge{}, &Player{})
	team := Team{Name: "c", Tags: []Tag{{Name: "c"}, {Name: "d"}}, Badge: &Badge{}, Players: []Player{{}}}
	again := Team{Name: "c", Tags: []Tag{}}
	err := errors.Join(db.Create(&team).Error, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&again).Error,
		db.Clauses(clause.OnConflict{DoNothing: true}).Omit("Tags").Create(&Team{Name: "c", Tags: []Tag{{Name: "e"}}}).Error)
	if err != nil || again.ID != 0 || team.Tags[1].ID != team.Tags[0].ID+1 {
		t.Errorf("%+v, %+v: %v", team, again, err)
	}
	var got Team
	if err := db.Preload("Tags").Preload("Badge").Preload("Players").First(&got).Error; err != nil {
		t.Fatal(err)
	}
	if got.ID != team.ID || len(got.Tags) != 2 || got.Badge == nil || len(got.Players) != 1 {
		t.Errorf("%+v in place of %+v", got, team)
	}
	next := Tag{}
	if err := db.Create(&next).Error; err != nil || next.ID != team.Tags[1].ID+1 {
		t.Error(next, err)
	}
}
