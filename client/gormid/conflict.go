package gormid

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// fillingKey is the name of a statement's filling.
const fillingKey = "idnode:filling"

// filling is what a Create has filled.
type filling struct {
	targets []target
	rows    []row
	// again are those of the same pointers, or maps, as rows.
	again  []row
	filled []filled
	// nested means that the rows are those of an association.
	nested bool
	// unsure are the rows of which the database may have another, or none.
	unsure []row
}

// filled is a field that was empty.
type filled struct {
	row    row
	target target
	// undo empties it again.
	undo func()
}

// rowsWith returns the rows in which a field was empty.
func (f *filling) rowsWith(field *schema.Field) (rows []row) {
	for _, one := range f.filled {
		if one.target.field == field {
			rows = append(rows, one.row)
		}
	}
	return rows
}

// once returns an error if a row comes again and the database could take it twice, with one id.
func (f *filling) once(db *gorm.DB, t target) error {
	if len(f.again) == 0 {
		return nil
	}
	indexes, err := uniquesOf(db)
	if err != nil || slices.ContainsFunc(f.targets, func(t target) bool { return isUnique(indexes, t.field) }) {
		return err
	}
	key := db.Statement.Schema.PrimaryFields
	for _, r := range f.again {
		gets := func(k *schema.Field) bool { // The database gives it.
			fills := slices.ContainsFunc(f.targets, func(t target) bool { return t.field == k })
			return !fills && k.HasDefaultValue && isEmpty(r.value(db.Statement.Context, k))
		}
		if isEmpty(r.value(db.Statement.Context, t.field)) && (len(key) == 0 || slices.ContainsFunc(key, gets)) {
			return errors.New("a row comes twice, and would be stored twice with one id")
		}
	}
	return nil
}

// places are those of rows in their statement.
func places(rows []row) map[int]bool {
	at := make(map[int]bool, len(rows))
	for _, r := range rows {
		at[r.at] = true
	}
	return at
}

// those returns the rows that are among others, or with in = false those that are not.
func those(rows []row, in bool, others []row) []row {
	at := places(others)
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return at[r.at] != in })
}

// empty empties what was filled, if the Create has failed: a key that stays would have the next Save change
// the row which has it.
func empty(db *gorm.DB) {
	if v, ok := db.InstanceGet(fillingKey); ok && db.Error != nil {
		for _, one := range slices.Backward(v.(*filling).filled) {
			one.undo()
		}
	}
}

// guard has an id that a row has already be an error where ON CONFLICT would change that row, or leave the
// new one out. In a row that may exist it keeps the columns that were empty.
func (f *filling) guard(db *gorm.DB) error {
	s := db.Statement
	on, ok := s.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	if !ok {
		return nil
	}
	f.unsure = f.rows
	onKey := onlyOfKey(s, on)
	for _, t := range f.targets {
		if onKey && t.field.PrimaryKey { // Rows with a new key are new.
			f.unsure = those(f.unsure, false, f.rowsWith(t.field))
		}
	}
	for _, t := range f.targets {
		rows := f.rowsWith(t.field)
		if err := free(db, t, rows, onKey); err != nil {
			return err
		}
		emptied := those(f.unsure, true, rows)
		if t.field.PrimaryKey || len(emptied) == 0 || !updates(on, t.field) {
			continue
		}
		if len(emptied) < len(f.unsure) {
			return fmt.Errorf("%s: some rows that may exist have a value and others have none; store them one by one", t)
		}
		on = f.without(s, on, t.field)
	}
	s.AddClause(on)
	return nil
}

// loses reports whether an INSERT replaces rows, or leaves new ones out, without ON CONFLICT.
func loses(s *gorm.Statement) bool {
	c := s.Clauses["INSERT"]
	insert, _ := c.Expression.(clause.Insert)
	modifier := strings.ToUpper(insert.Modifier)
	return c.Name != "" && c.Name != "INSERT" || strings.Contains(modifier, "REPLACE") || strings.Contains(modifier, "IGNORE")
}

