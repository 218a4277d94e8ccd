package counterfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The names of RavenDB's HiLo documents.
const (
	hiloPrefix     = "raven/hilo/"
	hiloCollection = "@hilo"
)

// ReadRavenDB reads RavenDB's export of one database, gzipped or not: the documents of the
// collection @hilo, with their Max, and the array Identities of objects with Key and Value. It
// skips everything else.
func ReadRavenDB(r io.Reader, each Each) error {
	plain, err := unzipped(r)
	if err != nil {
		return err
	}
	in := &ravenReader{json: json.NewDecoder(plain), each: each}
	in.json.UseNumber()
	err = in.object(in.section)
	if err == nil {
		err = in.end()
	}
	if err != nil {
		return readError(err)
	}
	return nil
}

func unzipped(r io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	begin, err := in.Peek(2)
	if err != nil || !bytes.Equal(begin, []byte{0x1f, 0x8b}) {
		return in, nil // The reader finds that it is too short.
	}
	plain, err := gzip.NewReader(in)
	if err != nil {
		return nil, badForm("its compression is damaged: %v", err)
	}
	return plain, nil
}

func readError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return badForm("it ends too early")
	case errors.As(err, &syntax), errors.As(err, &kind), errors.Is(err, gzip.ErrChecksum):
		return badForm("%v", err)
	}
	return err
}

type ravenReader struct {
	json *json.Decoder
	each Each
}

// object reads an object and calls value for each of its keys.
func (r *ravenReader) object(value func(key string) error) error {
	if err := r.expect('{'); err != nil {
		return err
	}
	for r.json.More() {
		key, err := r.json.Token()
		if err != nil {
			return err
		}
		if err := value(key.(string)); err != nil { // A decoder returns only strings here.
			return err
		}
	}
	return r.expect('}')
}

func (r *ravenReader) section(key string) error {
	switch key {
	case "Docs":
		return r.array(r.document)
	case "Identities":
		return r.array(r.identity)
	default:
		return r.skip()
	}
}

// array reads an array and calls element for each of its elements.
func (r *ravenReader) array(element func(raw json.RawMessage) error) error {
	if err := r.expect('['); err != nil {
		return err
	}
	for r.json.More() {
		var raw json.RawMessage
		if err := r.json.Decode(&raw); err != nil {
			return err
		}
		if err := element(raw); err != nil {
			return err
		}
	}
	return r.expect(']')
}

func (r *ravenReader) expect(want json.Delim) error {
	token, err := r.json.Token()
	if err != nil {
		return err
	}
	if token != want {
		return badForm("there is %v where %v should be", token, want)
	}
	return nil
}

// end reads to the end of the file, where gzip checks its checksum.
func (r *ravenReader) end() error {
	token, err := r.json.Token()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = badForm("there is %v behind its end", token)
	}
	return err
}

// skip steps over a value of any kind, however large.
func (r *ravenReader) skip() error {
	for depth := 0; ; {
		token, err := r.json.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// document reads a document; only documents of HiLo counters are used.
func (r *ravenReader) document(raw json.RawMessage) error {
	var d struct {
		Max      json.RawMessage
		Metadata struct {
			ID         string `json:"@id"`
			Collection string `json:"@collection"`
		} `json:"@metadata"`
	}
	if !bytes.Contains(bytes.ToLower(raw), []byte("hilo")) { // Its slashes may be written as \/.
		return nil
	}
	if !utf8.Valid(raw) {
		return badForm("the document %.200q is not UTF-8", raw) // Package json would put another letter into the name.
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil // The document only mentions the name, with a Max or metadata of its own.
	}
	id := d.Metadata.ID
	if len(id) <= len(hiloPrefix) || !strings.EqualFold(id[:len(hiloPrefix)], hiloPrefix) {
		return nil
	}
	highest, err := wholeNumber(d.Max)
	if err != nil {
		return badForm("the document %q has the Max %s", id, d.Max)
	}
	return r.each(Counter{Kind: HiLo, Name: id[len(hiloPrefix):], Value: highest})
}

func (r *ravenReader) identity(raw json.RawMessage) error {
	var i struct {
		Key   string
		Value json.RawMessage
	}
	if !utf8.Valid(raw) {
		return badForm("the identity %.200q is not UTF-8", raw)
	}
	if err := json.Unmarshal(raw, &i); err != nil {
		return err
	}
	name := strings.TrimSuffix(i.Key, "|")
	value, err := wholeNumber(i.Value)
	if name == "" || err != nil {
		return badForm("the identity %q has the value %s", i.Key, i.Value)
	}
	return r.each(Counter{Kind: Identity, Name: name, Value: value})
}

// wholeNumber reads a number that may be in quotes, or be written as 64.0.
func wholeNumber(raw json.RawMessage) (int64, error) {
	text := strings.Trim(string(raw), `"`)
	if len(text) > 40 || strings.Trim(text, "-.0123456789") != "" {
		return 0, errors.New("not a plain number")
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok || !n.IsInt() || !n.Num().IsInt64() {
		return 0, errors.New("not a whole number of 64 bits")
	}
	return n.Num().Int64(), nil
}

// RavenDBWriter writes an export of one database in the form that RavenDB imports. HiLo counters
// come before identities, and claims, which RavenDB does not have, are left out.
type RavenDBWriter struct {
	w          *bufio.Writer
	identities bool // the array Identities has begun
	any        bool // the present array has an element
	err        error
}

// buildVersion is the version of RavenDB whose form it is.
const buildVersion = "54000"

// NewRavenDBWriter begins the export.
func NewRavenDBWriter(w io.Writer) *RavenDBWriter {
	out := &RavenDBWriter{w: bufio.NewWriter(w)}
	out.text(`{"BuildVersion":` + buildVersion + `,"Docs":[`)
	return out
}

func (w *RavenDBWriter) Write(c Counter) error {
	if c.Kind == HiLo {
		w.element(map[string]any{
			"Max":       c.Value,
			"@metadata": map[string]any{"@collection": hiloCollection, "@id": "Raven/Hilo/" + c.Name},
		})
		return w.err
	}
	w.beginIdentities()
	w.element(map[string]any{"Key": c.Name + "|", "Value": strconv.FormatInt(c.Value, 10)})
	return w.err
}

func (w *RavenDBWriter) beginIdentities() {
	if !w.identities {
		w.text(`],"Identities":[`)
		w.identities, w.any = true, false
	}
}

func (w *RavenDBWriter) element(v map[string]any) {
	if w.any {
		w.text(",")
	}
	w.any = true
	raw, err := json.Marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.text("\n" + string(raw))
}

func (w *RavenDBWriter) text(s string) {
	if w.err == nil {
		_, w.err = w.w.WriteString(s)
	}
}

// Close writes the end; the writer below stays open.
func (w *RavenDBWriter) Close() error {
	w.beginIdentities()
	w.text("]}\n")
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}
