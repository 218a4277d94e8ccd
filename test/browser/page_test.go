package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// pages are the views of the page.
var pages = []string{
	"overview", "events", "find?of=invoices/1", "make", "identities", "hilo", "claims", "series", "pools", "databases", "etags", "operate",
}

// oddNames are names of identities and claims that a page could stumble over: text
// that looks like a page's own, and one that is longer than any line.
var oddNames = []string{`<img src=x onerror="window.broken = true">`, strings.Repeat("a-long-name", 60)}

// oldName is one from before control characters were refused, and shownName what is
// seen of it.
const (
	oldName   = "turned\n\u202eback"
	shownName = `turned\u000a\u202eback`
)

// pageTest is one browser at one node of a cluster, for all parts of a test.
type pageTest struct {
	*browser
	cluster *harness.Cluster
	node    *harness.Node
	// whole is the test of all parts, with which a process ends that a part starts.
	whole *testing.T
}

// TestPage uses a cluster through the page of one of its nodes, in a browser. The
// parts follow each other; IDNODE_SCREENSHOTS names a folder for what was seen.
func TestPage(t *testing.T) {
	chromium(t)
	c := harness.StartCluster(t, harness.Config{})
	p := &pageTest{cluster: c, node: c.Nodes[0], whole: t}
	p.fillState(t)
	p.browser = openBrowser(t, "http://"+p.node.HTTP)
	for _, part := range []struct {
		name string
		run  func(*pageTest)
	}{
		{"cluster", (*pageTest).seesCluster},
		{"makes ids", (*pageTest).makesIDs},
		{"limits of fields", (*pageTest).keepsLimits},
		{"reserves ranges", (*pageTest).reservesRanges},
		{"seeds", (*pageTest).seeds},
		{"deletes", (*pageTest).deletes},
		{"filters and pages", (*pageTest).filtersAndPages},
		{"raises", (*pageTest).raises},
		{"old names", (*pageTest).oldNames},
		{"claims", (*pageTest).claims},
		{"sorts", (*pageTest).sorts},
		{"copies", (*pageTest).copies},
		{"series", (*pageTest).seesSeries},
		{"pools", (*pageTest).definesPools},
		{"etags", (*pageTest).seesEtags},
		{"databases", (*pageTest).changesDatabase},
		{"finds", (*pageTest).finds},
		{"keyboard", (*pageTest).worksByKeyboard},
		{"rates", (*pageTest).seesRates},
		{"busiest names", (*pageTest).seesBusiest},
		{"nodes", (*pageTest).seesNodes},
		{"labels", (*pageTest).namesEverything},
		{"contrast", (*pageTest).isLegible},
		{"operates", (*pageTest).operates},
		{"widths", (*pageTest).fitsWidths},
		{"dark", (*pageTest).turnsDark},
		{"quorum lost and back", (*pageTest).losesQuorum},
		{"what happened", (*pageTest).seesEvents},
		{"node gone and back", (*pageTest).losesNode},
		{"another node's page", (*pageTest).goesToAnother},
		{"dead member", (*pageTest).removesDeadMember},
	} {
		t.Run(part.name, func(t *testing.T) {
			p.t = t
			part.run(p)
		})
	}
	p.t = t
}

// fillState makes what the lists show.
func (p *pageTest) fillState(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), seen)
	defer cancel()
	for i := range 45 {
		must(t)(p.node.Ids.NextIdentity(ctx,
			&idnodev1.NextIdentityRequest{Name: fmt.Sprintf("customer-%02d", i), Count: int64(1 + i*37%1000)}))
	}
	for _, name := range oddNames {
		must(t)(p.node.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: name}))
		must(t)(p.node.Ids.Claim(ctx, &idnodev1.ClaimRequest{Id: name}))
	}
	merges(t, p.node, &idnodev1.DatabaseMerge{
		Identities: []*idnodev1.IdentityValue{{Name: oldName, Value: 3}}, Hilos: []*idnodev1.HiLoValue{{Tag: oldName, Max: 32}},
	})
	p.fillSeries(t)
	for _, database := range []string{"default", "shop"} {
		must(t)(p.node.Ids.Generate(ctx, &idnodev1.GenerateRequest{Database: database, Template: "orders/", Count: 1234}))
		must(t)(p.node.Ids.NextRange(ctx, &idnodev1.NextRangeRequest{Database: database, Tag: "orders"}))
		must(t)(p.node.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Database: database, Name: "only-" + database}))
	}
}

