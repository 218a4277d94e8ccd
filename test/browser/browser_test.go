package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// seen is how long a test waits for something to be seen on the page.
const seen = 20 * time.Second

// browser is a page in a headless Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context
	// origin is that of the page, and origins are those that it was led to. They are the only
	// places that it may ask for anything: a page still asks its own while it is left.
	origin  string
	origins []string

	mu sync.Mutex
	// faults are what the page did wrong: errors in its code, refusals of its
	// policy, requests to other places.
	faults []string
}

// chromium is the program, or skips the test where there is none.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("IDNODE_CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("the page is not tested: there is no Chromium (IDNODE_CHROMIUM names one)")
	return ""
}

// must gives what ends a test when a call failed, whatever else the call returned.
func must(t *testing.T) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// openBrowser opens a tab on a page. Whatever the page does wrong fails the test
// at its end.
func openBrowser(t *testing.T, origin string) *browser {
	t.Helper()
	options := append(
		chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		// What looks for updates and the like would be requests to other places.
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-dev-shm-usage", true),
	)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	b := &browser{t: t, ctx: ctx}
	b.leadsTo(origin)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, fault := range b.faults {
			t.Error(fault)
		}
	})
	// The first action starts the browser, which lives as long as its context.
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1200, 900)); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, b.watch); err != nil {
		t.Fatal(err)
	}
	must(t)(chromedp.Call(ctx, network.Enable, network.EnableParams{}))
	must(t)(chromedp.Call(ctx, log.Enable, cdp.Empty{}))
	must(t)(chromedp.Call(ctx, runtime.Enable, cdp.Empty{}))
	b.loads()
	return b
}

// loads opens the page, until its program runs: where an address of the machine comes or goes, as with a
// container that starts beside, Chromium gives up what it is loading (ERR_NETWORK_CHANGED).
func (b *browser) loads() {
	b.t.Helper()
	for range 5 {
		b.do(chromedp.Navigate(b.origin + "/"))
		if b.meets(seen/5, "document.querySelector('#views [aria-current]')") {
			return
		}
	}
}

// leadsTo says that the page goes on at another origin.
func (b *browser) leadsTo(origin string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.origin, b.origins = origin, append(b.origins, origin)
}

// watch notes what the page must not do.
func (b *browser) watch(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || !slices.Contains(b.origins, u.Scheme+"://"+u.Host) && u.Scheme != "data" {
			b.faults = append(b.faults, "the page asks elsewhere: "+e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, faultOf(e.ExceptionDetails))
	case *log.EventEntryAdded:
		// Refused calls and a node that is away are logged by the browser itself.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			b.faults = append(b.faults, fmt.Sprintf("the browser says: %s: %s", e.Entry.Source, e.Entry.Text))
		}
	}
}

func faultOf(d *runtime.ExceptionDetails) string {
	fault := fmt.Sprintf("an error in the page: %s:%d: %s", d.URL, d.LineNumber+1, d.Text)
	if d.Exception != nil {
		fault += " " + d.Exception.Description
	}
	return fault
}

// refused takes the faults so far out of the account; those of a page that is
// meant to fail.
func (b *browser) refused() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	faults := b.faults
	b.faults = nil
	return faults
}

// do runs actions, each of which must succeed within a bound.
func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for _, action := range actions {
		if _, err := run(b, action); err != nil {
			b.t.Fatalf("%v\n%s", err, b.text("body"))
		}
	}
}

func run[T any](b *browser, action chromedp.Action[T]) (T, error) {
	return runWithin(b, seen, action)
}

func runWithin[T any](b *browser, within time.Duration, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, within)
	defer cancel()
	return chromedp.Run(ctx, action)
}

