package dirfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

type older struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
}

type newer struct {
	older
	Note string   `json:"note"`
	List []string `json:"list"`
}

// TestUnknownKeysStay: a program that does not know some keys reads the file, changes what it knows, and the
// program that knows them finds them.
func TestUnknownKeysStay(t *testing.T) {
	want := newer{older{2, "<a>"}, `, "checksum":"00000000"}`, []string{"&", "b"}}
	data, err := Encode(want, nil)
	must(t, err)
	var indented bytes.Buffer
	must(t, json.Indent(&indented, data, "", "\t"))
	var known older
	unknown, err := Decode(indented.Bytes(), &known)
	must(t, err)
	known.Name, want.Name = "c", "c"
	data, err = Encode(known, unknown)
	must(t, err)
	var got newer
	rest, err := Decode(data, &got)
	if err != nil || rest != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, %v", got, rest, err)
	}
}

func TestDamageIsNoticed(t *testing.T) {
	data, err := Encode(older{2, "a"}, Unknown{"note": json.RawMessage(`"b"`)})
	must(t, err)
	for at := range data {
		for _, bad := range [][]byte{data[:at], bytes.Clone(data)} {
			if len(bad) > at {
				bad[at] ^= 1
			}
			if _, err := Decode(bad, &older{}); err == nil {
				t.Errorf("%q is read", bad)
			}
		}
	}
}

func TestMagic(t *testing.T) {
	damaged := errors.New("damaged")
	for _, tt := range []struct {
		begin  string
		intact bool
		want   error
	}{
		{"idn\x02", true, nil},
		{"idn\x02", false, damaged},
		{"idn\x03", false, ErrOtherVersion},
		{"idn\x03", true, damaged},
		{"idn\x01", false, damaged},
		{"idx\x03", false, damaged},
		{"idn", false, damaged},
	} {
		if err := Magic([]byte(tt.begin), "idn\x02", tt.intact, damaged); !errors.Is(err, tt.want) {
			t.Errorf("%q, %v: %v, want %v", tt.begin, tt.intact, err, tt.want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
