package browser

import (
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// content says that a view has what it shows.
const content = `document.querySelector(".forms, .found li, .operate tbody tr, main > div > .list tbody tr, .nodes tbody tr")`

// worksByKeyboard goes from the top of the page to a seeded identity and back,
// without a mouse.
func (p *pageTest) worksByKeyboard() {
	p.do(chromedp.Reload())
	p.sees(".where", "quorum")
	p.keys(kb.Tab)
	if got := p.focused(); got != "Skip to the content" {
		p.t.Errorf("the first stop is %q", got)
	}
	p.shot("skip")
	p.keys(kb.Enter)
	p.until("the content has the focus", `document.activeElement.id === "main"`)
	p.enters("HiLo", kb.ModifierShift, "h1", "HiLo")
	p.until("the title has the focus", `document.activeElement.tagName === "H1"`)
	p.enters("Identities", kb.ModifierShift, "h1", "Identities")
	p.sees("tbody", "customer-00")
	p.tabTo("Filter", kb.ModifierNone)
	p.keys("inv")
	p.until("one row", `document.querySelectorAll("tbody tr").length === 1`)
	p.tabTo("Seed invoices", kb.ModifierNone)
	if !ask[bool](p.browser, `getComputedStyle(document.activeElement).outlineStyle === "solid"`) {
		p.t.Error("the focus is not to be seen")
	}
	p.keys(kb.Enter)
	p.sees("dialog h2", "Seed invoices")
	p.keys("77", kb.Enter)
	p.gone("dialog")
	p.sees("tbody", "77")
	if got := p.focused(); got != "Seed invoices" {
		p.t.Errorf("after the dialog the focus is on %q", got)
	}
	p.enters("Delete invoices", kb.ModifierNone, "dialog h2", "Delete invoices?")
	for range 8 { // The focus goes round within the dialog.
		p.keys(kb.Tab)
		if ask[bool](p.browser, `document.querySelector("main").contains(document.activeElement)`) {
			p.t.Fatal("the focus leaves the dialog")
		}
	}
	p.leaves()
	p.sees("tbody", "invoices")
	// What is off can be reached, and says why.
	p.open("overview")
	p.sees(".member[data-tag=A]", "this node")
	p.enters("Remove A", kb.ModifierNone, "#said", "It answers.")
}

// tabTo presses Tab, with Shift to go back, until something has the focus.
func (b *browser) tabTo(name string, modifier kb.Modifier) {
	b.t.Helper()
	var passed []string
	for range 60 {
		b.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(modifier)))
		if passed = append(passed, b.focused()); passed[len(passed)-1] == name {
			return
		}
	}
	b.t.Fatalf("no way to %q by Tab: %q", name, passed)
}

// enters goes to something by Tab, presses Enter, and waits for what comes of it.
func (b *browser) enters(name string, modifier kb.Modifier, selector, text string) {
	b.t.Helper()
	b.tabTo(name, modifier)
	b.keys(kb.Enter)
	b.sees(selector, text)
}

// namesEverything: whatever takes the focus has a name, on every view.
func (p *pageTest) namesEverything() {
	for _, view := range pages {
		p.open(view)
		nameless := ask[string](p.browser, `[...document.querySelectorAll("input, button, a, dialog, nav, table")].filter(e =>
			!(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.labels?.length || e.caption?.innerText || e.innerText?.trim())
		).map(e => e.outerHTML).join("\n")`)
		if nameless != "" {
			p.t.Errorf("%s has what has no name:\n%s", view, nameless)
		}
		if ask[bool](p.browser, `!!window.broken || !!document.querySelector("main img")`) {
			p.t.Errorf("%s takes a name for a part of the page", view)
		}
		if n := ask[int](p.browser, `document.querySelectorAll("h1").length`); n != 1 {
			p.t.Errorf("%s has %d titles", view, n)
		}
	}
}

