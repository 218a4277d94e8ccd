package gormid_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/gormid"
)

type Box struct {
	ID    uint64 `gorm:"primaryKey" idnode:"hilo:boxes"`
	Items []Item
}

type Item struct {
	ID     string  `gorm:"primaryKey" idnode:"hilo:items"`
	Number *int64  `gorm:"uniqueIndex" idnode:"identity:items"`
	Code   *string `gorm:"unique"`
	Name   string
	BoxID  *uint64
}

// ways are those of storing new rows, whose name is new.
var ways = map[string]func(db *gorm.DB) error{
	"Create":             func(db *gorm.DB) error { return db.Create(&Item{Name: "new"}).Error },
	"Create a slice":     func(db *gorm.DB) error { return db.Create([]Item{{Name: "new"}, {Name: "new"}}).Error },
	"Create of pointers": func(db *gorm.DB) error { return db.Create([]*Item{{Name: "new"}, {Name: "new"}}).Error },
	"CreateInBatches": func(db *gorm.DB) error {
		return db.CreateInBatches([]Item{{Name: "new"}, {Name: "new"}, {Name: "new"}}, 2).Error
	},
	"Save":         func(db *gorm.DB) error { return db.Save(&Item{Name: "new"}).Error },
	"Save a slice": func(db *gorm.DB) error { return db.Save([]Item{{Name: "new"}, {Name: "new"}}).Error },
	"FirstOrCreate": func(db *gorm.DB) error {
		return db.Where(Item{Name: "new"}).FirstOrCreate(&Item{}).Error
	},
	"update on conflict": func(db *gorm.DB) error {
		return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&Item{Name: "new"}).Error
	},
	"update on conflict of a code": func(db *gorm.DB) error {
		on := clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}
		return db.Clauses(on).Create(&Item{Name: "new", Code: new("c")}).Error
	},
	"nothing on conflict": func(db *gorm.DB) error {
		return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Item{Name: "new"}).Error
	},
	"a map": func(db *gorm.DB) error { return db.Model(&Item{}).Create(map[string]any{"Name": "new"}).Error },
	"maps": func(db *gorm.DB) error {
		return db.Model(&Item{}).Create([]map[string]any{{"Name": "new", "id": ""}, {"Name": "new", "Number": 0}}).Error
	},
	"maps on conflict": func(db *gorm.DB) error {
		on := db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})})
		return on.Model(&Item{}).Create(&[]map[string]any{{"name": "new"}, {"name": "new"}}).Error
	},
	"an association": func(db *gorm.DB) error { return db.Create(&Box{Items: []Item{{Name: "new"}, {Name: "new"}}}).Error },
	"a full association": func(db *gorm.DB) error {
		return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&Box{Items: []Item{{Name: "new"}}}).Error
	},
	"Append": func(db *gorm.DB) error {
		box := Box{}
		return errors.Join(db.Create(&box).Error, db.Model(&box).Association("Items").Append(&Item{Name: "new"}))
	},
	"a copy": func(db *gorm.DB) error {
		var item Item
		err := db.First(&item, "name = ?", "first").Error
		item.ID, item.Number, item.Code, item.Name = "", nil, nil, "new"
		return errors.Join(err, db.Create(&item).Error)
	},
	"a transaction that is begun again": func(db *gorm.DB) error {
		item := Item{Name: "new"}
		return db.Transaction(func(tx *gorm.DB) error {
			failed := tx.Transaction(func(tx *gorm.DB) error { return errors.Join(tx.Create(&item).Error, errors.ErrUnsupported) })
			if !errors.Is(failed, errors.ErrUnsupported) {
				return failed
			}
			return tx.Create(&item).Error
		})
	},
	"generics": func(db *gorm.DB) error { return gorm.G[Item](db).Create(context.Background(), &Item{Name: "new"}) },
	"a set of generics": func(db *gorm.DB) error {
		return gorm.G[Item](db).Set(clause.Assignment{Column: clause.Column{Name: "name"}, Value: "new"}).Create(context.Background())
	},
}

// inMemory returns a database of its own.
func inMemory(t *testing.T, models ...any) *gorm.DB {
	t.Helper()
	return inDatabase(t, sqlite.Open(":memory:"), gorm.Config{}, models...)
}