// onlyOfKey reports whether the conflict can be one of the primary key alone. MySQL takes any.
func onlyOfKey(s *gorm.Statement, on clause.OnConflict) bool {
	key := slices.Sorted(slices.Values(s.Schema.PrimaryFieldDBNames))
	if len(key) == 0 || on.OnConstraint != "" || s.Dialector.Name() == "mysql" {
		return false
	}
	names := make([]string, 0, len(on.Columns))
	for _, c := range on.Columns {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return slices.Equal(names, key) || len(names) == 0 && on.UpdateAll // GORM's default.
}

func updates(on clause.OnConflict, f *schema.Field) bool {
	return on.UpdateAll || slices.ContainsFunc(on.DoUpdates, func(a clause.Assignment) bool { return a.Column.Name == f.DBName })
}

// lookAt begins a query of a statement's table, with its deleted rows. gorm.io/plugin/dbresolver sends it to the
// database that is written.
func lookAt(s *gorm.Statement) *gorm.DB {
	const using = "gorm:db_resolver:using"
	look := s.DB.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Unscoped().Table(s.Table).Set("gorm:db_resolver:write", struct{}{})
	look.Statement.Clauses[using] = s.Clauses[using]
	if s.TableExpr != nil && s.Dialector.Name() != "sqlite" { // It has the schema too, which SQLite's INSERT drops.
		look.Statement.TableExpr = s.TableExpr
	}
	return look
}

// uniques have the columns of the unique indexes of each schema. GORM's own are parsed by its migration alone,
// which writes into the schema.
var uniques sync.Map // *schema.Schema to [][]*schema.Field

func uniquesOf(db *gorm.DB) ([][]*schema.Field, error) {
	s := db.Statement.Schema
	if known, ok := uniques.Load(s); ok {
		return known.([][]*schema.Field), nil
	}
	own, err := schema.Parse(reflect.New(s.ModelType).Interface(), &sync.Map{}, db.NamingStrategy)
	if err != nil {
		return nil, err
	}
	var all [][]*schema.Field
	for _, index := range own.ParseIndexes() {
		var fields []*schema.Field
		for _, o := range index.Fields {
			fields = append(fields, s.FieldsByDBName[o.DBName])
		}
		if index.Class == "UNIQUE" {
			all = append(all, fields)
		}
	}
	uniques.Store(s, all)
	return all, nil
}

func isUnique(indexes [][]*schema.Field, f *schema.Field) bool {
	return f.Unique || slices.ContainsFunc(indexes, func(index []*schema.Field) bool { return len(index) == 1 && index[0] == f })
}

// free returns an error if a row, though it is deleted softly, has one of the new ids of a unique field.
func free(db *gorm.DB, t target, rows []row, onKey bool) error {
	indexes, err := uniquesOf(db)
	if err != nil {
		return err
	}
	if t.field.PrimaryKey || isUnique(indexes, t.field) {
		for some := range slices.Chunk(rows, 500) {
			if err := none(t, lookAt(db.Statement).Where(valuesOf(db.Statement, t.field, some))); err != nil {
				return err
			}
		}
	}
	for _, index := range indexes {
		if onKey || len(index) == 1 || !slices.Contains(index, t.field) { // Another unique index is an error of the database.
			continue
		}
		for _, r := range rows {
			if err := freePair(db, t, index, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// freePair is free for an index of several columns.
func freePair(db *gorm.DB, t target, index []*schema.Field, r row) error {
	look := lookAt(db.Statement)
	for _, f := range index {
		_, deletes := reflect.New(f.IndirectFieldType).Interface().(schema.DeleteClausesInterface)
		plain := slices.Contains([]string{"", "0", "NULL"}, strings.ToUpper(f.DefaultValue))
		switch {
		case !isEmpty(r.value(db.Statement.Context, f)):
			look = look.Where(valuesOf(db.Statement, f, []row{r}))
		case deletes && plain: // NULL or 0: the row is not deleted.
			look = look.Where(clause.Eq{Column: clause.Column{Name: f.DBName}, Value: reflect.Zero(f.IndirectFieldType).Interface()})
		default:
			return fmt.Errorf("%s: with this ON CONFLICT %s, which is in the same unique index, must have a value", t, f.Name)
		}
	}
	return none(t, look)
}

// valuesOf is the condition that a column has one of the rows' values.
func valuesOf(s *gorm.Statement, f *schema.Field, rows []row) clause.IN {
	in := clause.IN{Column: clause.Column{Name: f.DBName}}
	for _, r := range rows {
		if v := r.value(s.Context, f); v.IsValid() {
			in.Values = append(in.Values, v.Interface())
		}
	}
	return in
}

func none(t target, look *gorm.DB) error {
	var taken int64
	if err := look.Count(&taken).Error; err != nil {
		return err
	}
	if taken > 0 {
		return fmt.Errorf("%s: a row has one of the new ids already: %w", t, gorm.ErrDuplicatedKey)
	}
	return nil
}

// without returns an ON CONFLICT that does not update a field.
func (f *filling) without(s *gorm.Statement, on clause.OnConflict, without *schema.Field) clause.OnConflict {
	if on.UpdateAll {
		on.UpdateAll = false
		columns, restricted := s.SelectAndOmitColumns(true, true)
		for _, field := range s.Schema.Fields {
			stored, named := columns[field.DBName]
			if field.DBName != "" && (stored || !named && !restricted) && f.updated(s, field) {
				on.DoUpdates = append(on.DoUpdates, assignment(s, field))
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

// assignment is GORM's of a field in an UpdateAll.
func assignment(s *gorm.Statement, field *schema.Field) clause.Assignment {
	if field.AutoUpdateTime == 0 {
		return clause.AssignmentColumns([]string{field.DBName})[0]
	}
	r := reflect.New(s.Schema.ModelType).Elem()
	_ = field.Set(s.Context, r, s.DB.NowFunc())
	now, _ := field.ValueOf(s.Context, r)
	return clause.Assignment{Column: clause.Column{Name: field.DBName}, Value: now}
}

// updated reports whether GORM's UpdateAll has a field: one that the rows have, without a default of the database.
func (f *filling) updated(s *gorm.Statement, field *schema.Field) bool {
	null := strings.EqualFold(field.DefaultValue, "NULL")
	if field.PrimaryKey || field.AutoCreateTime != 0 || field.HasDefaultValue && field.DefaultValueInterface == nil && !null {
		return false
	}
	return slices.ContainsFunc(f.rows, func(r row) bool {
		if r.of.IsValid() {
			return !null || r.value(s.Context, field).IsValid()
		}
		_, ok := r.mapped[r.key(field)]
		return ok
	})
}

// settle gives the filled fields of rows that ON CONFLICT may have changed, or left out, what the database has:
// a value that its row does not have would be stored by the next Save.
func settle(db *gorm.DB) error {
	v, ok := db.InstanceGet(fillingKey)
	if !ok || db.DryRun || len(db.Statement.Schema.PrimaryFields) == 0 {
		return nil
	}
	f, s := v.(*filling), db.Statement
	unsure := places(f.unsure)
	open := slices.DeleteFunc(slices.Clone(f.filled), func(one filled) bool { return !unsure[one.row.at] })
	rows := make([]row, len(open))
	for i, one := range open {
		rows[i] = one.row
	}
	stored, err := storedOf(s, rows)
	if err != nil {
		return err
	}
	found := make([]row, len(open))
	for i, one := range open { // Before any changes, since a key may be one.
		found[i] = stored[one.row.keyText(s)]
	}
	for i, one := range slices.Backward(open) {
		if !found[i].of.IsValid() {
			if f.nested || hasDependents(s, one.row) {
				return fmt.Errorf("%s: another row has a unique value of this one, which is not stored: nothing can refer to it", one.target)
			}
			one.undo()
		} else if !one.target.field.PrimaryKey {
			one.row.copy(s.Context, one.target.field, found[i])
		}
	}
	return nil
}

// hasDependents reports whether rows are stored after a row that refer to it.
func hasDependents(s *gorm.Statement, r row) bool {
	rels := slices.Concat(s.Schema.Relationships.HasOne, s.Schema.Relationships.HasMany, s.Schema.Relationships.Many2Many)
	return r.of.IsValid() && slices.ContainsFunc(rels, func(rel *schema.Relationship) bool {
		v := reflect.Indirect(r.value(s.Context, rel.Field))
		return stores(s, rel.Name) && v.IsValid() && (v.Kind() != reflect.Slice || v.Len() > 0)
	})
}

// storedOf returns what the database has of rows, by their keys.
func storedOf(s *gorm.Statement, rows []row) (map[string]row, error) {
	stored := make(map[string]row)
	for some := range slices.Chunk(rows, 500) {
		look := lookAt(s)
		for _, key := range s.Schema.PrimaryFields {
			look = look.Where(valuesOf(s, key, some))
		}
		models := reflect.New(reflect.SliceOf(s.Schema.ModelType))
		if err := look.Find(models.Interface()).Error; err != nil {
			return nil, err
		}
		for i := range models.Elem().Len() {
			r := row{of: models.Elem().Index(i)}
			stored[r.keyText(s)] = r
		}
	}
	return stored, nil
}
