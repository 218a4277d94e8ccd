package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// seriesPage is the page of a node whose series are looked at beside it.
type seriesPage struct {
	*browser
	node *harness.Node
}

// TestPageOfSeries defines, redefines and deletes series, resumes them after a restore, and says
// what the books have of their numbers. What is wrong is refused with reason and field, and
// changes nothing.
func TestPageOfSeries(t *testing.T) {
	tier.Long(t)
	chromium(t)
	n := harness.StartCluster(t, harness.Config{Size: 1}).Nodes[0]
	p := &seriesPage{browser: openBrowser(t, "http://"+n.HTTP), node: n}
	p.open("series")
	p.defines()
	p.redefines()
	p.looks()
	p.allots()
	p.withdraws()
	p.deletes()
	p.definesAfterARestore()
	p.resumes()
	p.reconciles()
}

// typed fills the dialog in that defines a series.
func (p *seriesPage) typed(name, format, reset string) {
	p.t.Helper()
	p.click(".list .tools .main")
	p.off("dialog .main", "Name the series and its format first.")
	p.again(reset)
	p.fill(field(1), name)
	p.fill(field(2), format)
}

// refused does what a preview refuses, once that of the newest input is there.
func (p *seriesPage) refused(reason string) {
	p.t.Helper()
	p.until("the preview is refused: "+reason, fmt.Sprintf(`document.querySelector("dialog .main").title.endsWith(%q)`, reason))
	p.clickFor("dialog .main", "dialog .failure", reason)
}

// again chooses when numbers begin again.
func (p *seriesPage) again(reset string) {
	p.t.Helper()
	ask[bool](p.browser, fmt.Sprintf(`(e => (e.value = "SERIES_RESET_" + %q, e.dispatchEvent(new Event("input"))))(document.querySelector("dialog select"))`, strings.ToUpper(reset)))
}

// series returns a series, which has a version.
func (p *seriesPage) series(name string, version int64) *idnodev1.Series {
	p.t.Helper()
	got, err := p.node.Series.GetSeries(p.ctx, &idnodev1.GetSeriesRequest{Name: name})
	if err != nil || got.GetSeries().GetVersion() != version {
		p.t.Errorf("%s is %v, %v, want version %d", name, got, err, version)
	}
	return got.GetSeries()
}

// unknown: there is no such series.
func (p *seriesPage) unknown(name string) {
	p.t.Helper()
	if got, err := p.node.Series.GetSeries(p.ctx, &idnodev1.GetSeriesRequest{Name: name}); harness.Reason(err) != "SERIES_NOT_FOUND" {
		p.t.Errorf("%s is there: %v, %v", name, got, err)
	}
}

// defined confirms a dialog that is on, and waits for what the list then has of the series.
func (p *seriesPage) defined(name, said, has string) {
	p.t.Helper()
	p.off("dialog .main", "")
	p.confirms(name + said)
	p.sees("tr[data-name="+name+"]", has)
}

// scopeInBooks opens the dialog that resumes a series, looks into the books, and adds a scope.
func (p *seriesPage) scopeInBooks(series string) {
	p.t.Helper()
	p.does("Resume", series, "Resume "+series)
	p.off("dialog .danger", "Look into the books first.")
	p.click("dialog form > .check input")
	p.click("dialog form > button")
}

// takes takes a number on a date, and compares its text.
func (p *seriesPage) takes(series, key, date, want string, values map[string]string) {
	p.t.Helper()
	got, err := p.node.Series.TakeNumbers(p.ctx, &idnodev1.TakeNumbersRequest{Series: series, Keys: []string{key}, Date: date, Values: values})
	if err != nil || got.GetNumbers()[0].GetText() != want {
		p.t.Errorf("took %v, %v, want %s", got, err, want)
	}
}