func inDatabase(t *testing.T, dialect gorm.Dialector, cfg gorm.Config, models ...any) *gorm.DB {
	t.Helper()
	c, err := client.New(t.Context(), client.Config{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	cfg.Logger = logger.Discard
	db, err := gorm.Open(dialect, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Use(gormid.Plugin{Client: c, Models: models}), db.AutoMigrate(models...)); err != nil {
		t.Fatal(err)
	}
	return db
}

// createFirst stores an item, and returns the number in its id: the next ones follow it.
func createFirst(t *testing.T, db *gorm.DB, first *Item) (id int64) {
	t.Helper()
	if err := db.Create(first).Error; err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(first.ID, "items/%d-A", &id); err != nil {
		t.Fatal(first.ID, err)
	}
	return id
}

// TestWays: by every way of storing, a new row gets its id and its number; and one that a row has already is
// an error, which changes nothing.
func TestWays(t *testing.T) {
	for name, store := range ways {
		for _, taken := range []string{"", "id", "number"} {
			t.Run(name+","+taken, func(t *testing.T) {
				db := inMemory(t, &Box{}, &Item{})
				first := Item{Name: "first", Code: new("first")}
				id := createFirst(t, db, &first)
				for i := int64(1); i <= 3; i++ {
					old := Item{ID: fmt.Sprint("old/", i), Number: new(-i), Code: new(fmt.Sprint(i)), Name: "old"}
					switch taken {
					case "id":
						old.ID = fmt.Sprintf("items/%d-A", id+i)
					case "number":
						old.Number = new(*first.Number + i)
					}
					if err := db.Create(&old).Error; err != nil {
						t.Fatal(err)
					}
				}
				err := store(db)
				var items []Item
				if found := db.Order("name").Find(&items); found.Error != nil {
					t.Fatal(found.Error)
				}
				stored := 0
				for _, item := range items {
					switch {
					case item.Number == nil, *item.Number == 0, item.Name != "old" && !strings.HasPrefix(item.ID, "items/"):
						t.Errorf("stored %+v", item)
					case item.Name == "new":
						stored++
					}
				}
				switch {
				case taken == "" && (err != nil || stored == 0):
					t.Errorf("%d rows are stored: %v", stored, err)
				case taken != "" && (err == nil || stored != 0):
					t.Errorf("with a taken %s %d rows are stored: %v", taken, stored, err)
				case len(items) != 4+stored:
					t.Errorf("an old row is lost: %+v", items)
				}
			})
		}
	}
}

// TestEmptyFieldsOfOldRows: what stores a row again leaves its number as it is.
func TestEmptyFieldsOfOldRows(t *testing.T) {
	for name, store := range map[string]func(db *gorm.DB, old Item) error{
		"Save":         func(db *gorm.DB, old Item) error { return db.Save(&old).Error },
		"Save a slice": func(db *gorm.DB, old Item) error { return db.Save([]Item{old}).Error },
		"Select": func(db *gorm.DB, old Item) error {
			return db.Select("*").Updates(&old).Error
		},
		"on conflict": func(db *gorm.DB, old Item) error {
			return db.Clauses(clause.OnConflict{
				Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"name", "number"}),
			}).Create(&old).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := inMemory(t, &Box{}, &Item{})
			first := Item{Name: "first"}
			if err := db.Create(&first).Error; err != nil {
				t.Fatal(err)
			}
			if err := store(db, Item{ID: first.ID, Number: new(int64(0)), Name: "again"}); err != nil {
				t.Fatal(err)
			}
			var got Item
			if err := db.First(&got).Error; err != nil || got.Name != "again" || *got.Number != *first.Number {
				t.Errorf("%+v, number %d in place of %d: %v", got, *got.Number, *first.Number, err)
			}
		})
	}
	db := inMemory(t, &Box{}, &Item{})
	if err := db.Save(&Item{ID: "mine"}).Error; err != nil {
		t.Error(err)
	}
	var mine Item
	if err := db.First(&mine).Error; err != nil || mine.ID != "mine" || mine.Number == nil || *mine.Number == 0 {
		t.Errorf("%+v: %v", mine, err)
	}
	if err := db.Save([]Item{{ID: "mine"}, {ID: "two", Number: new(int64(-2))}}).Error; err == nil {
		t.Error("rows with and without a number are stored together")
	}
	for _, partly := range []*gorm.DB{db.Select("Name"), db.Omit("Number")} {
		if err := partly.Create(&Item{Name: "new"}).Error; err == nil {
			t.Error("a row without its id is stored")
		}
	}
}

