package httpapi

import (
	"net/http"
	"runtime/debug"

	"github.com/idnode/idnode/internal/service"
)

// clientConfiguration says that there is none: clients keep their own.
func (a *api) clientConfiguration(w http.ResponseWriter, _ *http.Request, _ *params) error {
	type configuration struct{ Disabled bool }
	writeJSON(w, http.StatusOK, struct {
		Etag          int64
		Configuration configuration
	}{0, configuration{Disabled: true}})
	return nil
}

// statistics is what a client asks of a node that has failed, to see whether it
// may come back to it. A node that is cut off would only fail it again.
func (a *api) statistics(w http.ResponseWriter, _ *http.Request, _ *params) error {
	status := a.service.GetStatus()
	if err := healthy(status); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		CountOfDocuments, CountOfIndexes int64
		LastDocEtag                      uint64
		DatabaseID                       string `json:"DatabaseId"`
		Is64Bit                          bool
		Indexes                          []struct{}
	}{CountOfDocuments: int64(status.Counts.HiLos), LastDocEtag: status.StateIndex, DatabaseID: status.ClusterID, Is64Bit: true, Indexes: []struct{}{}})
	return nil
}

// healthCheck is what newer clients ask instead of the statistics. The answer has
// no body: one of them takes any for an error.
func (a *api) healthCheck(w http.ResponseWriter, _ *http.Request, _ *params) error {
	if err := healthy(a.service.GetStatus()); err != nil {
		return err
	}
	setHeaders(w)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	return nil
}

// healthy returns an error if clients had better stay away from the node.
func healthy(status service.Status) error {
	if status.HasQuorum {
		return nil
	}
	return &service.Error{
		Code: service.Unavailable, Reason: service.ReasonNoQuorum, Message: "the node is not in touch with a majority",
	}
}

func (a *api) buildVersion(w http.ResponseWriter, _ *http.Request, _ *params) error {
	version := a.service.GetStatus().Version
	writeJSON(w, http.StatusOK, struct {
		BuildVersion                            int
		ProductVersion, CommitHash, FullVersion string
	}{0, version, commit(), "idnode " + version})
	return nil
}

// commit is the revision the program was built from, or "".
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
