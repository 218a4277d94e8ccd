package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// losesQuorum: the page says so while it is open, shows what a change gets then,
// and goes on by itself afterwards.
func (p *pageTest) losesQuorum() {
	p.open("make")
	p.cluster.Isolate(p.node)
	p.sees("[data-alarm=IdnodeNoQuorum]", "No quorum.")
	p.sees(".where", "no quorum")
	p.template("invoices|", "Identity")
	p.off(".forms form:nth-child(1) .main", "There is no quorum.")
	p.sees(".forms form:nth-child(1) .reason", "There is no quorum.")
	p.clickFor(".forms form:nth-child(1) .main", "#said", "There is no quorum.")
	p.makes("users/", "Server-side id", `^users\/\d{19}-A$`)
	p.shot("no-quorum-make")
	p.open("identities")
	p.sees("tbody", "customer-00")
	p.off("tr[data-name=customer-00] .danger", "There is no quorum.")
	p.off(".list .tools .main", "There is no quorum.")
	p.open("overview")
	p.sees(".member[data-tag=A] .state", "cut off")
	p.sees(".member[data-tag=B] .state", "no answer")
	p.sees(".member[data-tag=C] .state", "no answer")
	p.sees("#alarms", "alarm")
	p.sees("#trouble", "Member B does not answer.")
	p.off(".member[data-tag=B] .lead-to", "There is no quorum.")
	p.off(".member[data-tag=B] .remove", "There is no quorum.")
	p.shot("no-quorum")
	p.open("operate")
	p.sees("[aria-label=Backup] .hint", "may lack the newest ids")
	p.off("[aria-label=Backup] .main", "")
	p.sees("[data-about=settings]", "max-identities")
	p.cluster.Heal()
	p.open("overview")
	p.gone(".trouble")
	p.sees(".where", "quorum")
	p.until("all are up to date", `document.querySelectorAll(".member .state.good").length === 3`)
	p.open("make")
	p.makes("back|", "Identity", `^back\/1$`)
}

// losesNode: the page says that its node hangs, or is gone, and goes on when it is
// back.
func (p *pageTest) losesNode() {
	p.open("overview")
	p.node.Process.Signal(p.t, syscall.SIGSTOP)
	p.sees(".trouble.unreached", "This node does not answer.")
	p.node.Process.Signal(p.t, syscall.SIGCONT)
	p.gone(".trouble")
	p.node.Process.Kill()
	p.sees(".trouble.unreached", "This node does not answer.")
	p.sees(".where", "no answer")
	p.until("what was last seen", `document.querySelectorAll(".member").length === 3`)
	p.shot("no-answer")
	p.node.Start(p.whole)
	p.node.WaitReady(p.t)
	p.gone(".trouble")
	p.sees(".where", "quorum")
}

// goesToAnother follows the link of another node to its own page.
func (p *pageTest) goesToAnother() {
	p.open("overview")
	p.sees(".member[data-tag=B] .state", "up to date")
	p.leadsTo("http://" + p.cluster.Nodes[1].HTTP)
	p.clickFor(".member[data-tag=B] a", ".where", "quorum")
	p.sees(".member[data-tag=B]", "this node")
	p.until("no link to itself", `!document.querySelector(".member[data-tag=B] a").href`)
	if got := ask[string](p.browser, "location.origin"); got != p.origin {
		p.t.Errorf("the page is that of %s, want %s", got, p.origin)
	}
	// What the page of a node that is gone offers instead.
	p.cluster.Nodes[1].Process.Kill()
	p.sees(".trouble.unreached", "Ask another: A C")
	p.leadsTo("http://" + p.node.HTTP)
	p.clickFor(".trouble a", ".member[data-tag=A]", "this node")
	p.cluster.Nodes[1].Start(p.whole)
	p.cluster.Nodes[1].WaitReady(p.t)
	p.until("all are up to date", `document.querySelectorAll(".member .state.good").length === 3`)
}

// removesDeadMember removes a member for good that does not answer, but not one that
// does, or that is back once the dialog is open.
func (p *pageTest) removesDeadMember() {
	p.open("overview")
	p.off(".member[data-tag=C] .remove", "It answers.")
	p.cluster.Nodes[2].Process.Kill()
	p.sees("[data-alarm=IdnodeMemberUnreachable]", "Member C does not answer.")
	p.off(".member[data-tag=C] .lead-to", "It does not answer.")
	p.off(".member[data-tag=C] .remove", "")
	for _, column := range []string{"ids", "commit", "disk", "certificate"} {
		p.sees(cell("C", column), "–")
	}
	p.colours("dark")
	p.until("for how long", `parseInt(document.querySelector("#trouble [aria-hidden]").innerText.slice(4)) >= 3`)
	p.until("where it is said what to do", `document.querySelector("[data-alarm=IdnodeMemberUnreachable] a").href.endsWith("/docs/operate/alarms.md#idnodememberunreachable")`)
	p.shot("silent-member")
	p.picture("page-dark", 1200, 840)
	p.colours("light")
	p.clickFor(".member[data-tag=C] .remove", "dialog", "Remove member C?")
	p.off("dialog .danger", "Type C first.")
	p.fill("dialog input", "b")
	p.off("dialog .danger", "Type C first.")
	p.keys(kb.Enter)
	p.sees("dialog .failure", "Type C first.")
	p.fill("dialog input", "c")
	p.off("dialog .danger", "")
	p.shot("remove")
	p.cluster.Nodes[2].Start(p.whole)
	p.cluster.Nodes[2].WaitReady(p.t)
	p.sees(".member[data-tag=C] .state", "up to date")
	p.clickFor("dialog .danger", "dialog .failure", "Member C answers; the page removes only what is gone. (INVALID_REQUEST, tag)")
	p.leaves()
	p.cluster.Nodes[2].Process.Kill()
	p.off(".member[data-tag=C] .remove", "")
	p.cancelsRemoval()
	p.click(".member[data-tag=C] .remove")
	p.fill("dialog input", "c")
	p.clickFor("dialog .danger", "#said", "Member C is removed.")
	p.gone(".member[data-tag=C]")
	p.gone("[data-alarm=IdnodeMemberUnreachable]")
	p.sees(".figures", "2 of 2 voters")
}