// inserts is an INSERT clause of another name.
type inserts struct{ clause.Insert }

func (inserts) MergeClause(c *clause.Clause) { c.Name, c.Expression = "REPLACE", clause.Insert{} }

// hint is as one of gorm.io/hints, which gives the clause no name.
type hint struct{ clause.Expr }

func (h hint) ModifyStatement(s *gorm.Statement) {
	c := s.Clauses["INSERT"]
	c.AfterNameExpression = h
	s.Clauses["INSERT"] = c
}

// TestModifiers: an INSERT that could lose a row is refused where a field is empty, and takes no id.
func TestModifiers(t *testing.T) {
	db := inMemory(t, &Invoice{})
	delete(db.ClauseBuilders, "INSERT") // SQLite's drops the name.
	first := Invoice{}
	if err := db.Create(&first).Error; err != nil {
		t.Fatal(err)
	}
	for _, c := range []clause.Expression{clause.Insert{Modifier: "OR REPLACE"}, clause.Insert{Modifier: "or ignore"}, inserts{}} {
		invoice := Invoice{}
		if err := db.Clauses(c).Create(&invoice).Error; err == nil || invoice.ID != "" {
			t.Errorf("%+v: %+v, %v", c, invoice, err)
		}
		if err := db.Clauses(c).Create(&Invoice{ID: "mine", Number: 7_000}).Error; err != nil {
			t.Errorf("%+v without an empty field: %v", c, err)
		}
	}
	next := Invoice{}
	if err := db.Clauses(hint{clause.Expr{SQL: "OR ABORT"}}).Create(&next).Error; err != nil || next.Number != first.Number+1 {
		t.Error(next, err)
	}
}

type (
	name   string
	number int32
)

type Wide struct {
	ID    int64 `gorm:"primaryKey" idnode:"hilo:wide"`
	Named name
	A     *string          `idnode:"identity:wide"`
	B     sql.NullString   `idnode:"identity:wide"`
	C     *int64           `idnode:"identity:wide"`
	D     sql.NullInt64    `idnode:"identity:wide"`
	E     name             `idnode:"identity:wide"`
	F     number           `idnode:"identity:wide"`
	G     *sql.NullString  `idnode:"identity:wide"`
	H     *uint16          `idnode:"identity:wide"`
	I     sql.Null[string] `idnode:"identity:wide"`
	J     sql.Null[int64]  `idnode:"identity:wide"`
}

// TestTypes: each type gets what is right for it.
func TestTypes(t *testing.T) {
	db := inMemory(t, &Wide{})
	empty := ""
	if err := db.Create(&Wide{A: &empty, G: &sql.NullString{Valid: true}, B: sql.NullString{String: "not valid"}}).Error; err != nil {
		t.Fatal(err)
	}
	var w Wide
	if err := db.First(&w).Error; err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%v %v %v %v %v %v %v %v %v %v", *w.A, w.B, *w.C, w.D, w.E, w.F, *w.G, *w.H, w.I, w.J)
	if want := "wide/1 {wide/2 true} 3 {4 true} wide/5 6 {wide/7 true} 8 {wide/9 true} {10 true}"; got != want {
		t.Errorf("%s in place of %s", got, want)
	}
}

