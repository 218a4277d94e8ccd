package browser

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// cell selects a cell of a node.
func cell(tag, column string) string {
	return fmt.Sprintf(".member[data-tag=%s] [data-column=%s]", tag, column)
}

// seesNodes looks at all nodes in one table, as they were at one moment.
func (p *pageTest) seesNodes() {
	p.open("overview")
	stop := p.load()
	p.until("rates of this node", fmt.Sprintf(`parseFloat(document.querySelector(%q).innerText) > 0`, cell("A", "ids")))
	for _, tag := range []string{"A", "B", "C"} {
		p.sees(cell(tag, "disk"), "free")
		p.sees(cell(tag, "certificate"), "–") // There is no TLS.
		p.until("the link of "+tag, fmt.Sprintf(`document.querySelector(".member[data-tag=%s] a").href === %q`, tag, p.pageOf(tag)))
	}
	p.sees(cell("A", "commit"), "s")
	p.until("nobody seems far behind", `[...document.querySelectorAll(".member [data-column=state] .hint")].every(e => parseInt(e.innerText) < 100)`)
	p.sees(".moment", "as they were at ")
	stop()
	tags := func(want string) {
		p.t.Helper()
		p.until("the order "+want, fmt.Sprintf(`[...document.querySelectorAll(".nodes .member")].map(e => e.dataset.tag).join("") === %q`, want))
	}
	tags("ABC")
	p.click(".nodes th:first-child .sort")
	tags("CBA")
	p.sees(".nodes [aria-sort=descending]", "Node")
	p.click(".nodes th:first-child .sort")
	tags("ABC")
	p.clickFor(".places summary", ".places tr[data-tag=B]", p.cluster.Nodes[1].GRPC)
	p.click(".places summary")
}

// pageOf is where the link of a node leads; its own leads nowhere.
func (p *pageTest) pageOf(tag string) string {
	if tag == p.node.Tag {
		return ""
	}
	return "http://" + p.cluster.Nodes[tag[0]-'A'].HTTP + "/"
}

// keepsLimits types numbers that a field does not take.
func (p *pageTest) keepsLimits() {
	p.open("make")
	p.template("", "GUID")
	before := ask[int](p.browser, `document.querySelectorAll(".made > li").length`)
	for _, wrong := range []string{"0", "1.5", "1000000", "1001", "-3", "x", "1e2"} {
		p.fill("[name=count]", wrong)
		p.off(".forms form:nth-child(1) .main", "Say how many first.")
		p.sees(".field:has([name=count])", "A whole number from 1 to 1,000.")
		p.keys(kb.Enter)
		p.sees("#said", "Say how many first.")
	}
	if after := ask[int](p.browser, `document.querySelectorAll(".made > li").length`); after != before {
		p.t.Errorf("%d entries came of numbers out of bounds", after-before)
	}
	p.fill("[name=count]", "1,000")
	p.off(".forms form:nth-child(1) .main", "")
	p.click(".forms form:nth-child(1) .main")
	p.until("a thousand ids", `document.querySelectorAll(".made > li:first-child .id").length === 1000`)
	p.fill("[name=tag]", "limits")
	for _, wrong := range []string{"0", "0.5", "1048577"} {
		p.fill("[name=size]", wrong)
		p.off(".forms form:nth-child(2) .main", "Give a size, or none.")
	}
	p.fill("[name=size]", "10")
	p.click(".forms form:nth-child(2) .main")
	p.made("HiLo range", `^limits\/1-A … limits\/10-A$`)
	p.fill("[name=size]", "")
	p.fill("[name=count]", "")
	p.off(".forms form:nth-child(1) .main", "Say how many first.")
	p.fill("[name=count]", "1")
}

// sorts lists by their columns, over all pages.
func (p *pageTest) sorts() {
	p.open("identities")
	p.filters("customer-", "customer-00")
	p.click("th.number .sort")
	p.sees("tbody tr:first-child", "customer-00") // 1 is the least.
	p.click("th.number .sort")
	p.sees("tbody tr:first-child", "customer-27") // 27 × 37 is 999.
	p.sees("[aria-sort=descending]", "Last used")
	p.clickFor(".pager button:last-child", ".pager", "Page 2")
	p.until("the order goes on", `(v => v.every((n, i) => i === 0 || n <= v[i-1]))([...document.querySelectorAll("tbody .number")].map(e => parseInt(e.innerText.replace(/\D/g, ""))))`)
	p.clickFor("th:first-child .sort", ".pager", "Page 1")
	p.clickFor("th:first-child .sort", "tbody tr:first-child", "customer-44")
	p.open("claims")
	p.clickFor("th:first-child .sort", "tbody tr:first-child", "users/")
	p.sortsLongLists()
}