// defines begins a series that is previewed, first in a format that has two meanings.
func (p *seriesPage) defines() {
	const template = "O-{branch}-{year}-{number:4}"
	by := &idnodev1.SeriesDefinition{Format: template, ResetBy: idnodev1.SeriesReset_SERIES_RESET_YEAR}
	would, err := p.node.Series.DefineSeries(p.ctx, &idnodev1.DefineSeriesRequest{Name: "orders", Definition: by, DryRun: true})
	if err != nil {
		p.t.Fatal(err)
	}
	p.typed("orders", "O-{number:4}", "year")
	p.sees("dialog .verdict", "Format gives two numbers one text", "(INVALID_SERIES, definition.format)")
	p.off("dialog .main", "Format gives two numbers one text")
	p.refused("(INVALID_SERIES, definition.format)")
	p.unknown("orders")
	p.fill(field(2), template)
	means := would.GetPreview()
	p.sees("dialog .verdict",
		fmt.Sprintf("The first numbers are %s. Each call gives branch. They begin again on %s.", strings.Join(means.GetTexts(), ", "),
			means.GetBeginsAgain()))
	p.shot("define")
	p.defined("orders", " gives numbers.", template)
	if d := p.series("orders", 1).GetDefinition(); d.GetFormat() != template || d.GetResetBy() != by.GetResetBy() {
		p.t.Errorf("defined %v", d)
	}
	p.takes("orders", "a", "", means.GetTexts()[0], map[string]string{"branch": "BRANCH"})
}

// redefines changes everything of a series that has an open number, and begins a scope at a
// number. Once one is confirmed the format stays.
func (p *seriesPage) redefines() {
	const number = "dialog details:last-of-type .field:last-child input"
	p.does("Redefine", "orders", "Redefine orders")
	p.fill(field(1), "N-{branch}-{number:4}")
	p.sees("dialog .verdict", "(INVALID_SERIES, definition.format)")
	p.again("never")
	p.sees("dialog .verdict",
		"The first numbers are N-BRANCH-0001, N-BRANCH-0002. Each call gives branch. They never begin again. Open numbers that it forgets: 1.")
	p.click("dialog details:first-of-type summary")
	p.fill("dialog details:first-of-type .field:nth-of-type(5) input", "10,000")
	p.click("dialog details:last-of-type summary")
	p.fill("dialog details:last-of-type .field input", "BERLIN")
	p.sees("dialog .verdict", "(INVALID_SERIES, begins)")
	p.fill(number, "x")
	p.sees("dialog .verdict", "(INVALID_REQUEST, first)")
	p.refused("(INVALID_REQUEST, first)")
	p.series("orders", 1)
	p.fill(number, "543")
	p.sees("dialog .verdict", "The first numbers are N-BERLIN-0543, N-BERLIN-0544.")
	p.shot("redefine")
	p.defined("orders", " has version 2.", "N-{branch}-{number:4}")
	if d := p.series("orders", 2).GetDefinition(); d.GetResetBy() != idnodev1.SeriesReset_SERIES_RESET_NEVER || d.GetMaxOpen() != 10_000 {
		p.t.Errorf("redefined %v", d)
	}
	p.takes("orders", "b", "2026-11-26", "N-BERLIN-0543", map[string]string{"branch": "BERLIN"})
	must(p.t)(p.node.Series.ConfirmNumbers(p.ctx,
		&idnodev1.ConfirmNumbersRequest{Series: "orders", Keys: []*idnodev1.NumberOf{{Key: "b"}}}))
	p.does("Redefine", "orders", "Redefine orders")
	p.off("dialog .main", "")
	p.fill(field(1), "M-{branch}-{number:4}")
	p.sees("dialog .verdict", "(INVALID_SERIES, definition.format)")
	p.refused("(INVALID_SERIES, definition.format)")
	p.leaves()
	p.series("orders", 2)
}

// looks sees what a scope has, and finds a number by its key and by its text.
func (p *seriesPage) looks() {
	p.does("Numbers", "orders", "orders")
	p.sees("dialog .scopes", "BERLIN\t543 to 543, 1 confirmed; 1 to 542 before this series\t9,456")
	p.fill("dialog .field input", "N-BERLIN-0544")
	p.clickFor("dialog .main", "dialog .failure", "(NUMBER_NOT_FOUND")
	p.gives("N-BERLIN-0543", "N-BERLIN-0543 is that of b: confirmed, 2026-11-26.")
}