// TestRefusedTypes: at the begin for models that the plugin knows, and else when a row is stored.
func TestRefusedTypes(t *testing.T) {
	for _, model := range []any{
		&struct {
			ID float64 `idnode:"hilo:x"`
		}{},
		&struct {
			ID []byte `idnode:"hilo:x"`
		}{},
		&struct {
			ID sql.NullTime `idnode:"hilo:x"`
		}{},
		&struct {
			ID **int64 `idnode:"hilo:x"`
		}{},
		&struct {
			ID bool `idnode:"hilo:x"`
		}{},
		&struct {
			ID string `gorm:"serializer:json" idnode:"hilo:x"`
		}{},
		&struct {
			ID   string
			Name string `gorm:"->" idnode:"hilo:x"`
		}{},
		&struct {
			ID string `idnode:"guid:x"`
		}{},
		&struct {
			ID string `idnode:"hilo:"`
		}{},
	} {
		if err := inMemory(t).Use(renamed{gormid.Plugin{Models: []any{model}}}); err == nil {
			t.Errorf("%T is taken", model)
		}
		if err := inMemory(t).Table("x").Create(model).Error; err == nil || !strings.Contains(err.Error(), "gormid") {
			t.Errorf("%T: %v", model, err)
		}
	}
	db := inMemory(t, &Small{})
	if err := db.Create(make([]Small, 200)).Error; err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("numbers above 127 in 8 bits: %v", err)
	}
}

type Small struct {
	ID int8 `idnode:"hilo:small"`
}

// renamed is a plugin of another name, since GORM takes a name once.
type renamed struct{ gormid.Plugin }

func (renamed) Name() string { return "again" }

type Event struct {
	ID   int64   `gorm:"primaryKey" idnode:"snowflake:events"`
	Text *string `idnode:"snowflake:events"`
}

// TestSnowflakes: all ids of a pool are different, as numbers and as texts.
func TestSnowflakes(t *testing.T) {
	db := inMemory(t, &Event{})
	// The node may not have formed its cluster yet: this waits for it.
	if err := db.Create(&Event{}).Error; err == nil {
		t.Fatal("ids of a pool that is not defined are stored")
	}
	define := exec.CommandContext(t.Context(), program, "snowflake", "define", "events", "--endpoint", endpoint)
	if out, err := define.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	events := make([]Event, 100)
	if err := db.Create(&events).Error; err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, e := range events {
		seen[strconv.FormatInt(e.ID, 10)], seen[*e.Text] = true, true
	}
	if len(seen) != 2*len(events) || seen["0"] || seen[""] {
		t.Errorf("%d ids: %v", len(seen), seen)
	}
}

// TestTheSecondTry: what failed, because a row had the id, is tried again with the same values, and changes no old row.
func TestTheSecondTry(t *testing.T) {
	item, create, updated := Item{Name: "new"}, Item{Name: "new"}, Item{Name: "new"}
	items, pointers, batch := []Item{{Name: "new"}, {Name: "new"}}, []*Item{{Name: "new"}}, []Item{{Name: "new"}, {Name: "new"}}
	box := Box{Items: []Item{{Name: "new"}}}
	mapped := map[string]any{"Name": "new"}
	for name, store := range map[string]func(db *gorm.DB) error{
		"Save":            func(db *gorm.DB) error { return db.Save(&item).Error },
		"Create":          func(db *gorm.DB) error { return errors.Join(db.Create(&create).Error, db.Save(&create).Error) },
		"Save a slice":    func(db *gorm.DB) error { return db.Save(&items).Error },
		"Save pointers":   func(db *gorm.DB) error { return db.Save(pointers).Error },
		"CreateInBatches": func(db *gorm.DB) error { return db.CreateInBatches(batch, 1).Error },
		"on conflict": func(db *gorm.DB) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&updated).Error
		},
		"an association": func(db *gorm.DB) error { return db.Save(&box).Error },
		"a map":          func(db *gorm.DB) error { return db.Model(&Item{}).Create(mapped).Error },
	} {
		t.Run(name, func(t *testing.T) {
			db := inMemory(t, &Box{}, &Item{})
			id := createFirst(t, db, &Item{Name: "first"})
			for i := int64(1); i <= 2; i++ {
				if err := db.Create(&Item{ID: fmt.Sprintf("items/%d-A", id+i), Number: new(-i), Name: "old"}).Error; err != nil {
					t.Fatal(err)
				}
			}
			err := store(db)
			if err == nil {
				t.Fatal("no error")
			}
			for range 5 {
				if err = store(db); err == nil {
					break
				}
			}
			var old, stored int64
			counted := errors.Join(db.Model(&Item{}).Where("name = ? AND number < 0", "old").Count(&old).Error,
				db.Model(&Item{}).Where("name = ? AND number > 0", "new").Count(&stored).Error)
			if err != nil || counted != nil || old != 2 || stored == 0 {
				t.Errorf("%d old rows and %d new ones: %v, %v", old, stored, err, counted)
			}
		})
	}
}