// ask evaluates an expression in the page's own language.
func ask[T any](b *browser, expression string) T {
	b.t.Helper()
	value, err := run(b, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// text is that of the first element of a selector, or empty.
func (b *browser) text(selector string) string {
	b.t.Helper()
	return ask[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// until waits for a condition in the page's own language.
func (b *browser) until(what, condition string) {
	b.t.Helper()
	if !b.meets(seen, condition) {
		b.shot("failed")
		b.t.Fatalf("not seen within %s: %s\n%s", seen, what, b.text("body"))
	}
}

// meets says whether a condition of the page is met in time.
func (b *browser) meets(within time.Duration, condition string) bool {
	b.t.Helper()
	end := time.After(within)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		met, err := run(b, chromedp.Evaluate[bool]("!!("+condition+")"))
		if err != nil && !navigates(err) {
			b.t.Fatalf("%s: %v", condition, err)
		}
		if met {
			return true
		}
		select {
		case <-tick.C:
		case <-end:
			return false
		}
	}
}

// navigates says whether the browser did not answer because it went from one page to
// another meanwhile.
func navigates(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused) && refused.Code == -32000
}

// sees waits for texts in the first element of a selector, one after the other.
func (b *browser) sees(selector string, texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		b.until(fmt.Sprintf("%q in %s", text, selector),
			fmt.Sprintf("(document.querySelector(%q)?.innerText ?? '').includes(%q)", selector, text))
	}
}

// clickFor clicks, and waits for the texts that come of it.
func (b *browser) clickFor(button, selector string, texts ...string) {
	b.t.Helper()
	b.click(button)
	b.sees(selector, texts...)
}

// off waits until a button is off for a reason that begins so, or on if that is empty.
func (b *browser) off(selector, reason string) {
	b.t.Helper()
	b.until(fmt.Sprintf("%s is off: %q", selector, reason), fmt.Sprintf(
		`(e => e && (%[2]q ? e.getAttribute("aria-disabled") === "true" && e.title.startsWith(%[2]q) : !e.hasAttribute("aria-disabled") && !e.disabled))(document.querySelector(%[1]q))`,
		selector, reason,
	))
}

// gone waits until an element is not there any more.
func (b *browser) gone(selector string) {
	b.t.Helper()
	b.until(selector+" is gone", fmt.Sprintf("!document.querySelector(%q)", selector))
}

// field is an input of the dialog, counted from 1.
func field(i int) string { return fmt.Sprintf("dialog .field:nth-of-type(%d) input", i) }

// wrong waits until an input is marked as wrong, or as right.
func (b *browser) wrong(selector string, want bool) {
	b.t.Helper()
	b.until(fmt.Sprintf("%s is wrong: %t", selector, want),
		fmt.Sprintf(`document.querySelector(%q).getAttribute("aria-invalid") === "%t"`, selector, want))
}

// does opens a dialog on a row of a list.
func (b *browser) does(action, row, title string) {
	b.t.Helper()
	button := fmt.Sprintf("tr[data-name=%s] [aria-label^=%s]", row, action)
	b.off(button, "")
	b.clickFor(button, "dialog h2", title)
}

// ends presses a button of the dialog, and waits for what is said then and for the dialog's end.
func (b *browser) ends(button, said string) {
	b.t.Helper()
	b.clickFor(button, "#said", said)
	b.gone("dialog")
}

// confirms presses the dialog's main button, which ends it.
func (b *browser) confirms(said string) {
	b.t.Helper()
	b.ends("dialog .main", said)
}

// gives fills the dialog's first input, and confirms it.
func (b *browser) gives(text, said string) {
	b.t.Helper()
	b.fill("dialog input", text)
	b.confirms(said)
}

// leaves closes the dialog without doing what it is for.
func (b *browser) leaves() {
	b.t.Helper()
	b.keys(kb.Escape)
	b.gone("dialog")
}

// filters types into the filter of a list, and waits for the first row.
func (b *browser) filters(text, first string) {
	b.t.Helper()
	b.fill("input[type=search]", text)
	b.sees("tbody tr:first-child", first)
}

// looksFor types what is to be found into the view's first input.
func (b *browser) looksFor(text string) {
	b.t.Helper()
	b.fill("main input", text)
	b.keys(kb.Enter)
}

// merges puts what databases had into those of a node.
func merges(t *testing.T, n *harness.Node, databases ...*idnodev1.DatabaseMerge) {
	t.Helper()
	must(t)(idnodev1.NewAdminServiceClient(n.Conn).MergeCounters(t.Context(), &idnodev1.MergeCountersRequest{Databases: databases}))
}

// open goes to a view.
func (b *browser) open(view string) {
	b.t.Helper()
	ask[string](b, fmt.Sprintf("location.hash = %q", "#/"+view))
	b.until("the view "+view,
		fmt.Sprintf("document.querySelector('#views [aria-current]')?.hash.startsWith(%q) && document.querySelector('h1')",
			"#/"+strings.SplitN(view, "?", 2)[0]))
}

// click clicks the first element that a selector finds. The page may put another one in
// its place between the search and the click, which then waits for the first one in vain:
// so each try is short. Or what comes above it moves it meanwhile, and the click misses it.
func (b *browser) click(selector string) {
	b.t.Helper()
	const try = seen / 5
	var err error
	for range 5 {
		ask[bool](b, fmt.Sprintf(`(window.missed = false, addEventListener("click", (e) => missed = !e.target.closest(%q), { capture: true, once: true }), true)`, selector))
		if _, err = runWithin(b, try, chromedp.Click(chromedp.CSS(selector))); err == nil && b.missed() {
			err = errors.New("something else was there")
		} else if !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	if err != nil {
		b.t.Fatalf("click %s: %v\n%s", selector, err, b.text("body"))
	}
}

// missed says whether the newest click was on something else. A page that is gone meanwhile was
// left by it.
func (b *browser) missed() bool {
	missed, err := run(b, chromedp.Evaluate[bool]("window.missed === true"))
	return err == nil && missed
}

// fill types a text in place of what an input has.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS(selector)))
	ask[bool](b, fmt.Sprintf("(e => (e.focus(), e.select(), true))(document.querySelector(%q))", selector))
	// Key by key, so that the bound of an action is that of a key.
	b.keys(kb.Backspace)
	b.keys(strings.Split(text, "")...)
}

// keys presses keys, one after the other, wherever the focus is.
func (b *browser) keys(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.do(chromedp.KeyEvent(key))
	}
}