// fillSeries begins a series.
func (p *pageTest) fillSeries(t *testing.T) {
	t.Helper()
	harness.Eventually(t, seen, "a series", func(ctx context.Context) error {
		_, err := p.node.Series.DefineSeries(ctx, &idnodev1.DefineSeriesRequest{Name: "invoices", Definition: &idnodev1.SeriesDefinition{
			Format: "INV-{year}-{number:4}", ResetBy: idnodev1.SeriesReset_SERIES_RESET_YEAR,
		}})
		if err == nil {
			_, err = p.node.Series.TakeNumbers(ctx,
				&idnodev1.TakeNumbersRequest{Series: "invoices", Date: "2026-03-01", Keys: []string{"doc-1", "doc-2"}})
		}
		if err == nil {
			_, err = p.node.Series.ConfirmNumbers(ctx,
				&idnodev1.ConfirmNumbersRequest{Series: "invoices", Keys: []*idnodev1.NumberOf{{Key: "doc-1"}}})
		}
		return err
	})
}

func (p *pageTest) seesCluster() {
	leader := p.cluster.Leader(p.t)
	p.sees(".where", "quorum")
	p.until("three members that are up to date", `document.querySelectorAll(".member .state.good").length === 3`)
	p.sees(".member[data-tag="+leader.Tag+"] .role", "Leader")
	p.sees(".member[data-tag=A]", "this node")
	p.sees(".figures", "3 of 3 voters", "none")
	p.shot("cluster")
}

// template types a template and waits for what would come of it.
func (p *pageTest) template(text, strategy string) {
	p.t.Helper()
	p.fill("[name=template]", text)
	p.sees(".verdict strong", strategy)
}

// made waits for the newest thing that was made.
func (p *pageTest) made(strategy, id string) {
	p.t.Helper()
	p.sees(".made > li:first-child .strategy", strategy)
	p.until("the id "+id, fmt.Sprintf("/%s/.test(document.querySelector('.made .id').innerText)", id))
}

// makes makes an id of a template in a strategy.
func (p *pageTest) makes(template, strategy, id string) {
	p.t.Helper()
	p.template(template, strategy)
	p.click(".forms form:nth-child(1) .main")
	p.made(strategy, id)
}

func (p *pageTest) makesIDs() {
	p.open("make")
	p.sees(".verdict", "empty or white space")
	p.click(".forms form:nth-child(1) .main")
	p.made("GUID", "^[0-9a-f-]{36}$")
	p.makes("users/", "Server-side id", `^users\/0{15}\d{4}-A$`)
	p.template("invoices|", "Identity")
	p.sees(".verdict", "invoices")
	p.click(".forms form:nth-child(1) .main")
	p.made("Identity", `^invoices\/1$`)
	p.sees(".made > li", "agrees on the next value")
	p.template("users/ayende", "Semantic id")
	p.click("[name=claim]")
	p.click(".forms form:nth-child(1) .main")
	p.made("Semantic id", `^users\/ayende$`)
	p.sees(".made > li", "Claimed.")
	p.clickFor(".forms form:nth-child(1) .main", ".forms .failure", "ID_CLAIMED")
	p.template(`a\b`, "No id.")
	p.off(".forms .main", "No id comes of this template.")
	p.template("invoices|", "Identity")
	p.until("the failure is of the last try", `document.querySelector(".forms .failure").innerText !== ""`)
	p.click(".forms form:nth-child(1) .main")
	p.made("Identity", `^invoices\/2$`)
	p.until("no failure any more", `document.querySelector(".forms .failure").innerText === ""`)
}

