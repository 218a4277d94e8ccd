// Package audit keeps a node's record of changes of the cluster and of numbers taken back: the
// caller, the time, the caller's address, and the values before and after.
//
// The record is a file of lines, one JSON object each. Every line holds the hash of the line before it,
// and its own, so that a line that was changed, removed or inserted is found: see Verify. Lines cut off
// the end, or a rewritten file, are found only with a hash that was kept elsewhere. After a file was
// moved away or emptied, the next file's first line continues the chain.
//
// The package does not interpret the recorded values.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/idnode/idnode/client/docid"
)

// Events that are recorded.
const (
	EventSeed           = "identity.seed"
	EventDelete         = "identity.delete"
	EventForget         = "identity.forget"
	EventDatabaseDelete = "database.delete"
	EventSetHiLo        = "hilo.set"
	EventRoles          = "roles.set"
	EventSetting        = "setting.set"
	EventAddMember      = "member.add"
	EventRemoveMember   = "member.remove"
	EventSetWatcher     = "member.watcher"
	EventJoinToken      = "join-token.create"
	// Those of series of document numbers: Name is the series.
	EventSeriesDefine    = "series.define"
	EventSeriesDelete    = "series.delete"
	EventSeriesEnter     = "series.enter"
	EventSeriesVoid      = "series.void"
	EventSeriesRelease   = "series.release"
	EventSeriesClose     = "series.close"
	EventSeriesAllot     = "series.allot"
	EventSeriesResume    = "series.resume"
	EventSeriesReconcile = "series.reconcile"
	// Those of pools and their workers: Name is the pool, and of a worker After or Before a Leased.
	EventPoolDefine    = "pool.define"
	EventWorkerAcquire = "worker.acquire"
	EventWorkerEvict   = "worker.evict"
	EventRestore       = "cluster.restore"
	// EventBackup is that of a backup; After of the second line is a Copied.
	EventBackup  = "cluster.backup"
	EventRecover = "cluster.recover"
	// EventDenied is a call for which the caller had no right; After has the refusal's text.
	EventDenied = "call.denied"
	// EventTorn means that an unfinished line, left by a crash or a failed write, was cut off the
	// end of the file; Before is its length in bytes.
	EventTorn = "audit.torn"
	// EventContinued is the event of the first line of a file that continues the chain of an
	// earlier file; After has the reason.
	EventContinued = "audit.continued"
)

// Outcomes of a recorded call. A line is written before the call, and another line after it: a
// crash between them leaves the first.
const (
	OutcomeIntended = "intended"
	OutcomeDone     = "done"
	// OutcomeRefused goes with a Reason: certainly nothing was changed.
	OutcomeRefused = "refused"
	// OutcomeUnknown means that it may have been done.
	OutcomeUnknown = "unknown"
)

// Record is one line. Empty fields are left out.
type Record struct {
	// Event and Outcome are among the constants.
	Event   string `json:"event"`
	Outcome string `json:"outcome"`
	// Reason is why it was refused.
	Reason string `json:"reason,omitempty"`
	// Principal is the caller: the name in the client's certificate, or the
	// user of a command on the machine itself.
	Principal string `json:"principal"`
	// Address is where it was asked for.
	Address string `json:"address,omitempty"`
	// Node is the tag of the node that took the call.
	Node string `json:"node,omitempty"`
	// Database and Name identify the changed object; the name of a member is its tag.
	Database string `json:"database,omitempty"`
	Name     string `json:"name,omitempty"`
	// Before and After are the values before and after the change, or the intended one.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`
	// Force means that a removal was forced, without regard to the remaining voters, or a seed,
	// without regard to the value before, or that a pool's leases were ended.
	Force bool `json:"force,omitempty"`
	// Index is the log index at which it was done.
	Index uint64 `json:"index,omitempty"`
	// Call is the denied call, and LeftOut the number of denied calls since the last recorded one
	// that were not recorded.
	Call    string `json:"call,omitempty"`
	LeftOut int64  `json:"left_out,omitempty"`
}

// Leased is a worker's lease: whose it is, and when its window ends.
type Leased struct {
	Worker    int       `json:"worker"`
	Holder    string    `json:"holder"`
	Principal string    `json:"principal,omitempty"`
	Until     time.Time `json:"until"`
}

// Copied is the part of the state that left the node: all of it if the outcome is done.
type Copied struct {
	Bytes int64 `json:"bytes"`
}

// line is a record as it is in the file. The hash of the line follows it.
type line struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	Prev string    `json:"prev"`
	Record
}

// ErrBroken is wrapped in the errors of Open and Verify for a file whose chain of lines is broken.
var ErrBroken = errors.New("the audit log is broken")

// The hash is at the end of a line, and is computed over the rest.
const (
	hashKey    = `,"hash":"`
	hashEnd    = "\"}\n"
	hashDigits = 2 * sha256.Size
	hashBytes  = len(hashKey) + hashDigits + len(hashEnd)
)

func encode(l line) (text []byte, hash string, err error) {
	body, err := json.Marshal(l)
	if err != nil {
		return nil, "", err
	}
	body = []byte(docid.Escape(string(body))) // The same value, and fit for a terminal.
	sum := sha256.Sum256(body)
	hash = hex.EncodeToString(sum[:])
	text = append(bytes.TrimSuffix(body, []byte("}")), hashKey+hash+hashEnd...)
	return text, hash, nil
}