// isLegible: every text stands out from its ground, in the light and in the dark.
func (p *pageTest) isLegible() {
	defer p.colours("light")
	for _, scheme := range []string{"light", "dark"} {
		p.colours(scheme)
		for _, view := range pages {
			p.open(view)
			p.until("the view's content", content)
			if faint := ask[string](p.browser, contrast); faint != "" {
				p.t.Errorf("%s, %s: too faint:\n%s", view, scheme, faint)
			}
		}
	}
}

// outside lists what is cut off at the side, or reaches out of what it is in.
const outside = `[...document.querySelectorAll("body *")].filter(e => {
	const box = e.getBoundingClientRect();
	return e.checkVisibility() && box.width > 1 && box.right > innerWidth + 1 && !e.closest(".unseen, .skip");
}).map(e => e.outerHTML.slice(0, 120)).join("\n")`

// tall lists buttons whose text stands in a column, and rows that push others away. A row that is a
// card, on a small screen, has a line for each cell, and these are judged. Those of a name that is
// longer than any line may be higher.
var tall = fmt.Sprintf(`[...document.querySelectorAll("button, tbody tr, tbody tr > *")].filter(e => {
	const row = e.closest("tbody tr"), card = row && getComputedStyle(row).display !== "table-row";
	if (e.tagName !== "BUTTON" && (%q.includes(row.dataset.name) || (e === row) === card)) return false;
	return e.checkVisibility() && e.getBoundingClientRect().height > (e.tagName === "BUTTON" ? 60 : 120);
}).map(e => e.getBoundingClientRect().height + " " + e.outerHTML.slice(0, 120)).join("\n")`, strings.Join(oddNames, " "))

// fits: nothing of a view is cut off, has to be pushed aside, or is too high.
func (b *browser) fits(what string, width int64) {
	b.t.Helper()
	if wide := ask[int64](b, `document.documentElement.scrollWidth`); wide > width {
		b.t.Errorf("%s is %d wide on %d", what, wide, width)
	}
	if out := ask[string](b, outside); out != "" {
		b.t.Errorf("%s on %d: outside:\n%s", what, width, out)
	}
	if high := ask[string](b, tall); high != "" {
		b.t.Errorf("%s on %d: too high:\n%s", what, width, high)
	}
}

// widths are those of a phone, of a phone that lies, of a small screen, and of a large one.
var widths = []int64{360, 700, 1280, 1920}

// fitsWidths: nothing is cut off or has to be pushed aside, in the light and in the
// dark, from a phone to a wide screen.
func (p *pageTest) fitsWidths() {
	defer p.size(1200, 900)
	defer p.colours("light")
	for _, width := range widths {
		p.size(width, 800)
		for _, scheme := range []string{"light", "dark"} {
			p.colours(scheme)
			for _, view := range pages {
				p.open(view)
				p.until("the view's content", content)
				p.fits(view, width)
				p.shot(fmt.Sprintf("%s-%d-%s", scheme, width, strings.SplitN(view, "?", 2)[0]))
			}
		}
	}
	p.open("overview")
	p.colours("light")
	p.picture("page-narrow", 400, 1010)
	p.size(360, 740)
	p.open("identities")
	p.filters("invoices", "invoices")
	p.click("tr[data-name=invoices] [aria-label^=Seed]")
	p.fill("dialog input", "1")
	p.sees("dialog .warning", "lower")
	p.shot("phone-seed")
	p.leaves()
}

// turnsDark: as the system has it, or as somebody chooses.
func (p *pageTest) turnsDark() {
	const ground = `getComputedStyle(document.body).backgroundColor`
	p.open("overview")
	light := ask[string](p.browser, ground)
	p.colours("dark")
	p.until("the ground is another", ground+fmt.Sprintf(" !== %q", light))
	for _, view := range pages {
		p.open(view)
		p.until("the view's content", content)
	}
	p.click("#theme")
	p.until("light by choice", ground+fmt.Sprintf(" === %q", light))
	p.colours("light")
	p.click("#theme")
	p.until("dark by choice", ground+fmt.Sprintf(" !== %q", light))
	p.click("#theme")
	p.until("as the system has it", ground+fmt.Sprintf(" === %q", light))
}
