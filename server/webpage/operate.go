package webpage

import (
	"bufio"
	"net/http"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/service"
)

const noClusterRight = "You have no right to do that: it takes the right cluster."

func noTransfer(m service.Member, s service.Status, have rights.Right) string {
	switch {
	case have&rights.Cluster == 0:
		return noClusterRight
	case !s.HasQuorum:
		return "There is no quorum."
	case m.Role == idnodev1.Role_ROLE_LEADER:
		return "It leads."
	case !votes(m):
		return "It does not vote."
	case !m.Reachable():
		return "It does not answer."
	case m.Answer.GetStorageFull():
		return "Its disk is nearly full."
	}
	return ""
}

// noVoteChange says why a watcher cannot be promoted, or another member be demoted; empty if it can.
// The cluster judges what voters are left.
func noVoteChange(m service.Member, s service.Status, have rights.Right) string {
	switch voters, _ := votersOf(s); {
	case have&rights.Cluster == 0:
		return noClusterRight
	case !s.HasQuorum:
		return "There is no quorum."
	case m.Role == idnodev1.Role_ROLE_WATCHER && !m.Reachable():
		return "It does not answer."
	case votes(m) && voters == 1:
		return "It is the last voter."
	}
	return ""
}

// noRemoval says why a member cannot be removed from the page; empty if it can. One
// that answers is never removed here: a slip would cost a node.
func noRemoval(m service.Member, s service.Status, have rights.Right) string {
	switch {
	case have&rights.Cluster == 0:
		return noClusterRight
	case m.Reachable():
		return "It answers. Only a member that is gone is removed here; for others there is: idnode cluster remove."
	case !s.HasQuorum:
		return "There is no quorum."
	}
	return ""
}

// backup answers with a backup file. One that breaks off ends the connection: it never looks whole.
func (p *Page) backup(w http.ResponseWriter, r *http.Request) {
	var req idnodev1.BackupRequest
	if err := p.cfg.Public.Read(w, r, &req); err != nil {
		p.cfg.Public.Fail(w, err)
		return
	}
	out := &download{w: w}
	pieces := bufio.NewWriterSize(out, pieceBytes)
	err := p.cfg.Service.Backup(r.Context(), req.GetConsistency(), pieces)
	if err == nil {
		err = pieces.Flush()
	}
	switch {
	case err != nil && out.begun:
		panic(http.ErrAbortHandler)
	case err != nil:
		p.cfg.Public.Fail(w, err)
	}
}

const (
	// pieceBytes of a file are written at once, and its reader has pieceTime for them.
	pieceBytes = 64 << 10
	pieceTime  = 10 * time.Second
)

type download struct {
	w     http.ResponseWriter
	begun bool
}

func (d *download) Write(b []byte) (int, error) {
	if !d.begun {
		d.begun = true
		d.w.Header().Set("Content-Type", "application/octet-stream")
		d.w.Header().Set("Cache-Control", "no-store")
	}
	// A writer without deadlines, as in tests, needs none set.
	_ = http.NewResponseController(d.w).SetWriteDeadline(time.Now().Add(pieceTime))
	return d.w.Write(b)
}
