package counterfile_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/idnode/idnode/transfer/counterfile"
)

func read(t *testing.T, f func(io.Reader, counterfile.Each) error, text string) ([]counterfile.Counter, error) {
	t.Helper()
	var all []counterfile.Counter
	err := f(strings.NewReader(text), func(c counterfile.Counter) error {
		all = append(all, c)
		return nil
	})
	return all, err
}

var counters = []counterfile.Counter{
	{Kind: counterfile.HiLo, Name: "users", Value: 64},
	{Kind: counterfile.HiLo, Name: `odd",name`, Value: math.MaxInt64},
	{Kind: counterfile.Identity, Name: "invoices", Value: 1991},
	{Kind: counterfile.Identity, Name: "users/", Value: -3},
}

func TestCSVRoundTrip(t *testing.T) {
	want := slices.Clone(counters)
	for i := range want {
		want[i].Database = "shop"
	}
	want = append(want, counterfile.Counter{Database: "shop", Kind: counterfile.Claim, Name: "users/ayende"},
		counterfile.Counter{Database: "shop", Kind: counterfile.Claim, Name: "\r\nline \r\r\n ends \n\r"},
		counterfile.Counter{Database: "shop", Kind: counterfile.DeletedIdentity, Name: "gone", Value: 5})
	var file bytes.Buffer
	w, err := counterfile.NewCSVWriter(&file)
	for _, c := range want {
		err = errors.Join(err, w.Write(c))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := read(t, counterfile.ReadCSV, file.String())
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
}

// TestNoCellIsAFormula: a spreadsheet that opens the file runs nothing, and the names
// come back as they were, also those with the guard itself before them.
func TestNoCellIsAFormula(t *testing.T) {
	var all []counterfile.Counter
	for _, sign := range []string{"=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"} {
		for _, name := range []string{
			sign, sign + "1+1", "'" + sign + "x", "''" + sign, "a" + sign, "'a" + sign, "'", "a;" + sign,
			";'" + sign + "1;'';" + sign,
		} {
			all = append(all, counterfile.Counter{Database: sign, Kind: counterfile.Identity, Name: name, Value: 1})
		}
	}
	file := wantWrittenAndRead(t, all)
	cells := csv.NewReader(strings.NewReader(strings.ReplaceAll(file, "\r", "\t"))) // It would change some.
	for {
		row, err := cells.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range strings.Split(strings.Join(row[:3], ";"), ";") { // Some separate by that.
			if strings.IndexAny(cell, "=+-@＝＋－＠\t\r\n") == 0 {
				t.Errorf("the cell %q in %q", cell, row)
			}
		}
	}
}

// TestAFileWithoutGuardsIsReadAsItIs, as one of a program that wrote none: an apostrophe
// there is part of a name, and another name's counter would be raised without it.
func TestAFileWithoutGuardsIsReadAsItIs(t *testing.T) {
	got, err := read(t, counterfile.ReadCSV, "database,kind,name,value\n-db,identity,=a,1\n'-db,identity,'=old,2\n")
	want := []counterfile.Counter{
		{Database: "-db", Kind: counterfile.Identity, Name: "=a", Value: 1},
		{Database: "'-db", Kind: counterfile.Identity, Name: "'=old", Value: 2},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v %v", got, err)
	}
}

func TestRavenDBRoundTrip(t *testing.T) {
	var file bytes.Buffer
	w := counterfile.NewRavenDBWriter(&file)
	for _, c := range counters {
		if err := w.Write(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := read(t, counterfile.ReadRavenDB, file.String())
	if err != nil || !slices.Equal(got, counters) {
		t.Errorf("%v %v", got, err)
	}
}

// An export as a server writes it, with much that is not asked for.
const export = `{"BuildVersion":54107,"DatabaseRecord":{"DatabaseName":"shop","Settings":[{"Docs":[1,2]}]},
"Docs":[
 {"Name":"Raven/Hilo/ is only mentioned","@metadata":{"@collection":"Notes","@id":"notes/1"}},
 {"Max":2049,"@metadata":{"@collection":"@hilo","@change-vector":"A:1-x","@id":"Raven/Hilo/orders"}},
 {"Max":32.0,"@metadata":{"@collection":"@hilo","@id":"raven/hilo/Users"}},
 {"Max":"raven/hilo/","Lines":[{"a":{}}],"@metadata":{"@collection":"Orders","@id":"orders/1"}}
],
"RevisionDocuments":[],"Indexes":[{"Type":"Map"}],
"Identities":[{"Key":"invoices|","Value":"1991"},{"Key":"users/|","Value":7}],
"CompareExchange":[{"Key":"x","Value":{"Object":"y"}}]}`

var exported = []counterfile.Counter{
	{Kind: counterfile.HiLo, Name: "orders", Value: 2049},
	{Kind: counterfile.HiLo, Name: "Users", Value: 32},
	{Kind: counterfile.Identity, Name: "invoices", Value: 1991},
	{Kind: counterfile.Identity, Name: "users/", Value: 7},
}

func TestRavenDBExport(t *testing.T) {
	got, err := read(t, counterfile.ReadRavenDB, export)
	if err != nil || !slices.Equal(got, exported) {
		t.Errorf("%v %v", got, err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := io.WriteString(zip, export); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	got, err = read(t, counterfile.ReadRavenDB, packed.String())
	if err != nil || !slices.Equal(got, exported) {
		t.Errorf("packed: %v %v", got, err)
	}
	if _, err := read(t, counterfile.ReadRavenDB, packed.String()[:packed.Len()-20]); !errors.Is(err, counterfile.ErrForm) {
		t.Errorf("packed and cut short: %v", err)
	}
	// A flipped bit may change a digit and keep the form; only the sum at the end shows it.
	damaged := packed.Bytes()
	damaged[len(damaged)-8] ^= 1
	if _, err := read(t, counterfile.ReadRavenDB, string(damaged)); !errors.Is(err, counterfile.ErrForm) {
		t.Errorf("packed, with another sum: %v", err)
	}
	if _, err := read(t, counterfile.ReadRavenDB, export+export); !errors.Is(err, counterfile.ErrForm) {
		t.Errorf("twice: %v", err)
	}
	// A program that writes JSON anew may write a slash so.
	got, err = read(t, counterfile.ReadRavenDB, strings.ReplaceAll(export, "/", `\/`))
	if err != nil || !slices.Equal(got, exported) {
		t.Errorf("with other slashes: %v %v", got, err)
	}
}

func TestRavenDBExportsThatAreNone(t *testing.T) {
	for name, text := range map[string]string{
		"empty":               "",
		"no JSON":             "database,kind",
		"an array":            "[]",
		"cut short":           export[:len(export)-30],
		"a value too large":   `{"Identities":[{"Key":"a|","Value":"9223372036854775808"}]}`,
		"a value that is not": `{"Identities":[{"Key":"a|","Value":"x"}]}`,
		"an exponent":         `{"Identities":[{"Key":"a|","Value":1e999999999}]}`,
		"a fraction":          `{"Docs":[{"Max":1.5,"@metadata":{"@id":"Raven/Hilo/a"}}]}`,
		"no value":            `{"Identities":[{"Key":"a|"}]}`,
		"no name":             `{"Identities":[{"Key":"|","Value":"1"}]}`,
		"an identity's text":  "{\"Identities\":[{\"Key\":\"M\xfcller|\",\"Value\":\"1\"}]}",
		"a document's text":   "{\"Docs\":[{\"Max\":1,\"@metadata\":{\"@id\":\"Raven/Hilo/M\xfcller\"}}]}",
		"identities are none": `{"Identities":{}}`,
	} {
		if got, err := read(t, counterfile.ReadRavenDB, text); !errors.Is(err, counterfile.ErrForm) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}

func TestCSVsThatAreNone(t *testing.T) {
	const head = "database,kind,name,value\n"
	for name, text := range map[string]string{
		"empty":                 "",
		"another first line":    "name,value\na,1\n",
		"a column too few":      head + "db,identity,a\n",
		"an unknown kind":       head + "db,sequence,a,1\n",
		"no value":              head + "db,identity,a,\n",
		"a value too large":     head + "db,hilo,a,9223372036854775808\n",
		"a negative HiLo":       head + "db,hilo,a,-1\n",
		"a claim with a value":  head + "db,claim,a,1\n",
		"semicolons":            "database;kind;name;value\ndb;identity;a;1\n",
		"no name":               head + "db,identity,,1\n",
		"an unfinished quote":   head + `db,identity,"a,1`,
		"a fraction of a value": head + "db,identity,a,1.0\n",
	} {
		if got, err := read(t, counterfile.ReadCSV, text); !errors.Is(err, counterfile.ErrForm) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}

// TestTextThatIsNotUTF8: the error for a spreadsheet's own encoding has line and column.
func TestTextThatIsNotUTF8(t *testing.T) {
	_, err := read(t, counterfile.ReadCSV, "database,kind,name,value\ndb,identity,a,1\ndb,identity,M\xfcller,1\n")
	if !errors.Is(err, counterfile.ErrForm) || !strings.Contains(err.Error(), "line 3, column 13: the text is not UTF-8") {
		t.Error(err)
	}
}

func TestWhatEachSaysEndsTheReading(t *testing.T) {
	stop := errors.New("stop")
	each := func(counterfile.Counter) error { return stop }
	if err := counterfile.ReadRavenDB(strings.NewReader(export), each); !errors.Is(err, stop) {
		t.Error(err)
	}
	if err := counterfile.ReadCSV(strings.NewReader("database,kind,name,value\nd,identity,a,1\n"), each); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func FuzzReadRavenDB(f *testing.F) {
	f.Add(export)
	f.Fuzz(func(t *testing.T, text string) {
		_ = counterfile.ReadRavenDB(strings.NewReader(text), func(c counterfile.Counter) error {
			if c.Name == "" {
				t.Error("a counter without a name")
			}
			return nil
		})
	})
}

// FuzzReadCSV: a file is read, or refused for its form; a file that was read is equal after it is
// written and read again.
func FuzzReadCSV(f *testing.F) {
	f.Add("database,kind,name,value\nshop,identity,users,5\nshop,claim,\"a\"\"b\nc\",\n")
	f.Add("\ufeffdatabase,kind,name,value\r\n,HiLo,\"a,b\",9223372036854775807\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := read(t, counterfile.ReadCSV, text)
		if err != nil && !errors.Is(err, counterfile.ErrForm) {
			t.Fatal(err)
		}
		wantWrittenAndRead(t, all)
	})
}

// FuzzCSVNames: a name comes back from a file as it was: with a line end or a quote
// in it, it would otherwise be the counter of another name.
func FuzzCSVNames(f *testing.F) {
	f.Add("shop", "users", int64(5))
	f.Add("", "a\"b,\r\n\n\r c ", int64(-1))
	f.Add("\ufeff", "\u00ff|", int64(math.MinInt64))
	f.Add("-db", "''=1+1", int64(0))
	f.Add(";@db;", "a;=1;'+x;''-;';", int64(0))
	f.Fuzz(func(t *testing.T, database, name string, value int64) {
		if name != "" && utf8.ValidString(name) && utf8.ValidString(database) {
			wantWrittenAndRead(t, []counterfile.Counter{
				{Database: database, Kind: counterfile.Identity, Name: name, Value: value},
				{Database: name, Kind: counterfile.Claim, Name: name + database},
			})
		}
	})
}

// wantWrittenAndRead writes counters and reads them again; it returns the file.
func wantWrittenAndRead(t *testing.T, all []counterfile.Counter) string {
	t.Helper()
	var file bytes.Buffer
	w, err := counterfile.NewCSVWriter(&file)
	for _, c := range all {
		err = errors.Join(err, w.Write(c))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := read(t, counterfile.ReadCSV, file.String())
	if err != nil || !slices.Equal(got, all) {
		t.Fatalf("%+v was read as %+v: %v", all, got, err)
	}
	return file.String()
}
