package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// dialogUse is a dialog: the button that opens it, what a screen reader reads of its controls, and
// the keys that do what it is for. The page then says so; some ask for the next.
type dialogUse struct {
	view, opens, title string
	controls           []string
	keys               []string
	said, next         string
}

// back is Shift and Tab.
const back = "\x00"

// dialogUses are all dialogs, each once; one makes what a later one needs.
var dialogUses = []dialogUse{
	{
		"identities", "Seed an identity", "Seed an identity",
		[]string{
			"textbox Identity · required · focused", "textbox Last used value · required",
			"button Cancel", "button Seed · off · Name the identity first.",
		},
		[]string{"bills", kb.Tab, "7", kb.Enter},
		"bills is at 7.", "",
	},
	{
		"identities", "Seed invoices", "Seed invoices",
		[]string{"textbox Last used value · required · focused · That is its value already.", "button Cancel", "button Seed"},
		[]string{"3", kb.Tab, " ", kb.Tab, kb.Tab, kb.Enter},
		"invoices is at 3.", "",
	},
	{
		"identities", "Delete invoices", "Delete invoices?",
		[]string{
			"checkbox Forget the value too: the next id is then 1 again, and ids come out a second time",
			"button Cancel · focused", "button Delete",
		},
		[]string{kb.Tab, kb.Enter},
		"invoices is deleted.", "",
	},
	{
		"hilo", "Start a counter", "Start a HiLo counter",
		[]string{"textbox Tag · required · focused", "textbox Max · required", "button Cancel", "button Start · off · Name the tag first."},
		[]string{"bills", kb.Tab, "64", kb.Enter},
		"bills is at 64.", "",
	},
	{
		"hilo", "Raise bills", "Raise bills",
		[]string{"textbox Max · required · focused · The next range will begin at 65.", "button Cancel", "button Raise"},
		[]string{"128", kb.Enter},
		"bills is at 128.", "",
	},
	{
		"claims", "Claim an id", "Claim an id",
		[]string{
			"textbox Id · required · focused · A finished id, as users/ayende@example.org.",
			"button Cancel", "button Claim · off · Name the id first.",
		},
		[]string{"users/ada", kb.Enter},
		"users/ada is claimed.", "",
	},
	{
		"claims", "Release users/ada", "Release this id?",
		[]string{"button Cancel · focused", "button Release"},
		[]string{kb.Tab, kb.Enter},
		"users/ada is released.", "",
	},
	{
		"series", "Define a series", "Define a series",
		[]string{
			"textbox Series · required · focused", "textbox Format · required", "combobox Numbers begin at 1 again each",
			"DisclosureTriangle Policies and limits", "DisclosureTriangle Begin at a number",
			"button Cancel", "button Define it · off · Name the series and its format first.",
		},
		[]string{"new", kb.Tab, "N-{year}-{number}", kb.Tab, "y", kb.Tab, kb.Tab, kb.Tab, kb.Tab, kb.Enter},
		"new is suspended.", "",
	},
	{
		"series", "Numbers known", "Numbers of known",
		[]string{
			"textbox Find a number · focused · A document's key, or a number in the series' format.",
			"button Cancel", "button Find · off · Give a key or a number first.",
		},
		[]string{"a", kb.Enter},
		"K-1 is that of a", "",
	},
	{
		"series", "Allot known", "Allot numbers of known",
		[]string{
			"textbox Scope · focused · Its period and values, as in 2026,BERLIN; empty for a series without scopes.",
			"textbox First number · required · Above all numbers that the scope has given.", "textbox Last number · required",
			"textbox Last day · On which it gives numbers. Empty: without end.",
			"textbox Note · Such as the authority's code: each of its numbers is shown with it.",
			"button Cancel", "button Allot · off · Give the first and the last number first.",
		},
		[]string{kb.Tab, "501", kb.Tab, "600", kb.Enter},
		"501 to 600 is allotted.", "",
	},
	{
		"series", "Withdraw known", "Withdraw numbers of known?",
		[]string{"combobox Range", "button Cancel · focused", "button Withdraw"},
		[]string{kb.Tab, kb.Enter},
		"501 to 600 is taken back.", "",
	},
	{
		"series", "Redefine known", "Redefine known",
		[]string{
			"textbox Format · required · focused", "combobox Numbers begin at 1 again each",
			"DisclosureTriangle Policies and limits", "DisclosureTriangle Begin at a number", "button Cancel", "button Redefine it",
		},
		[]string{kb.Tab, back, "L-{number}", kb.Enter},
		"known has version 2.", "",
	},
	{
		"series", "Resume asleep", "Resume asleep",
		[]string{
			"button Another scope", "checkbox I have looked into the books.",
			"button Cancel · focused", "button Resume it · off · Look into the books first.",
		},
		[]string{back, " ", back, kb.Enter, kb.Tab, "5", kb.Tab, kb.Tab, kb.Tab, kb.Tab, kb.Tab, kb.Enter},
		"asleep gives numbers.", "",
	},
	{
		"series", "Unknown unsure", "U-1 of unsure",
		[]string{
			"textbox Document's key · focused · Which document has this number in the books.", "checkbox No document has it: the number is voided.",
			"button Cancel", "button Say it · off · Give the key, or say that no document has the number.",
		},
		[]string{"doc-1", kb.Enter},
		"U-1 is that of doc-1", "U-2 of unsure",
	},
	{
		"series", "Delete known", "Delete known?",
		[]string{"button Cancel · focused", "button Delete"},
		[]string{kb.Tab, kb.Enter},
		"known is deleted.", "",
	},
	{
		"pools", "Define a pool", "Define a pool",
		[]string{"textbox Name · required · focused", "combobox Layout", "button Cancel", "button Define · off · Name the pool first."},
		[]string{"machines", kb.Tab, "s", kb.Tab, kb.Tab, kb.Enter},
		"machines is defined.", "",
	},
	{"pools", "Workers machines", "Workers of machines", []string{"button Close · focused"}, []string{kb.Enter}, "", ""},
	{
		"operate", "Change max-identities", "Change max-identities?",
		[]string{"textbox Value · focused", "button Cancel", "button Change"},
		[]string{"123456", kb.Enter},
		"max-identities is 123,456.", "",
	},
	{
		"overview", "Demote C", "Demote C to a watcher?",
		[]string{"button Cancel · focused", "button Demote C"},
		[]string{kb.Tab, kb.Enter},
		"C is a watcher.", "",
	},
	{
		"overview", "Promote C", "Promote C to a voter?",
		[]string{"button Cancel · focused", "button Promote C"},
		[]string{kb.Tab, kb.Enter},
		"C votes once it has caught up.", "",
	},
	{
		"overview", "Make leader: B", "Make B the leader?",
		[]string{"button Cancel · focused", "button Transfer to B"},
		[]string{kb.Tab, kb.Enter},
		"B leads.", "",
	},
	{
		"overview", "Remove C", "Remove member C?",
		[]string{"textbox Type C to remove it · focused", "button Cancel", "button Remove for good · off · Type C first."},
		[]string{"c", kb.Enter},
		"Member C is removed.", "",
	},
}

