package httpapi

import (
	"net/http"
	"testing"
)

// RavenDB's calls make no name with a control character either.
func TestNewNamesWithControlCharacters(t *testing.T) {
	w := newWorld(t)
	s := w.newServer("A", Config{}, "")
	_, before := w.State.Hash()
	for _, name := range []string{"a%00", "a%0D%0Ab", "a%1B%5B2Jb", "a%C2%9Bb", "%E2%80%AEb", "a%E2%80%8Bb", "a%C2%ADb", "a%EF%BB%BF"} {
		for target, method := range map[string]string{
			"hilo/next?tag=" + name: http.MethodGet, "identity/next?name=" + name: http.MethodPost,
			"identity/seed?value=5&name=" + name: http.MethodPost,
		} {
			got := decode[struct{ Type string }](t, do(s, method, "/databases/default/"+target), http.StatusBadRequest)
			if got.Type != "System.ArgumentException" {
				t.Errorf("%s: %+v", target, got)
			}
		}
	}
	if _, after := w.State.Hash(); after != before {
		t.Error("the state has changed")
	}
}