// cancelsRemoval closes the dialog while the page still looks whether the member is gone: then it
// is not removed.
func (p *pageTest) cancelsRemoval() {
	ask[bool](p.browser, `(window.asked = [], window.ownFetch = fetch, window.fetch = (url, options) => {
		asked.push(String(url));
		return String(url).endsWith("/overview") && !window.goOn ? new Promise((done) => { window.goOn = () => done(ownFetch(url, options)); }) : ownFetch(url, options);
	}, true)`)
	p.click(".member[data-tag=C] .remove")
	p.fill("dialog input", "c")
	p.click("dialog .danger")
	p.until("the page looks", "window.goOn")
	p.leaves()
	ask[bool](p.browser, `(window.goOn(), true)`)
	// It asks for the overview again, each second: once more, and the removal would have come.
	p.until("the page went on", `asked.filter(url => url.includes("/overview")).length > 3`)
	if asked := ask[string](p.browser, `asked.join()`); strings.Contains(asked, "RemoveMember") {
		p.t.Errorf("it asked for %s", asked)
	}
	ask[bool](p.browser, `(window.fetch = ownFetch, true)`)
}

// foreign is a page of somebody else that would change things at a node, in every
// way that a page has, and show the node's page in a frame.
const foreign = `<!doctype html><title>foreign</title>
<iframe name="target" hidden></iframe>
<iframe id="frame" src="%[1]s/"></iframe>
<form method="post" enctype="text/plain" target="target" action="%[1]s/idnode.v1.IdsService/SeedIdentity">
<input name='{"name":"form","value":"1","x":"' value='"}'></form>
<script>
const send = (name, options) => fetch("%[1]s/idnode.v1.IdsService/SeedIdentity", {
	method: "POST", body: JSON.stringify({name, value: "1"}), ...options,
}).then(r => r.type, () => "refused");
const json = {"Content-Type": "application/json"};
document.forms[0].submit();
navigator.sendBeacon("%[1]s/idnode.v1.IdsService/SeedIdentity",
	new Blob([JSON.stringify({name: "beacon", value: "1"})], {type: "text/plain"}));
Promise.all([
	send("plain", {mode: "no-cors"}), send("json", {headers: json}), send("cookies", {headers: json, credentials: "include"}),
	send("quiet", {mode: "no-cors", headers: json}),
	fetch("%[1]s/page/api/overview").then(r => r.text(), () => "refused"),
]).then(results => { window.results = results; });
</script>`

// TestPageFromForeignPages opens pages of other origins, which try to change
// something at a node and to read from it, in a real browser.
func TestPageFromForeignPages(t *testing.T) {
	tier.Long(t)
	chromium(t)
	c := harness.StartCluster(t, harness.Config{Size: 1})
	n := c.Nodes[0]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, foreign, "http://"+n.HTTP)
	}))
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	b := openBrowser(t, "http://"+n.HTTP)
	for name, origin := range map[string]string{"another port": "http://127.0.0.1:" + port, "another site": "http://localhost:" + port} {
		b.do(chromedp.Navigate(origin + "/"))
		b.until("what became of it", "window.results && document.readyState === 'complete'")
		results := ask[[]string](b, "window.results")
		for _, got := range results {
			if got != "opaque" && got != "refused" {
				t.Errorf("%s: an answer was to be read: %s", name, got)
			}
		}
		if framed := ask[bool](b, `!!document.getElementById("frame").contentDocument?.querySelector("main")`); framed {
			t.Errorf("%s: the page is in a frame", name)
		}
		if faults := fmt.Sprint(b.refused()); !strings.Contains(faults, "frame-ancestors") {
			t.Errorf("%s: nothing refused the frame: %s", name, faults)
		}
	}
	b.do(chromedp.Navigate(b.origin + "/"))
	b.sees(".where", "quorum")
	ctx, cancel := context.WithTimeout(context.Background(), seen)
	defer cancel()
	if all, err := n.Ids.ListIdentities(ctx, &idnodev1.ListIdentitiesRequest{}); err != nil || len(all.Identities) > 0 {
		t.Errorf("a foreign page made %v, %v", all.GetIdentities(), err)
	}
	b.open("identities")
	b.sees("main", "No identity yet")
	b.refused() // Beacons of the pages before may still have been under way.
}