// TestDialogsByKeyboard opens each dialog, looks through it, leaves it, and does what it is for
// without a mouse. A screen reader reads each control with its name, its state and its help.
func TestDialogsByKeyboard(t *testing.T) {
	tier.Long(t)
	chromium(t)
	c := harness.StartCluster(t, harness.Config{})
	makeDialogsWork(t, c.Nodes[0])
	b := openBrowser(t, "http://"+c.Nodes[0].HTTP)
	for _, d := range dialogUses {
		t.Run(d.opens, func(t *testing.T) {
			b.t = t
			if d.opens == "Remove C" { // Only what is gone is removed.
				c.Nodes[2].Process.Kill()
			}
			b.open(d.view)
			b.opensByKeyboard(d)
			b.goesThrough(d)
			b.leaves()
			if got := b.focused(); got != d.opens {
				t.Errorf("after the dialog the focus is on %q", got)
			}
			b.keys(kb.Enter)
			b.sees("dialog h2", d.title)
			b.press(d.keys)
			b.sees("#said", d.said)
			if d.next != "" {
				b.sees("dialog h2", d.next)
				b.keys(kb.Escape)
			}
			b.gone("dialog")
		})
	}
	b.t = t
}

// opensByKeyboard opens a dialog, and compares it with what a screen reader should read of it.
func (b *browser) opensByKeyboard(d dialogUse) {
	b.t.Helper()
	b.until("the button "+d.opens, fmt.Sprintf(
		`[...document.querySelectorAll("main button")].some(e => (e.getAttribute("aria-label") ?? e.innerText) === %q && !e.hasAttribute("aria-disabled"))`, d.opens))
	b.enters(d.opens, kb.ModifierNone, "dialog h2", d.title)
	b.until("no preview is awaited", `!document.querySelector("dialog [title='Wait for the preview.']")`)
	dialog, controls := b.readDialog()
	if text(dialog.Name) != d.title || property(dialog, "modal") != "true" {
		b.t.Errorf("it is called %q, modal %s", text(dialog.Name), property(dialog, "modal"))
	}
	said := ask[string](b, `[...document.querySelectorAll("dialog form > p:not([role])")].map(e => e.textContent).join(" ")`)
	if got := text(dialog.Description); got != said {
		b.t.Errorf("it is described by %q, want %q", got, said)
	}
	if !slices.Equal(controls, d.controls) {
		b.t.Errorf("a screen reader reads\n%s\nwant\n%s", strings.Join(controls, "\n"), strings.Join(d.controls, "\n"))
	}
}