func (p *pageTest) reservesRanges() {
	p.open("make")
	for i := range 2 { // The numbers come again, but no range has the end of another.
		p.fill("[name=tag]", "tickets")
		p.click(".forms form:nth-child(2) .main")
		p.made("HiLo range", fmt.Sprintf(`^tickets\/1-A … tickets\/%d-A$`, 32+i))
		p.clickFor(".made > li:first-child .more button", ".made > li:first-child .more", "begins at 1 again")
	}
	p.fill("[name=tag]", "tickets")
	p.clickFor(".forms form:nth-child(2) .main", ".made > li:first-child .more", "Give it back unused")
	must(p.t)(p.node.Ids.NextRange(p.ctx, &idnodev1.NextRangeRequest{Tag: "tickets"}))
	p.clickFor(".made > li:first-child .more button", ".made > li:first-child .more", "Not taken back: a newer range was given out since.")
	p.makes("invoices|", "Identity", `^invoices\/3$`)
	p.shot("make")
}

func (p *pageTest) seeds() {
	p.open("identities")
	p.click(".list .main")
	p.fill(field(1), "bills")
	p.fill(field(2), "1,000")
	p.sees("dialog", "The next id will be bills/1001.")
	p.until("its value is right", `!document.querySelector("dialog [aria-invalid=true]")`)
	p.fill(field(2), "many")
	p.wrong(field(2), true)
	p.fill(field(2), "1,000")
	p.shot("seed")
	p.confirms("bills is at 1,000.")
	p.sees("tr[data-name=bills]", "1,000")
	p.does("Seed", "bills", "Seed bills")
	p.fill("dialog input", "42")
	p.sees("dialog .warning", "The ids from 43 to 1,000 may then come out a second time.")
	p.off("dialog .main", "It lowers the value: tick the box if that is meant.")
	p.shot("seed-lower")
	p.click("dialog .check input")
	p.clickFor("dialog .main", "tr[data-name=bills] .number", "42")
	p.gone("dialog")
	// A name that exists already is found, and its value compared.
	p.click(".list .main")
	p.fill(field(1), "BILLS")
	p.fill(field(2), "7")
	p.sees("dialog .warning", "from 8 to 42")
	p.leaves()
}

func (p *pageTest) deletes() {
	p.open("identities")
	p.clickFor("tr[data-name=bills] .danger", "dialog h2", "Delete bills?")
	p.keys(kb.Enter) // What has the focus is the way out.
	p.gone("dialog")
	p.sees("tr[data-name=bills]", "42")
	p.clickFor("tr[data-name=bills] .danger", "dialog h2", "Delete bills?")
	p.shot("delete")
	p.clickFor("dialog button.danger", "#said", "bills is deleted.")
	p.gone("tr[data-name=bills]")
}

func (p *pageTest) filtersAndPages() {
	p.open("identities")
	p.sees("tbody tr:first-child", oddNames[0])
	p.filters("CUSTOMER-", "customer-00")
	p.until("one page", `document.querySelectorAll("tbody tr").length === 20`)
	p.shot("identities")
	p.clickFor(".pager button:last-child", "tbody tr:first-child", "customer-20")
	p.clickFor(".pager button:last-child", "tbody tr:first-child", "customer-40")
	p.until("the last page", `document.querySelectorAll("tbody tr").length === 5 && document.querySelector(".pager button:last-child").disabled`)
	p.clickFor(".pager button:first-child", "tbody tr:first-child", "customer-20")
	// Turned at once after the filter was changed: the page of the new list.
	ask[bool](p.browser, `(e => (e.value = "customer-", e.dispatchEvent(new Event("input")), document.querySelector(".pager button:last-child").click(), true))(document.querySelector("input[type=search]"))`)
	p.sees(".pager", "Page 2")
	p.sees("tbody tr:first-child", "customer-20")
	p.fill("input[type=search]", "customer-4")
	p.until("what begins so", `document.querySelectorAll("tbody tr").length === 5`)
	p.fill("input[type=search]", "nobody")
	p.sees(".note", "Nothing begins with that.")
}

