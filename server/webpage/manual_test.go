package webpage

import (
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/idnode/idnode/server/httpapi"
)

// TestManual: each alarm's link leads to its heading on a page of the node, and each link of that page to another.
func TestManual(t *testing.T) {
	s := newWorld(t).newServer(httpapi.Config{})
	file, name, _ := strings.Cut(runbook, "#")
	if name != "" {
		t.Fatal(runbook)
	}
	source, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "alarms.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := get200(t, s, file)
	for _, rule := range regexp.MustCompile(`(?m)^### (Idnode\w+)$`).FindAllStringSubmatch(string(source), -1) {
		if !strings.Contains(page, `id="`+strings.ToLower(rule[1])+`">`+rule[1]+`</h3>`) {
			t.Errorf("there is no heading %s", rule[1])
		}
	}
	for _, link := range regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		to, anchor, _ := strings.Cut(link[1], "#")
		if !path.IsAbs(to) {
			to = path.Join(path.Dir(file), to)
		}
		if to == path.Dir(file) {
			to = file
		}
		if other := get200(t, s, to); anchor != "" && !strings.Contains(other, `id="`+anchor+`"`) {
			t.Errorf("%s leads nowhere", link[1])
		}
	}
}

func get200(t *testing.T, s http.Handler, target string) string {
	t.Helper()
	w := send(s, http.MethodGet, target, "")
	wantHeaders(t, target, w.Header())
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d", target, w.Code)
	}
	return w.Body.String()
}

// TestMarkdown: links to pages that the node does not serve are text, and no text is turned into HTML.
func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"### IdnodeNoQuorum\n":                      `<h3 id="idnodenoquorum">IdnodeNoQuorum</h3>`,
		"four <i>four</i>\n":                        "<p>four <!-- raw HTML omitted -->four<!-- raw HTML omitted --></p>",
		"| a |\n|---|\n| `d` |":                     "<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td><code>d</code></td>\n</tr>\n</tbody>\n</table>",
		"[a](alarms.md#b) [`c` **d**](nosuch.md)":   `<p><a href="alarms.md#b">a</a> <code>c</code> <strong>d</strong></p>`,
		"[a](https://example.org/)":                 `<p><a href="https://example.org/">a</a></p>`,
		"![a picture](page.png) [b](../../a/x.yml)": `<p>a picture b</p>`,
	} {
		_, body, _ := strings.Cut(string(manualPage("operate/x.md", []byte(text))), "<main>")
		if got := strings.TrimSuffix(body, "\n</main></html>\n"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
