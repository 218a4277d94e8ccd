package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// writeJSON answers with v, which must be something that json can encode.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := encode(v)
	if err != nil {
		panic(err) // a type of this package that has no JSON form
	}
	setHeaders(w)
	w.WriteHeader(status)
	_, _ = w.Write(body) // The caller may have gone.
}

// setHeaders sets the headers of every answer with a body. There is no ETag:
// RavenDB's clients keep what has one, and would hand out a range twice. For the
// same reason no cache between may keep an answer to a GET.
func setHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
}

// encode returns v as JSON. Nothing is escaped for HTML: an id is to be read as
// it is.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
