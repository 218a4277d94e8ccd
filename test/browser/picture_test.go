package browser

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// heads is what a reader knows the page by: a picture of a page with other heads is old.
const heads = `[...document.querySelectorAll("#views a, h1, h2, h3, dt, thead th")].map(e => e.textContent).join("|")`

// keyword is that of the text in a picture which has the heads.
const keyword = "tEXtheads\x00"

// picture compares a picture of the documents with the page as it is, by its size and its heads:
// its pixels are never the same. With IDNODE_PICTURES set it writes the picture.
func (b *browser) picture(name string, width, height int64) {
	b.t.Helper()
	defer b.size(1200, 900)
	b.size(width, height)
	ask[bool](b, `(scrollTo(0, 0), document.activeElement.blur(), true)`)
	now := ask[string](b, heads)
	path := filepath.Join("..", "..", "docs", name+".png")
	if os.Getenv("IDNODE_PICTURES") != "" {
		shot, err := run(b, chromedp.CaptureScreenshot())
		if err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(path, withHeads(b.t, fewColours(b.t, shot), now), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	size, err := png.DecodeConfig(bytes.NewReader(file))
	if err != nil || int64(size.Width) != width || int64(size.Height) != height || !bytes.Contains(file, []byte(keyword+now)) {
		b.t.Errorf("%s is not of this page: %d by %d, want %d by %d with %q; 'IDNODE_PICTURES=1 go test -run TestPage$ .' writes it anew (%v)",
			path, size.Width, size.Height, width, height, now, err)
	}
}

// withHeads puts a text behind the first chunk of a PNG file, the header.
func withHeads(t *testing.T, file []byte, text string) []byte {
	t.Helper()
	const header = 8 + 25
	chunk := []byte(keyword + text)
	length := binary.BigEndian.AppendUint32(nil, uint32(len(chunk)-4)) // Its type does not count.
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(chunk))
	return slices.Concat(file[:header], length, chunk, sum, file[header:])
}

// fewColours makes a picture small: it keeps the 256 colours that most of it has.
func fewColours(t *testing.T, file []byte) []byte {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	bounds := picture.Bounds()
	found := map[color.Color]int{}
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			found[picture.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(found), func(a, b color.Color) int { return cmp.Compare(found[b], found[a]) })
	palette := color.Palette(colours[:min(256, len(colours))])
	nearest := map[color.Color]uint8{}
	for _, c := range colours {
		nearest[c] = uint8(palette.Index(c))
	}
	small := image.NewPaletted(bounds, palette)
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			small.SetColorIndex(x, y, nearest[picture.At(x, y)])
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