// allots has a scope give the numbers of two ranges, and sees what they have left. What is no range is refused.
func (p *seriesPage) allots() {
	allot := func(from, to, until, note string) {
		p.does("Allot", "orders", "Allot numbers of orders")
		p.off("dialog .main", "Give the first and the last number first.")
		for i, typed := range []string{"BERLIN", from, to, until, note} {
			p.fill(fmt.Sprintf("dialog .field:nth-of-type(%d) input", i+1), typed)
		}
		p.off("dialog .main", "")
		p.click("dialog .main")
	}
	for refused, wrong := range map[string][3]string{
		"(INVALID_SERIES, allotment)":       {"543", "602", ""},
		"(INVALID_SERIES, allotment.until)": {"601", "602", "2999-13-01"},
		"(INVALID_REQUEST":                  {"601", "6.02", ""},
	} {
		allot(wrong[0], wrong[1], wrong[2], "")
		p.sees("dialog .failure", refused)
		p.leaves()
	}
	p.allotted()
	allot("601", "602", "2999-12-31", "res. 1876")
	p.sees("#said", "601 to 602, until 2999-12-31, res. 1876 is allotted.")
	p.gone("dialog")
	allot("701", "1,700", "", "")
	p.sees("#said", "701 to 1,700 is allotted.")
	p.gone("dialog")
	p.takes("orders", "c", "2026-11-27", "N-BERLIN-0601", map[string]string{"branch": "BERLIN"})
	p.allotted("601 to 602 until 2999-12-31, res. 1876: 1 given", "701 to 1700 until , : 0 given")
	p.does("Numbers", "orders", "orders")
	p.sees("dialog .scopes", "BERLIN\tallotted ones up to 601, 1 open, 1 confirmed; 1 to 542 before this series\t1,001\n"+
		"\t601 to 602, until 2999-12-31, res. 1876: 1 given\t1\n\t701 to 1,700: 0 given\t1,000")
	p.shot("allotments")
	p.gives("c", "N-BERLIN-0601 is that of c: open, 2026-11-27, res. 1876.")
}

// withdraws takes back the range that gave no number, and no other.
func (p *seriesPage) withdraws() {
	p.does("Withdraw", "orders", "Withdraw numbers of orders?")
	p.until("one range to choose", `(o => o.length === 1 && o[0].text === "BERLIN, 701 to 1,700")(document.querySelector("dialog select").options)`)
	p.shot("withdraw")
	p.ends("dialog .danger", "701 to 1,700 is taken back.")
	p.allotted("601 to 602 until 2999-12-31, res. 1876: 1 given")
	p.clickFor("tr[data-name=orders] [aria-label^=Withdraw]", "#said", "orders has no allotment that gave no number.")
}

// allotted compares the allotments of the last scope of the orders.
func (p *seriesPage) allotted(want ...string) {
	p.t.Helper()
	res, err := p.node.Series.ReportSeries(p.ctx, &idnodev1.ReportSeriesRequest{Series: "orders"})
	if err != nil {
		p.t.Fatal(err)
	}
	var got []string
	for _, a := range res.GetScopes()[len(res.GetScopes())-1].GetAllotments() {
		got = append(got, fmt.Sprintf("%d to %d until %s, %s: %d given", a.GetFrom(), a.GetTo(), a.GetUntil(), a.GetNote(), a.GetGiven()))
	}
	if !slices.Equal(got, want) {
		p.t.Errorf("the allotments are %q, want %q", got, want)
	}
}

// deletes deletes a series without numbers, and not one that has a confirmed number.
func (p *seriesPage) deletes() {
	p.does("Delete", "orders", "Delete orders?")
	p.clickFor("dialog .danger", "dialog .failure", "(SERIES_IN_USE")
	p.leaves()
	p.series("orders", 2)
	p.typed("typo", "T-{number}", "never")
	p.off("dialog .main", "")
	p.click("dialog .main")
	p.gone("dialog")
	p.takes("typo", "a", "", "T-1", nil)
	p.does("Delete", "typo", "Delete typo?")
	p.sees("dialog", "It forgets 1 key, and what is open.")
	p.shot("delete-series")
	p.clickFor("dialog .danger", "#said", "typo is deleted.")
	p.gone("tr[data-name=typo]")
	p.unknown("typo")
}