func (p *pageTest) raises() {
	p.open("hilo")
	p.sees("tr[data-name=orders]", "32")
	p.does("Raise", "orders", "Raise orders")
	p.fill("dialog input", "31")
	p.sees("dialog .warning", "only rises")
	p.off("dialog .main", "A HiLo counter only rises.")
	p.wrong("dialog input", true)
	p.fill("dialog input", "5000")
	p.sees("dialog", "The next range will begin at 5,001.")
	// A range that was given out meanwhile is in nobody's way.
	must(p.t)(p.node.Ids.NextRange(p.ctx, &idnodev1.NextRangeRequest{Tag: "orders"}))
	p.clickFor("dialog .main", "tr[data-name=orders]", "5,000")
	p.gone("dialog")
	p.shot("hilo")
	p.click(".list .main")
	p.fill(field(1), "ORDERS")
	p.fill(field(2), "4999")
	p.sees("dialog .warning", "5,000")
	p.open("claims")
	p.gone("dialog")
}

// oldNames can be seen, and changed, with all their characters.
func (p *pageTest) oldNames() {
	p.open("identities")
	p.filters("turned", shownName)
	p.clickFor("tbody .do button:nth-child(2)", "dialog h2", "Seed "+shownName)
	p.gives("9", shownName+" is at 9.")
	p.open("hilo")
	p.filters("turned", shownName)
	p.click("tbody .do button:nth-child(2)")
	p.gives("64", shownName+" is at 64.")
}

func (p *pageTest) claims() {
	p.open("claims")
	p.sees("tbody", "users/ayende")
	p.click(".list .main")
	p.gives("users/oren@example.org", "users/oren@example.org is claimed.")
	p.sees("tbody", "users/oren@example.org")
	p.shot("claims")
	p.clickFor("tr[data-name='users/ayende'] .danger", "dialog", "Release this id?")
	p.click("dialog button.danger")
	p.gone("tr[data-name='users/ayende']")
	p.sees("tbody", "users/oren@example.org")
}

// definesPools defines a pool, makes an id of it, and sees which worker the node has for that.
func (p *pageTest) definesPools() {
	p.open("pools")
	p.click(".list .main")
	p.gives("orders", "orders is defined.")
	p.sees("tr[data-name=orders]", "1,024")
	p.clickFor("tr[data-name=orders] [aria-label^='Make an id']", "#said", "orders: ")
	p.clickFor("tr[data-name=orders] [aria-label^=Workers]", "dialog tbody", "node ")
	p.click("dialog .actions button")
	p.gone("dialog")
	p.shot("pools")
}

// seesSeries looks at what a series has, and finds numbers by key and by text.
func (p *pageTest) seesSeries() {
	p.open("series")
	p.sees("tr[data-name=invoices]", "INV-{year}-{number:4}", "active")
	p.clickFor("tr[data-name=invoices] [aria-label^=Numbers]", "dialog .scopes", "1 to 2, 1 open, 1 confirmed")
	p.shot("series")
	p.gives("doc-1", "INV-2026-0001 is that of doc-1: confirmed, 2026-03-01.")
	p.click("tr[data-name=invoices] [aria-label^=Numbers]")
	p.gives("INV-2026-0002", "INV-2026-0002 is that of doc-2: open, 2026-03-01.")
	p.click("tr[data-name=invoices] [aria-label^=Numbers]")
	p.fill("dialog input", "doc-3")
	p.clickFor("dialog .main", "dialog .failure", "Nobody took such a number.")
	p.leaves()
}

