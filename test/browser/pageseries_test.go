package browser

import (
	"fmt"
	"strings"
	"testing"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// seriesPage is the page of a node whose series are looked at beside it.
type seriesPage struct {
	*browser
	node *harness.Node
}

// TestPageOfSeries defines series, also after a restore, and says what the books have of
// their numbers. What is wrong is refused with its reason, and changes nothing.
func TestPageOfSeries(t *testing.T) {
	tier.Long(t)
	chromium(t)
	n := harness.StartCluster(t, harness.Config{Size: 1}).Nodes[0]
	p := &seriesPage{browser: openBrowser(t, "http://"+n.HTTP), node: n}
	p.open("series")
	p.defines()
	p.definesAfterARestore()
	p.reconciles()
}

// typed fills the dialog in that defines a series.
func (p *seriesPage) typed(name, format, reset string) {
	p.t.Helper()
	p.click(".list .tools .main")
	p.off("dialog .main", "Name the series and its format first.")
	ask[bool](p.browser, fmt.Sprintf(`(e => (e.value = %q, e.dispatchEvent(new Event("change"))))(document.querySelector("dialog select"))`, reset))
	p.fill("dialog .field:nth-of-type(1) input", name)
	p.fill("dialog .field:nth-of-type(2) input", format)
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
	p.sees("dialog .verdict", "Format gives two numbers one text")
	p.sees("dialog .verdict", "(INVALID_SERIES)")
	p.off("dialog .main", "Format gives two numbers one text")
	p.click("dialog .main")
	p.sees("dialog .failure", "(INVALID_SERIES)")
	if _, err := p.node.Series.GetSeries(p.ctx, &idnodev1.GetSeriesRequest{Name: "orders"}); harness.Reason(err) != "SERIES_NOT_FOUND" {
		p.t.Errorf("a series was defined in a wrong format: %v", err)
	}
	p.fill("dialog .field:nth-of-type(2) input", template)
	means := would.GetPreview()
	p.sees("dialog .verdict", fmt.Sprintf("The first numbers are %s. Each call gives branch. They begin again on %s.", strings.Join(means.GetTexts(), ", "), means.GetBeginsAgain()))
	p.off("dialog .main", "")
	p.shot("define")
	p.click("dialog .main")
	p.sees("#said", "orders gives numbers.")
	p.gone("dialog")
	p.sees("tr[data-name=orders]", template)
	got, err := p.node.Series.GetSeries(p.ctx, &idnodev1.GetSeriesRequest{Name: "orders"})
	if d := got.GetSeries().GetDefinition(); err != nil || d.GetFormat() != template || d.GetResetBy() != by.GetResetBy() || got.GetSeries().GetVersion() != 1 {
		p.t.Errorf("defined %v, %v", got, err)
	}
	taken, err := p.node.Series.TakeNumbers(p.ctx, &idnodev1.TakeNumbersRequest{Series: "orders", Keys: []string{"a"}, Values: map[string]string{"branch": "BRANCH"}})
	if err != nil || taken.GetNumbers()[0].GetText() != means.GetTexts()[0] {
		p.t.Errorf("took %v, %v, and the page has shown %q", taken, err, means.GetTexts())
	}
}

// definesAfterARestore tries a name that is taken, and begins a series that may be known elsewhere.
func (p *seriesPage) definesAfterARestore() {
	if _, err := idnodev1.NewAdminServiceClient(p.node.Conn).MergeCluster(p.ctx, &idnodev1.MergeClusterRequest{Floor: 7}); err != nil {
		p.t.Fatal(err)
	}
	p.typed("orders", "R-{number}", "never")
	p.off("dialog .main", "The definition has version 1, not 0")
	p.sees("dialog .verdict", "(CONCURRENCY)")
	p.fill("dialog .field:nth-of-type(1) input", "receipts")
	p.sees("dialog .verdict", "The first numbers are R-1, R-2. They never begin again.")
	p.off("dialog .main", "")
	p.click("dialog .main")
	p.sees("#said", "receipts is suspended.")
	p.gone("dialog")
	p.sees("tr[data-name=receipts]", "suspended")
	got, err := p.node.Series.GetSeries(p.ctx, &idnodev1.GetSeriesRequest{Name: "receipts"})
	if err != nil || !got.GetSeries().GetSuspended() {
		p.t.Errorf("defined %v, %v", got, err)
	}
}

// reconciles answers one unknown number after the other, once with a document that has another.
func (p *seriesPage) reconciles() {
	books := []*idnodev1.ScopeInBooks{{Last: 3}}
	if _, err := p.node.Series.ResumeSeries(p.ctx, &idnodev1.ResumeSeriesRequest{Series: "receipts", Books: books}); err != nil {
		p.t.Fatal(err)
	}
	p.click("tr[data-name=receipts] [aria-label^=Unknown]")
	p.sees("dialog h2", "R-1 of receipts")
	p.sees("dialog", "3 numbers of the series are unknown. Of this one no key is known.")
	p.off("dialog .danger", "Give the key, or say that no document has the number.")
	p.shot("reconcile")
	p.answers("doc-1")
	p.sees("#said", "R-1 is that of doc-1: confirmed")
	p.sees("dialog h2", "R-2 of receipts")
	p.answers("doc-1")
	p.sees("dialog .failure", "(KEY_CONFLICT)")
	p.sees("dialog .failure", "doc-1")
	p.has("R-1 confirmed doc-1", "R-2 unknown ", "R-3 unknown ")
	p.click("dialog .check input")
	p.click("dialog .danger")
	p.sees("#said", "R-2 has no key: voided, not in the books")
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
