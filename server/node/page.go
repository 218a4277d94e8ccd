package node

import "github.com/idnode/idnode/server/page"

// openPage puts the page for people on the HTTP port.
func (n *Node) openPage() {
	page.New(page.Config{Service: n.service, Issued: n.metrics.Issued}).Handle(n.http.Handle)
}