// resumes resumes a suspended series whose dates have an order: without the books' last date it
// is refused.
func (p *seriesPage) resumes() {
	by := &idnodev1.SeriesDefinition{Format: "L-{number:4}", Order: idnodev1.SeriesOrder_SERIES_ORDER_DATES_DO_NOT_GO_BACK}
	if res, err := p.node.Series.DefineSeries(p.ctx,
		&idnodev1.DefineSeriesRequest{Name: "ledger", Definition: by}); err != nil || !res.GetSuspended() {
		p.t.Fatal(res, err)
	}
	p.sees("tr[data-name=ledger]", "suspended")
	p.scopeInBooks("ledger")
	for _, wrong := range [][2]string{{"5", ""}, {"5", "2024-13-01"}, {"0", "2024-03-01"}} {
		p.fill(field(2), wrong[0])
		p.fill(field(3), wrong[1])
		p.clickFor("dialog .danger", "dialog .failure", "(INVALID_SERIES, books)")
	}
	for _, none := range []string{"x", "10.000"} {
		p.fill(field(2), none)
		p.clickFor("dialog .danger", "dialog .failure", none, "(INVALID_REQUEST, last)")
	}
	if got := p.series("ledger", 1); !got.GetSuspended() {
		p.t.Errorf("bad input resumed %v", got)
	}
	p.fill(field(2), "5")
	p.shot("resume")
	p.ends("dialog .danger", "ledger gives numbers.")
	p.sees("tr[data-name=ledger]", "active")
	p.off("tr[data-name=ledger] [aria-label^=Resume]", "It is active")
	if _, err := p.node.Series.TakeNumbers(p.ctx,
		&idnodev1.TakeNumbersRequest{Series: "ledger", Keys: []string{"a"}, Date: "2024-02-29"}); harness.Reason(err) != "DATE_GOES_BACK" {
		p.t.Errorf("a date before the last of the books: %v", err)
	}
	p.takes("ledger", "a", "2024-03-01", "L-0006", nil)
}

// definesAfterARestore tries a name that is taken, and begins a series that may be known elsewhere.
func (p *seriesPage) definesAfterARestore() {
	must(p.t)(idnodev1.NewAdminServiceClient(p.node.Conn).MergeCluster(p.ctx, &idnodev1.MergeClusterRequest{Floor: 7}))
	p.typed("orders", "R-{number}", "never")
	p.off("dialog .main", "The definition has version 2, not 0")
	p.sees("dialog .verdict", "(CONCURRENCY")
	p.fill(field(1), "receipts")
	p.sees("dialog .verdict", "The first numbers are R-1, R-2. They never begin again.")
	p.defined("receipts", " is suspended.", "suspended")
	if got := p.series("receipts", 1); !got.GetSuspended() {
		p.t.Errorf("defined %v", got)
	}
}

// reconciles answers one unknown number after the other, once with a document that has another.
func (p *seriesPage) reconciles() {
	p.scopeInBooks("receipts")
	p.fill(field(2), "3")
	p.ends("dialog .danger", "receipts gives numbers.")
	p.clickFor("tr[data-name=receipts] [aria-label^=Unknown]", "dialog h2", "R-1 of receipts")
	p.sees("dialog", "3 numbers of the series are unknown. Of this one no key is known.")
	p.off("dialog .danger", "Give the key, or say that no document has the number.")
	p.shot("reconcile")
	p.answers("doc-1")
	p.sees("#said", "R-1 is that of doc-1: confirmed")
	p.sees("dialog h2", "R-2 of receipts")
	p.answers("doc-1")
	p.sees("dialog .failure", "(KEY_CONFLICT", "doc-1")
	p.has("R-1 confirmed doc-1", "R-2 unknown ", "R-3 unknown ")
	p.click("dialog .check input")
	p.clickFor("dialog .danger", "#said", "R-2 has no key: voided, not in the books")
	p.sees("dialog h2", "R-3 of receipts")
	p.answers("doc-3")
	p.sees("#said", "receipts has no unknown number.")
	p.gone("dialog")
	p.has("R-1 confirmed doc-1", "R-2 voided ", "R-3 confirmed doc-3")
}

// answers says which document has the number that the dialog asks for.
func (p *seriesPage) answers(key string) {
	p.t.Helper()
	p.fill("dialog .field input", key)
	p.off("dialog .danger", "")
	p.click("dialog .danger")
}

// has compares the numbers of the receipts with text, state and key of each.
func (p *seriesPage) has(want ...string) {
	p.t.Helper()
	res, err := p.node.Series.ListNumbers(p.ctx, &idnodev1.ListNumbersRequest{Series: "receipts"})
	var got []string
	for _, n := range res.GetNumbers() {
		state := strings.ToLower(strings.TrimPrefix(n.GetState().String(), "NUMBER_STATE_"))
		got = append(got, fmt.Sprintf("%s %s %s", n.GetText(), state, n.GetKey()))
	}
	if err != nil || strings.Join(got, ", ") != strings.Join(want, ", ") {
		p.t.Errorf("the numbers are %q, %v, want %q", got, err, want)
	}
}