// sortsLongLists: a list of many pages of the API is sorted as a whole, up to a bound.
func (p *pageTest) sortsLongLists() {
	for page := range 11 {
		long := &idnodev1.DatabaseMerge{Database: "long"}
		for i := range 1000 {
			long.Claims = append(long.Claims, fmt.Sprintf("c%05d", page*1000+i))
		}
		merges(p.t, p.node, long)
	}
	p.open("claims?database=long")
	p.sees("tbody tr:first-child", "c00000")
	p.clickFor("th:first-child .sort", ".note",
		"A list of more than 10000 is shown in order of its names only; a filter makes it shorter. (INVALID_REQUEST, sort)")
	p.filters("c0", "c09999")
	p.clickFor(".pager button:last-child", "tbody tr:first-child", "c09979")
	p.open("claims?database=default")
}

// copies copies names and ids, also where browsers keep the clipboard from pages.
func (p *pageTest) copies() {
	ask[bool](p.browser, `(navigator.clipboard.writeText = async text => { window.clip = text; }, true)`)
	p.open("identities")
	p.filters(oddNames[1][:12], oddNames[1])
	p.clickFor("tbody tr:first-child .copy", "#said", "Copied a-long-name")
	p.until("the clipboard has it", fmt.Sprintf(`window.clip === %q`, oddNames[1]))
	// Without TLS and on an address of its own a page has no clipboard.
	ask[bool](p.browser, `(navigator.clipboard.writeText = () => Promise.reject(new Error("none")),
		document.addEventListener("copy", () => { window.clip = (e => e.value.slice(e.selectionStart, e.selectionEnd))(document.activeElement); }), true)`)
	p.open("make")
	p.makes("copied/id", "Semantic id", `^copied\/id$`)
	p.clickFor(".made > li:first-child .copy", "#said", "Copied copied/id.")
	p.until("the selection was copied", `window.clip === "copied/id"`)
	p.do(chromedp.Reload())
	p.sees(".where", "quorum")
}

// operates transfers leadership, also back, and takes a backup.
func (p *pageTest) operates() {
	p.open("overview")
	leader := p.cluster.Leader(p.t)
	to := p.cluster.Others(leader)[0]
	p.off(fmt.Sprintf(".member[data-tag=%s] .lead-to", to.Tag), "")
	p.clickFor(fmt.Sprintf(".member[data-tag=%s] .lead-to", to.Tag), "dialog", "Make "+to.Tag+" the leader?")
	p.clickFor("dialog .main", "#said", to.Tag+" leads.")
	p.sees(fmt.Sprintf(".member[data-tag=%s] .role", to.Tag), "Leader")
	if got := p.cluster.Leader(p.t); got != to {
		p.t.Errorf("%s leads, want %s", got.Tag, to.Tag)
	}
	p.changesVote(leader.Tag)
	p.open("operate")
	p.sees("[data-about=settings]", "max-identities")
	p.sees("[data-about=roles] .note", "There are none")
	p.sees(".lead", "You are known by no certificate.")
	p.sees(".operate .warning", "Everybody who reaches this port")
	p.sees("tr[data-name=max-name-bytes-total]", "1 GiB")
	p.until("buttons have no head", `!document.querySelector("[data-head='What to do']") && document.querySelector("th .unseen")`)
	p.shot("operate")
	p.changesSetting()
	dir := p.t.TempDir()
	must(p.t)(chromedp.Call(p.ctx, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
		Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir,
	}))
	p.clickFor(".operate .main", "#said", "The backup has ")
	harness.Eventually(p.t, seen, "a backup file", func(ctx context.Context) error {
		files, _ := filepath.Glob(filepath.Join(dir, "idnode-*.backup"))
		if len(files) != 1 {
			return fmt.Errorf("%d files", len(files))
		}
		out, err := exec.CommandContext(ctx, harness.Binary(p.t), "backup", "inspect", files[0]).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	p.do(chromedp.Reload())
	p.sees(".where", "quorum")
}

// changesVote makes a follower a watcher, and lets it vote again.
func (p *pageTest) changesVote(tag string) {
	row := fmt.Sprintf(".member[data-tag=%s] ", tag)
	for _, change := range []struct{ does, to, said, role, cannotLead string }{
		{"Demote", " to a watcher?", " is a watcher.", "Watcher", "It does not vote."},
		{"Promote", " to a voter?", " votes once it has caught up.", "Follower", ""},
	} {
		p.sees(row+".vote", change.does)
		p.clickFor(row+".vote", "dialog h2", change.does+" "+tag+change.to)
		p.clickFor("dialog .main", "#said", tag+change.said)
		p.sees(row+".role", change.role)
		p.off(row+".lead-to", change.cannotLead)
	}
}

// changesSetting changes one of the cluster's settings, but to no value that is none.
func (p *pageTest) changesSetting() {
	p.click("[aria-label='Change max-identities']")
	p.fill("dialog input", "many")
	p.off("dialog .main", "Give a whole number.")
	p.wrong("dialog input", true)
	p.fill("dialog input", "-1")
	p.clickFor("dialog .main", "dialog .failure", "(INVALID_SETTING")
	p.fill("dialog input", "123,456")
	p.wrong("dialog input", false)
	p.confirms("max-identities is 123,456.")
	p.sees("tr[data-name=max-identities] .number", "123,456")
}

// asClient returns the address of a relay that calls a node with TLS as a client: a
// browser without a person asks for no certificate.
func asClient(t *testing.T, certs, client string, n *harness.Node) string {
	t.Helper()
	target, err := url.Parse("https://" + n.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: harness.ClientTLS(t, certs, client)}
	relay := httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
	})
	t.Cleanup(func() {
		relay.Close()
		transport.CloseIdleConnections()
	})
	return relay.URL
}