// focused is what the focus is on: its accessible name as far as a label or its
// text gives it.
func (b *browser) focused() string {
	return ask[string](b, `(e => (e.getAttribute("aria-label") ?? e.labels?.[0]?.innerText ?? e.innerText ?? "").trim())(document.activeElement)`)
}

// size sets the size of the window; a phone's is 360 wide.
func (b *browser) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// colours sets what the system prefers: "light" or "dark".
func (b *browser) colours(scheme string) {
	b.t.Helper()
	must(b.t)(chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			// Colours that are on their way to others would be seen.
			{Name: "prefers-reduced-motion", Value: "reduce"},
		},
	}))
}

// contrast lists the texts whose colour is too close to what is behind them for
// people who see less well: below 4.5 to 1, as WCAG 2.2 (1.4.3) has it. What is
// disabled may be fainter.
const contrast = `(() => {
	const light = c => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
	const parts = colour => colour.match(/[\d.]+/g).map(Number);
	const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
	const behind = e => {
		for (; e; e = e.parentElement) {
			const c = parts(getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] === 1) return c;
		}
		return [255, 255, 255];
	};
	const texts = [...document.querySelectorAll("body *")].filter(e =>
		e.checkVisibility() && !e.disabled && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()));
	return texts.map(e => {
		const [a, b] = [luminance(parts(getComputedStyle(e).color)), luminance(behind(e))].sort((x, y) => y - x);
		return [(a + 0.05) / (b + 0.05), e];
	}).filter(([ratio]) => ratio < 4.5).map(([ratio, e]) => ratio.toFixed(2) + " " + e.outerHTML.slice(0, 120)).join("\n");
})()`

// shot writes a screenshot into the folder IDNODE_SCREENSHOTS, if that is set.
func (b *browser) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("IDNODE_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := run(b, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
