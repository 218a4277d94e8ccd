package webpage

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var assets embed.FS

// contentTypes are those of the page's files. They are written down here because
// the system's own table may say otherwise, and nosniff makes browsers obey it.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// policy lets the page load its own files and call its own node, and nothing
// else: no script or style in the text, no frame around it, and no text turned
// into HTML, so that a caller's name stays text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY") // for browsers that do not know frame-ancestors
}

func (p *Page) handleAssets(handle func(pattern string, handler http.Handler)) {
	files, err := assets.ReadDir("assets")
	if err != nil {
		panic(err) // The files are part of the program.
	}
	for _, file := range files {
		name := "assets/" + file.Name()
		content, err := assets.ReadFile(name)
		if err != nil {
			panic(err)
		}
		pattern := "GET /page/" + name
		if name == "assets/index.html" {
			pattern = "GET /{$}"
		}
		handle(pattern, asset(path.Ext(name), content))
	}
}

// asset answers with one file. Browsers ask each time whether it has changed, so
// that page and node are always of the same version.
func asset(extension string, content []byte) http.Handler {
	sum := sha256.Sum256(content)
	etag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		w.Header().Set("Content-Type", contentTypes[extension])
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	})
}