// TestPageShowsRights: on the page of somebody with few rights is off what he may not
// do, and says why; the rest works. An operator sees who may do what.
func TestPageShowsRights(t *testing.T) {
	tier.Long(t)
	chromium(t)
	certs := harness.CertificatesWith(t, []string{"webshop"}, "A")
	c := harness.StartCluster(t, harness.Config{
		Size: 1, Certs: certs, Flags: []string{"--audit", filepath.Join(t.TempDir(), "audit.log")},
	})
	n := c.Nodes[0]
	operator := harness.Role("operator", "client", idnodev1.Right_RIGHT_CLUSTER)
	operator.Grants[0].Rights = append(operator.Grants[0].Rights, idnodev1.Right_RIGHT_READ, idnodev1.Right_RIGHT_GENERATE)
	readers := harness.Role("readers", "*", idnodev1.Right_RIGHT_READ)
	readers.Grants[0].Database = "default"
	shop := harness.Role("shop", "webshop", idnodev1.Right_RIGHT_GENERATE)
	shop.Grants[0].Prefix, shop.Grants[0].Boundary = "inv", new(false)
	shop.Grants[0].Rights = append(shop.Grants[0].Rights, idnodev1.Right_RIGHT_SEED)
	shop.Grants = append(shop.Grants,
		&idnodev1.RoleGrant{Database: "*", Prefix: "bill", Boundary: new(true), Rights: []idnodev1.Right{idnodev1.Right_RIGHT_SEED}},
		&idnodev1.RoleGrant{Name: "bills", Rights: []idnodev1.Right{idnodev1.Right_RIGHT_DELETE}})
	harness.SetRoles(t, n, operator, readers, shop)
	for _, name := range []string{"invoices", "bills"} {
		must(t)(n.Ids.NextIdentity(t.Context(), &idnodev1.NextIdentityRequest{Name: name}))
	}
	const none = "You have no right to "
	b := openBrowser(t, asClient(t, certs, "webshop", n))
	b.sees(cell("A", "certificate"), " days")
	b.off(".member[data-tag=A] .remove", none)
	b.sees("main", "The node remembers two hours") // What all databases hold is for those who may read them all.
	if text := b.text("main"); strings.Contains(text, "all databases together") || strings.Contains(text, "In the replicated state") {
		t.Errorf("a reader of one database sees %s", text)
	}
	b.open("make")
	b.fill("[name=template]", "bills|")
	b.off(".forms .main", none)
	b.sees(".forms .reason", none)
	b.fill("[name=template]", "invoices|")
	b.off(".forms .main", "")
	b.clickFor(".forms .main", ".made", "invoices/2")
	b.off(".forms form:nth-child(2) .main", none) // He has no ranges anywhere.
	b.open("identities")
	b.off("tr[data-name=invoices] [aria-label^=Seed]", "")
	b.off("tr[data-name=bills] [aria-label^=Seed]", none)
	b.off("tr[data-name=bills] .danger", "")
	b.off("tr[data-name=invoices] .danger", none)
	b.clickFor("tr[data-name=invoices] .danger", "#said", "it takes the right delete")
	b.gone("dialog")
	b.click("tr[data-name=invoices] [aria-label^=Seed]")
	b.fill("dialog input", "0")
	b.off("dialog .main", none)
	b.leaves()
	b.open("claims")
	b.off(".list .tools .main", none)
	b.open("operate")
	b.sees(".lead", "You are dns:webshop.")
	b.sees("[data-about=settings]", "max-identities")
	b.sees("[data-about=roles] .note", "PERMISSION_DENIED")
	b.off(".operate .main", none)
	b.off("[aria-label='Change max-identities']", none)
	b.open("events")
	b.sees("main", "The node was started.", "You have no right to read it: it takes the right cluster.")

	b.leadsTo(asClient(t, certs, "client", n))
	b.do(chromedp.Navigate(b.origin + "/#/operate"))
	b.sees(".lead", "You are dns:client.")
	b.sees("[data-about=roles] tr[data-name=shop]", "names that begin with inv", "generate, seed")
	b.off(".operate .main", none) // No role gives backup.
	b.shot("roles")
	b.open("events")
	b.sees("main", "roles.set", "call.denied")
	b.shot("audit")
}