// TestMapsOnConflict: columns that the map does not have stay as they are.
func TestMapsOnConflict(t *testing.T) {
	db := inMemory(t, &Box{}, &Item{})
	first := Item{Name: "first", Code: new("c")}
	if err := db.Create(&first).Error; err != nil {
		t.Fatal(err)
	}
	again := map[string]any{"ID": first.ID, "Name": "again"}
	if err := db.Clauses(clause.OnConflict{UpdateAll: true}).Model(&Item{}).Create(again).Error; err != nil {
		t.Fatal(err)
	}
	var got Item
	if err := db.First(&got).Error; err != nil || got.Name != "again" || got.Code == nil || *got.Number != *first.Number {
		t.Errorf("%+v: %v", got, err)
	}
}

// TestConflictOfACode: the row that has the code keeps its id and its number, and the struct does not have others.
func TestConflictOfACode(t *testing.T) {
	db := inMemory(t, &Box{}, &Item{})
	first := Item{Name: "first", Code: new("c")}
	if err := db.Create(&first).Error; err != nil {
		t.Fatal(err)
	}
	for _, on := range []clause.OnConflict{{Columns: []clause.Column{{Name: "code"}}, UpdateAll: true}, {DoNothing: true}} {
		again := Item{Name: "again", Code: new("c")}
		if err := db.Clauses(on).Create(&again).Error; err != nil {
			t.Fatal(err)
		}
		var got Item
		if err := db.First(&got).Error; err != nil || got.ID != first.ID || got.Name != "again" || *got.Number != *first.Number {
			t.Errorf("%+v: %v", got, err)
		}
		if again.ID != "" || again.Number != nil {
			t.Errorf("the struct has %q and %v, which no row has", again.ID, again.Number)
		}
	}
}

// TestStoredTwice: what is stored twice keeps the number of its row.
func TestStoredTwice(t *testing.T) {
	for name, store := range map[string]func(db *gorm.DB, old *Item) error{
		"Save":         func(db *gorm.DB, old *Item) error { return db.Save(old).Error },
		"Save a slice": func(db *gorm.DB, old *Item) error { return db.Save([]*Item{old, {ID: "unknown"}}).Error },
		"on conflict": func(db *gorm.DB, old *Item) error {
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(old).Error
		},
		"an association": func(db *gorm.DB, old *Item) error {
			return db.Save(&Box{Items: []Item{*old}}).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := inMemory(t, &Box{}, &Item{})
			first := Item{Name: "first"}
			if err := db.Create(&first).Error; err != nil {
				t.Fatal(err)
			}
			old := Item{ID: first.ID, Name: "again"}
			if err := errors.Join(store(db, &old), db.Save(&old).Error); err != nil {
				t.Fatal(err)
			}
			var got Item
			if err := db.First(&got, "id = ?", first.ID).Error; err != nil || got.Name != "again" || *got.Number != *first.Number {
				t.Errorf("%+v, number %d in place of %d: %v", got, *got.Number, *first.Number, err)
			}
		})
	}
}

type Account struct {
	ID   string `gorm:"primaryKey" idnode:"hilo:accounts"`
	Name string
}

// otherDialect is not SQLite's, which drops a schema's name.
type otherDialect struct{ gorm.Dialector }

func (otherDialect) Name() string { return "other" }

// TestTablesOfSchemas: the new ids are looked for in the table of the schema.
func TestTablesOfSchemas(t *testing.T) {
	db := inDatabase(t, otherDialect{sqlite.Open(":memory:")}, gorm.Config{}, &Account{}) // Its table in the other schema is empty.
	delete(db.ClauseBuilders, "INSERT")
	for _, exec := range []string{"ATTACH ':memory:' AS billing", "CREATE TABLE billing.accounts (id text PRIMARY KEY, name text)"} {
		if err := db.Exec(exec).Error; err != nil {
			t.Fatal(err)
		}
	}
	first := Account{Name: "first"}
	var id int64
	if err := db.Table("billing.accounts").Create(&first).Error; err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(first.ID, "accounts/%d-A", &id); err != nil {
		t.Fatal(first.ID, err)
	}
	if err := db.Table("billing.accounts").Create(&Account{ID: fmt.Sprintf("accounts/%d-A", id+1), Name: "old"}).Error; err != nil {
		t.Fatal(err)
	}
	if err := db.Table("billing.accounts").Save([]Account{{Name: "new"}}).Error; !errors.Is(err, gorm.ErrDuplicatedKey) {
		t.Error(err)
	}
}

