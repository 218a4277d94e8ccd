package browser

import (
	"fmt"
	"strings"
)

// finds: what an id or a name is, whatever its kind, and who holds it.
func (p *pageTest) finds() {
	p.open("find")
	p.looksFor("invoices/2")
	found := func(kind, words string) {
		p.t.Helper()
		p.until(fmt.Sprintf("%s: %s", kind, words),
			fmt.Sprintf(`(document.querySelector("[data-kind=\"%s\"]")?.innerText ?? "").includes(%q)`, kind, words))
	}
	found("the value of an identity", "so it was given, or stepped over")
	p.sees(".missing", "it is not a GUID, ", "a claim")
	for _, tc := range []struct{ text, kind, words string }{
		{"INVOICES/999999", "the value of an identity", "so it was not given yet."},
		{"tickets/7-A", "the number of a HiLo range", "of the tag tickets, given through node A, at "},
		{"orders/999999-A", "the number of a HiLo range", "No range of the tag orders had it yet."},
		{"orders/0000000000000000007-A", "a server-side id", "it was given, or left out at a crash."},
		{"orders/0000000000009000007-A", "a server-side id", "it was not given yet."},
		{"orders/0000000000000000007-B", "a server-side id", "whose own counter only its page knows."},
		{"users/OREN@example.org", "a claim", "users/oren@example.org is claimed."},
		{"INV-2026-0001", "a document's number or key", "invoices: INV-2026-0001 is that of doc-1: confirmed"},
		{"doc-2", "a document's number or key", "invoices: INV-2026-0002 is that of doc-2: open"},
		{"invoices|", "the name of an identity", "invoices is an identity."},
		{"orders", "a HiLo tag", "Its Max is"},
		{"invoices", "the name of a series", "with 2 keys"},
		{"shop", "a database", "shop is a database."},
		{"9f0c2d1e-0000-4000-8000-000000000000", "a GUID", "No node remembers those."},
		{oddNames[0], "a claim", oddNames[0] + " is claimed."},
		{oddNames[1], "the name of an identity", oddNames[1] + " is an identity."},
	} {
		p.looksFor(tc.text)
		found(tc.kind, tc.words)
	}
	for _, text := range []string{"nothing/of/it", strings.Repeat("9", 40) + "|\\/" + strings.Repeat("9", 40)} {
		p.looksFor(text)
		p.until("nothing", `document.querySelectorAll(".found li").length === 0 && document.querySelector(".missing").innerText.includes("it is not")`)
	}
	p.shot("find")
}

// seesEvents looks, after a lost quorum, at what the node saw of it.
func (p *pageTest) seesEvents() {
	p.open("events")
	p.sees("main", "The node was started.", " leads.", "No quorum.", "Over: No quorum.",
		"This node keeps no audit log: its setting audit names no file.")
	p.shot("events")
	p.open("overview")
	p.until("a mark of the alarm", `[...document.querySelectorAll("[data-strategy=identity] .event.alarm title")].some(e => e.textContent.endsWith("No quorum."))`)
	p.until("a mark of the leader", `document.querySelector("[data-strategy=identity] .event.leader")`)
}