func (p *pageTest) seesEtags() {
	p.open("etags")
	p.sees("tr[data-name=shop]", "1,234")
	p.sees("tr[data-name=default]", "65,536")
	p.sees("main", "The counters of node A alone")
	p.shot("etags")
}

func (p *pageTest) changesDatabase() {
	p.open("identities")
	p.fill("#database", "shop")
	p.keys(kb.Enter)
	p.sees("tbody", "only-shop")
	p.gone("tr[data-name=invoices]")
	p.open("identities?database=none")
	p.sees(".note", "No such database: none.")
	p.open("hilo?database=shop")
	p.sees("tr[data-name=orders]", "32")
	p.open("databases")
	p.sees("tbody", "default")
	p.clickFor("tr[data-name=shop] .do button:nth-child(2)", "h1", "Identities")
	p.sees("tbody", "only-shop")
	p.open("identities")
	p.sees("tbody", "customer-00")
}

// seesRates looks at the charts while ids are taken.
func (p *pageTest) seesRates() {
	p.open("overview")
	stop := p.load()
	defer stop()
	p.until("what the node remembers", `document.querySelector("[data-strategy=server_side] .line").getAttribute("d").includes("L")`)
	p.until("times", `[...document.querySelectorAll("[data-strategy=identity] .axis span")].every(e => /^\d\d:\d\d(:\d\d)?$/.test(e.innerText))`)
	p.sees("[data-strategy=series]", "2 in all")
	p.sees("[data-strategy=commit] .now", "s")
	p.click("[data-past=false]")
	for _, strategy := range []string{"identity", "hilo", "server_side", "guid"} {
		p.until("a rate of "+strategy, fmt.Sprintf(
			`parseFloat(document.querySelector("[data-strategy=%s] .now strong").innerText) > 0 && document.querySelector("[data-strategy=%s] .line").getAttribute("d").includes("L")`,
			strategy, strategy,
		))
	}
	p.until("a history", `document.querySelector("[data-strategy=identity] .line").getAttribute("d").split("L").length > 12`)
	p.until("the value under the pointer", `(svg => (svg.dispatchEvent(new PointerEvent("pointermove", { clientX: svg.getBoundingClientRect().right - 5 })),
		/^\d\d:\d\d:\d\d: [\d.,]+$/.test(svg.parentElement.querySelector(".ends span").innerText)))(document.querySelector("[data-strategy=identity] svg"))`)
	p.until("the peak", `(svg => (svg.dispatchEvent(new PointerEvent("pointerleave")),
		svg.parentElement.querySelector(".ends span").innerText.startsWith("peak")))(document.querySelector("[data-strategy=identity] svg"))`)
	p.shot("rates")
	p.picture("page", 1200, 1290)
	p.click("[data-past=true]")
	p.until("it is pressed", `document.querySelector("[data-past=true][aria-pressed=true]")`)
}

// seesBusiest looks at the names in use, one of which leads to its view.
func (p *pageTest) seesBusiest() {
	// More than any other name has.
	must(p.t)(p.node.Ids.NextIdentity(p.ctx, &idnodev1.NextIdentityRequest{Name: "invoices", Count: 1000}))
	p.open("overview")
	p.sees(".busiest", "orders/", "invoices")
	p.until("ten names at most", `document.querySelectorAll(".busiest tbody tr").length <= 10`)
	p.clickFor(".busiest tr[data-name=invoices] a", "h1", "Identities")
}

// load takes ids of several kinds at the node until it is stopped. Calls may fail
// while the leader changes; what the page shows of the others is looked at.
func (p *pageTest) load() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = p.node.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "invoices"})
			if i%3 == 0 {
				_, _ = p.node.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "orders/", Count: int64(1 + i%17)})
				_, _ = p.node.Ids.Generate(ctx, &idnodev1.GenerateRequest{Count: int64(1 + i%5)})
			}
			if i%20 == 0 {
				_, _ = p.node.Ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "orders"})
				_, _ = p.node.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/ayende"})
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
