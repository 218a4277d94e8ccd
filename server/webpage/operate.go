package webpage

import (
	"bufio"
	"context"
	"net/http"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/server/service"
)

// changeTimeout bounds a change of the cluster, so that its end is heard before the
// server's bound of an answer.
const changeTimeout = 10 * time.Second

// noClusterRight is the reason why a caller cannot change the cluster.
const noClusterRight = "You have no right to do that: it takes the right cluster."

// noTransfer says why leadership cannot be transferred to a member; empty if it can.
func noTransfer(m service.Member, s service.Status, have rights.Right) string {
	switch {
	case have&rights.Cluster == 0:
		return noClusterRight
	case !s.HasQuorum:
		return "There is no quorum."
	case m.Role == service.RoleLeader:
		return "It leads."
	case !votes(m):
		return "It does not vote."
	case !m.Reachable:
		return "It does not answer."
	case m.StorageFull:
		return "Its disk is nearly full."
	}
	return ""
}

// noRemoval says why a member cannot be removed from the page; empty if it can. One
// that answers is never removed here: a slip would cost a node.
func noRemoval(m service.Member, s service.Status, have rights.Right) string {
	switch {
	case have&rights.Cluster == 0:
		return noClusterRight
	case m.Reachable:
		return "It answers. Only a member that is gone is removed here; for others there is: idnode cluster remove."
	case !s.HasQuorum:
		return "There is no quorum."
	}
	return ""
}

type memberRequest struct {
	request
	Tag string `json:"tag"`
}

type leaderAnswer struct {
	Leader string `json:"leader"`
}

func (p *Page) transferLeadership(r *http.Request, body memberRequest) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	leader, err := p.service.Transfer(ctx, body.Tag)
	return leaderAnswer{leader}, err
}

// removeMember removes a member that does not answer, and never by force.
func (p *Page) removeMember(r *http.Request, body memberRequest) (any, error) {
	for _, m := range p.service.GetStatus().Members {
		if m.Tag == body.Tag && m.Reachable {
			return nil, &problem{
				Status: http.StatusConflict, Reason: service.ReasonInvalidRequest, Field: "tag",
				Message: "member " + m.Tag + " answers; the page removes only what is gone",
			}
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	_, err := p.service.RemoveMember(ctx, body.Tag, false)
	return name{Name: body.Tag}, err
}

type setting struct {
	Key         string `json:"key"`
	Value       int64  `json:"value,string"`
	Default     int64  `json:"default,string"`
	Description string `json:"description"`
}

func (p *Page) settings(r *http.Request) (any, error) {
	res, err := p.service.ListSettings(r.Context(), service.Stale)
	return listOf(res, func(s service.Setting) setting { return setting(s) }), err
}

func (p *Page) roles(r *http.Request) (any, error) {
	res, err := p.service.GetRoles(r.Context(), service.Stale)
	if err != nil {
		return nil, err
	}
	// JSON has null for a list that is nil.
	return service.Roles{Roles: append([]rights.Role{}, res.Roles.Roles...), Limits: append([]rights.Limit{}, res.Roles.Limits...)}, nil
}

type backupRequest struct {
	request
	// Stale takes what this node has, without a quorum.
	Stale bool `json:"stale"`
}

// backup answers with a backup file. One that breaks off ends the connection, so that
// it never looks whole.
func (p *Page) backup(w http.ResponseWriter, r *http.Request) {
	var body backupRequest
	if err := decode(r, &body); err != nil {
		writeError(w, err)
		return
	}
	consistency := service.Linearizable
	if body.Stale {
		consistency = service.Stale
	}
	out := &download{w: w}
	pieces := bufio.NewWriterSize(out, pieceBytes)
	err := p.service.Backup(r.Context(), consistency, pieces)
	if err == nil {
		err = pieces.Flush()
	}
	switch {
	case err != nil && out.begun:
		panic(http.ErrAbortHandler)
	case err != nil:
		writeError(w, err)
	}
}

const (
	// pieceBytes is how much of a file is written at once, and pieceTime how long its
	// reader may take for that.
	pieceBytes = 64 << 10
	pieceTime  = 10 * time.Second
)

// download is an answer that is a file, written in pieces.
type download struct {
	w     http.ResponseWriter
	begun bool
}

// Write implements io.Writer.
func (d *download) Write(b []byte) (int, error) {
	if !d.begun {
		d.begun = true
		setHeaders(d.w.Header())
		d.w.Header().Set("Content-Type", "application/octet-stream")
		d.w.Header().Set("Cache-Control", "no-store")
	}
	// A writer without deadlines, as in tests, needs none set.
	_ = http.NewResponseController(d.w).SetWriteDeadline(time.Now().Add(pieceTime))
	return d.w.Write(b)
}
