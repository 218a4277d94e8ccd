package webpage

import (
	"net/http"
	"time"

	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	"github.com/idnode/idnode/server/history"
	"github.com/idnode/idnode/server/jsonapi"
	"github.com/idnode/idnode/server/service"
)

// Config is what a Page is made of. All fields are needed.
type Config struct {
	Service *service.Service
	// Public is the API that makes the page's other calls. Its errors are the page's.
	Public *jsonapi.API
	// Issued returns how many ids the node has handed out since it was started, by
	// strategy.
	Issued func() map[string]uint64
	// Recent returns what the node did in its last seconds.
	Recent func() *peerv1.Figures
	// Busiest counts the names in use.
	Busiest *history.Busiest
}

// Page answers for the page's files and its calls. It is safe for concurrent
// use.
type Page struct {
	service *service.Service
	public  *jsonapi.API
	issued  func() map[string]uint64
	recent  func() *peerv1.Figures
	busiest *history.Busiest
	past    history.History
	// began is what the time of the statistics is counted from.
	began time.Time
}

// New returns a Page.
func New(cfg Config) *Page {
	return &Page{
		service: cfg.Service, public: cfg.Public, issued: cfg.Issued, recent: cfg.Recent, busiest: cfg.Busiest, began: time.Now(),
	}
}

// Handle adds the page by handle, which takes patterns of http.ServeMux.
func (p *Page) Handle(handle func(pattern string, handler http.Handler)) {
	p.handleAssets(handle)
	p.handleCalls(handle)
}