type Bill struct {
	ID     string `gorm:"primaryKey" idnode:"hilo:bills"`
	Tenant string `gorm:"uniqueIndex:number"`
	Number int64  `gorm:"uniqueIndex:number" idnode:"identity:bills"`
	State  string `gorm:"default:open"`
}

// TestIndexesOfTwoColumns: a taken pair is an error where ON CONFLICT would leave the new row out.
func TestIndexesOfTwoColumns(t *testing.T) {
	db := inMemory(t, &Bill{})
	first := Bill{Tenant: "a"}
	if err := db.Create(&first).Error; err != nil {
		t.Fatal(err)
	}
	if err := db.Create([]Bill{{Tenant: "a", Number: first.Number + 1}, {Tenant: "b", Number: first.Number + 2}}).Error; err != nil {
		t.Fatal(err)
	}
	nothing := db.Clauses(clause.OnConflict{DoNothing: true}).Session(&gorm.Session{})
	bill := Bill{Tenant: "a"}
	if err := nothing.Create(&bill).Error; !errors.Is(err, gorm.ErrDuplicatedKey) || bill.Number != 0 {
		t.Error(bill, err)
	}
	if err := nothing.Create(&bill).Error; err != nil || bill.Number != first.Number+2 {
		t.Error(bill, err)
	}
	if err := nothing.Create(&Bill{}).Error; err == nil {
		t.Error("a bill without a tenant, which a hook may give, is stored")
	}
	bill.Number, bill.State = 0, "paid"
	if err := db.Save([]*Bill{&bill}).Error; err != nil || bill.Number != first.Number+2 {
		t.Error(bill, err)
	}
	var got Bill
	if err := db.First(&got, "id = ?", bill.ID).Error; err != nil || got != bill || got.State != "paid" {
		t.Errorf("%+v in place of %+v: %v", got, bill, err)
	}
}

// TestWithoutTransactions: GORM may be told to begin none of its own.
func TestWithoutTransactions(t *testing.T) {
	db := inDatabase(t, sqlite.Open(":memory:"), gorm.Config{SkipDefaultTransaction: true}, &Account{})
	user := Account{Name: "new"}
	if err := db.Create(&user).Error; err != nil {
		t.Fatal(err)
	}
	var got Account
	if err := db.First(&got).Error; err != nil || got != user || got.ID == "" {
		t.Errorf("%+v in place of %+v: %v", got, user, err)
	}
}

type Ticket struct {
	ID        string `gorm:"primaryKey" idnode:"hilo:tickets"`
	Number    int64  `gorm:"uniqueIndex" idnode:"identity:tickets"`
	UpdatedAt int64  `gorm:"autoUpdateTime"`
}

// TestTablesOfOthers: a unique index is known without GORM's migration, and an update has its time.
func TestTablesOfOthers(t *testing.T) {
	db := inMemory(t)
	if err := db.Exec("CREATE TABLE tickets (id text PRIMARY KEY, number integer UNIQUE, updated_at integer)").Error; err != nil {
		t.Fatal(err)
	}
	if err := db.Create([]Ticket{{ID: "old", Number: 1}, {ID: "other", Number: 100}}).Error; err != nil {
		t.Fatal(err)
	}
	ticket := Ticket{}
	if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&ticket).Error; !errors.Is(err, gorm.ErrDuplicatedKey) {
		t.Error(ticket, err)
	}
	other := Ticket{ID: "other", UpdatedAt: 7}
	if err := db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&other).Error; err != nil || other.Number != 100 {
		t.Fatal(other, err)
	}
	if err := db.First(&other, "id = ?", "other").Error; err != nil || other.UpdatedAt < 1_000_000 {
		t.Error(other, err)
	}
}