// goesThrough goes to the last control of a dialog by Tab, and back to the first, in their order.
func (b *browser) goesThrough(d dialogUse) {
	b.t.Helper()
	const now = `(e => !e.closest("dialog") ? "outside" : (e.labels?.[0] ?? e).innerText.trim())(document.activeElement)`
	var names, got []string
	first := 0
	for i, control := range d.controls {
		name, states, _ := strings.Cut(control, " · ")
		if strings.Contains(states, "focused") {
			first = i
		}
		_, name, _ = strings.Cut(name, " ") // Without the role.
		names = append(names, name)
	}
	want := slices.Clone(names[first:])
	for range len(names) - first - 1 {
		got = append(got, ask[string](b, now))
		b.press([]string{kb.Tab})
	}
	for i := range len(names) - 1 {
		got = append(got, ask[string](b, now))
		b.press([]string{back})
		want = append(want, names[len(names)-2-i])
	}
	if got = append(got, ask[string](b, now)); !slices.Equal(got, want) {
		b.t.Errorf("by Tab one comes to\n%q\nwant\n%q", got, want)
	}
}

// press presses keys, where back goes back.
func (b *browser) press(keys []string) {
	b.t.Helper()
	for _, key := range keys {
		if key == back {
			b.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(kb.ModifierShift)))
			continue
		}
		if key == kb.Enter { // Nobody is faster than the preview.
			b.until("no preview is awaited", `!document.querySelector("dialog [title='Wait for the preview.']")`)
		}
		b.keys(key)
	}
}

// readDialog returns the open dialog as a screen reader has it, and its controls: the role of each, its
// name, its states and its description.
func (b *browser) readDialog() (dialog *accessibility.Node, controls []string) {
	b.t.Helper()
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		b.t.Fatal(err)
	}
	nodes := map[accessibility.NodeID]*accessibility.Node{}
	for _, n := range tree.Nodes {
		nodes[n.NodeID] = n
		if text(n.Role) == "dialog" {
			dialog = n
		}
	}
	if dialog == nil {
		b.t.Fatal("a screen reader finds no dialog")
	}
	var read func(n *accessibility.Node)
	read = func(n *accessibility.Node) {
		if n == nil {
			return
		}
		if n != dialog && property(n, "focusable") == "true" && text(n.Role) != "option" {
			controls = append(controls, controlOf(n))
		}
		for _, id := range n.ChildIDs {
			read(nodes[id])
		}
	}
	read(dialog)
	return dialog, controls
}

func controlOf(n *accessibility.Node) string {
	control := text(n.Role) + " " + text(n.Name)
	for _, state := range []struct{ property, word string }{{"required", "required"}, {"focused", "focused"}, {"disabled", "off"}} {
		if property(n, state.property) == "true" {
			control += " · " + state.word
		}
	}
	if description := text(n.Description); description != "" {
		control += " · " + description
	}
	return control
}

func property(n *accessibility.Node, name string) string {
	for _, p := range n.Properties {
		if string(p.Name) == name {
			return text(p.Value)
		}
	}
	return ""
}

// text is what a value of the tree says: a text without its quotes, or a word.
func text(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var said any
	if err := json.Unmarshal(v.Value, &said); err != nil {
		return err.Error()
	}
	return fmt.Sprint(said)
}

// makeDialogsWork makes what the first dialogs are about.
func makeDialogsWork(t *testing.T, n *harness.Node) {
	t.Helper()
	ctx := t.Context()
	number := func(series string) *idnodev1.DefineSeriesRequest {
		format := strings.ToUpper(series[:1]) + "-{number}"
		return &idnodev1.DefineSeriesRequest{Name: series, Definition: &idnodev1.SeriesDefinition{Format: format}}
	}
	must(t)(n.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "invoices", Count: 7}))
	must(t)(n.Series.DefineSeries(ctx, number("known")))
	must(t)(n.Series.TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{Series: "known", Keys: []string{"a"}}))
	// A series that begins after a restore is suspended.
	must(t)(idnodev1.NewAdminServiceClient(n.Conn).MergeCluster(ctx, &idnodev1.MergeClusterRequest{Floor: 1}))
	must(t)(n.Series.DefineSeries(ctx, number("asleep")))
	must(t)(n.Series.DefineSeries(ctx, number("unsure")))
	must(t)(n.Series.ResumeSeries(ctx, &idnodev1.ResumeSeriesRequest{Series: "unsure", Books: []*idnodev1.ScopeInBooks{{Last: 3}}}))
}
