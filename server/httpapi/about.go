package httpapi

import (
	"net/http"

	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/service"
)

// clientConfiguration returns no configuration: clients keep their own.
func (a *api) clientConfiguration(w http.ResponseWriter, _ *http.Request, _ *params) error {
	type configuration struct{ Disabled bool }
	writeJSON(w, http.StatusOK, struct {
		Etag          int64
		Configuration configuration
	}{0, configuration{Disabled: true}})
	return nil
}

// statistics is what a client asks of a node that has failed, to see whether it
// may come back to it. A node that is cut off would only fail it again. There are no documents, and how
// many counters all databases have is not everybody's business.
func (a *api) statistics(w http.ResponseWriter, _ *http.Request, _ *params) error {
	status := a.service.Status()
	if err := healthy(status); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		CountOfDocuments, CountOfIndexes int64
		LastDocEtag                      uint64
		DatabaseID                       string `json:"DatabaseId"`
		Is64Bit                          bool
		Indexes                          []struct{}
	}{
		LastDocEtag: status.StateIndex,
		DatabaseID:  status.ClusterID, Is64Bit: true, Indexes: []struct{}{},
	})
	return nil
}

// healthCheck is what newer clients ask instead of the statistics. The answer has
// no body: one of them takes any for an error.
func (a *api) healthCheck(w http.ResponseWriter, _ *http.Request, _ *params) error {
	if err := healthy(a.service.Status()); err != nil {
		return err
	}
	setHeaders(w)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	return nil
}

func healthy(status service.Status) error {
	switch {
	case !status.HasQuorum:
		return &apierror.Error{
			Code: apierror.CodeUnavailable, Reason: apierror.ReasonNoQuorum, Message: "the node is not in touch with a majority",
		}
	case status.Unserved != nil:
		return &apierror.Error{Code: apierror.CodeUnavailable, Reason: apierror.ReasonLeaderUnreachable, Message: status.Unserved.Error()}
	}
	return nil
}

type build struct {
	BuildVersion                            int
	ProductVersion, CommitHash, FullVersion string
}

func buildOf(status service.Status) build {
	return build{0, status.Version, service.Revision(), "idnode " + status.Version}
}

func (a *api) buildVersion(w http.ResponseWriter, _ *http.Request, _ *params) error {
	writeJSON(w, http.StatusOK, buildOf(a.service.Status()))
	return nil
}

// nodeInfoAnswer has the fields of RavenDB's; those that idnode has no use for are empty.
type nodeInfoAnswer struct {
	NodeTag               string
	TopologyID            string `json:"TopologyId"`
	Certificate           *string
	ClusterStatus         string
	NumberOfCores         int
	InstalledMemoryInGb   float64
	UsableMemoryInGb      float64
	BuildInfo             build
	ServerID              string `json:"ServerId"`
	CurrentState          string
	HasFixedPort          bool
	ServerSchemaVersion   int
	LastStateChangeReason string
}

func (a *api) nodeInfo(w http.ResponseWriter, _ *http.Request, _ *params) error {
	status := a.service.Status()
	writeJSON(w, http.StatusOK, nodeInfoAnswer{
		NodeTag: status.SelfTag, TopologyID: status.ClusterID, ClusterStatus: stateName(status), BuildInfo: buildOf(status),
		ServerID: guidOf(status.SelfID), CurrentState: stateName(status), HasFixedPort: true,
	})
	return nil
}

// guidOf writes 32 hexadecimal digits in the form of a GUID.
func guidOf(id string) string {
	if len(id) != 32 {
		return id
	}
	return id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
}
