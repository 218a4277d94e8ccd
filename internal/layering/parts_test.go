package layering

// part is one package and what it may import beside the standard library.
type part struct {
	// folder is the package's folder below the repository's root.
	folder string
	// floor is the package's height. Every package of a lower floor may be
	// imported, but for those in not.
	floor int
	// beside has packages of the same floor that may be imported.
	beside []string
	// not has packages that stay forbidden though they are on a lower floor; a
	// folder forbids what lies below it too.
	not []string
	// modules has the import path prefixes of foreign packages allowed here.
	modules []string
	// pure says that the package reads no clock, draws nothing, touches nothing of
	// this machine, and starts no goroutine, because the nodes must agree on it.
	pure bool
}

// Import path prefixes of foreign packages. Whatever is named once below has
// one place in this program: the etag store and the Raft store alone know
// bbolt, and only cluster knows the Raft library.
const (
	bbolt      = "go.etcd.io/bbolt"
	btree      = "github.com/tidwall/btree"
	porcupine  = "github.com/anishathalye/porcupine"
	cobra      = "github.com/spf13/cobra"
	genproto   = "google.golang.org/genproto/googleapis/rpc"
	grpc       = "google.golang.org/grpc"
	grpcCodes  = "google.golang.org/grpc/codes"
	goldmark   = "github.com/yuin/goldmark"
	gorm       = "gorm.io/gorm"
	gormSqlite = "github.com/glebarez/sqlite"
	hclog      = "github.com/hashicorp/go-hclog"
	otel       = "go.opentelemetry.io"
	isatty     = "github.com/mattn/go-isatty"
	pflag      = "github.com/spf13/pflag"
	prometheus = "github.com/prometheus/client_golang"
	promModel  = "github.com/prometheus/client_model"
	pluralize  = "github.com/gertd/go-pluralize"
	protobuf   = "google.golang.org/protobuf"
	pkcs12     = "software.sslmate.com/src/go-pkcs12"
	raft       = "github.com/hashicorp/raft"
	sqlite     = "modernc.org/sqlite"
	raftBolt   = "github.com/hashicorp/raft-boltdb/v2"
	uuid       = "github.com/google/uuid"
	hdr        = "github.com/HdrHistogram/hdrhistogram-go"
	xsync      = "golang.org/x/sync"
	xsys       = "golang.org/x/sys"
	xtime      = "golang.org/x/time"
	xxhash     = "github.com/cespare/xxhash/v2"
	yaml       = "go.yaml.in/yaml/v3"
)

// parts is the building, ground floor first. A package that is in no row fails
// the test: whoever adds one decides here where it belongs.
var parts = []part{
	// Ids, ranges, counters and formats: pure, without network and clock.
	{folder: "client/docid", floor: 0, pure: true},
	{folder: "hilo", floor: 0, pure: true},
	{folder: "client/generator", floor: 0},
	{folder: "client/snowflake", floor: 0, pure: true},
	{folder: "client/snowflake/generator", floor: 0, beside: []string{"client/snowflake"}},
	{folder: "snowflake", floor: 0, pure: true, beside: []string{"client/snowflake", "internal/statehash"}, modules: []string{btree}},
	{folder: "identity", floor: 0, pure: true, beside: []string{"client/docid"}},
	{
		folder: "series", floor: 0, pure: true, modules: []string{btree},
		beside: []string{"client/docid", "internal/statehash", "proto/raftlog/v1", "series/format"},
	},
	{folder: "series/format", floor: 0, pure: true, beside: []string{"client/docid"}},
	{folder: "etag", floor: 0},
	{
		folder: "etag/boltetag", floor: 0,
		beside: []string{"etag", "internal/boltfile", "internal/crc32c", "internal/failpoint", "internal/syncdir"}, modules: []string{bbolt},
	},
	{folder: "client/idnodev1", floor: 0, modules: []string{grpc, protobuf}},
	{folder: "proto/raftlog/v1", floor: 0, modules: []string{protobuf}},
	{folder: "proto/peer/v1", floor: 0, beside: []string{"proto/raftlog/v1"}, modules: []string{grpc, protobuf}},
	{
		folder: "backup", floor: 0, beside: []string{"internal/crc32c", "internal/exactproto", "internal/wire", "proto/raftlog/v1", "raftlog"},
		modules: []string{protobuf},
	},
	{folder: "internal/wire", floor: 0, pure: true, modules: []string{protobuf}},
	{folder: "raftlog", floor: 0, pure: true, beside: []string{"internal/wire", "proto/raftlog/v1"}, modules: []string{protobuf}},
	{
		folder: "fsm/op", floor: 0, pure: true,
		beside: []string{
			"identity", "internal/exactproto", "internal/outcome", "internal/wire", "proto/raftlog/v1", "series", "snowflake",
		},
		modules: []string{protobuf},
	},
	{folder: "internal/nodeid", floor: 0, pure: true},
	{folder: "internal/outcome", floor: 0},
	{folder: "internal/statehash", floor: 0, pure: true, modules: []string{xxhash}},
	{folder: "transfer/counterfile", floor: 0},
	{folder: "internal/boltfile", floor: 0, beside: []string{"internal/crc32c", "internal/dirfile", "internal/syncdir"}},
	{folder: "internal/failpoint", floor: 0},
	{folder: "internal/freeport", floor: 0},
	{folder: "internal/bytesize", floor: 0},
	{folder: "internal/logqueue", floor: 0},
	{folder: "server/budget", floor: 0, modules: []string{xtime}},
	{folder: "server/hostcheck", floor: 0},
	{folder: "server/heap", floor: 0},
	{folder: "server/history", floor: 0},
	{folder: "server/sdnotify", floor: 0},
	{folder: "access/audit", floor: 0, beside: []string{"client/docid", "internal/disklock", "internal/syncdir"}},
	{
		folder: "access/rights", floor: 0, pure: true, beside: []string{"client/docid", "internal/exactproto", "proto/raftlog/v1"},
		modules: []string{protobuf},
	},
	{folder: "internal/exactproto", floor: 0, pure: true, modules: []string{protobuf}},
	{folder: "internal/fileowner", floor: 0},
	{folder: "internal/crc32c", floor: 0, pure: true},
	{folder: "internal/dirfile", floor: 0, pure: true, beside: []string{"internal/crc32c"}},
	{folder: "internal/disklock", floor: 0},
	{folder: "internal/pause", floor: 0},
	{folder: "internal/dialcause", floor: 0, pure: true},
	{folder: "docs", floor: 0, pure: true},
	{folder: "internal/nearest", floor: 0, pure: true},
	{folder: "internal/syncdir", floor: 0},
	{folder: "internal/layering", floor: 0},

	// What judges the product from outside: on the ground floor, so that it shares
	// nothing with what it judges.
	{folder: "test/history", floor: 0},
	{folder: "test/history/check", floor: 0, beside: []string{"test/history"}, modules: []string{btree, porcupine}},
	// The relation that explored worlds and simulated nodes obey. It knows the log's form.
	{folder: "test/model", floor: 0, beside: []string{"raftlog"}},
	{folder: "test/tier", floor: 0},
	{folder: "test/compat", floor: 0, modules: []string{protobuf}},
	{folder: "test/sizing", floor: 0},
	{folder: "test/cputime", floor: 0, modules: []string{xsys}},
	{folder: "test/logbuffer", floor: 0},
	{folder: "test/tracetest", floor: 0, modules: []string{otel, protobuf}},
	{folder: "test/history/cmd/idcheck", floor: 0, beside: []string{"test/history", "test/history/check"}},

	// The replicated state and the Raft node, which do not know each other.
	{folder: "fsm", floor: 1, pure: true, beside: []string{"fsm/table"}, modules: []string{btree, protobuf}},
	{folder: "test/fsmtest", floor: 1, beside: []string{"fsm"}, modules: []string{protobuf}},
	{folder: "fsm/table", floor: 1, pure: true, modules: []string{btree}},
	{folder: "cluster/apply", floor: 1, modules: []string{raft}, beside: []string{"cluster/duty", "cluster/raftguard"}},
	{folder: "cluster/commit", floor: 1, modules: []string{raft}},
	{folder: "cluster/disk", floor: 1, modules: []string{raft}},
	{folder: "cluster/duty", floor: 1, beside: []string{"cluster/member"}},
	{
		folder: "cluster/leader", floor: 1, modules: []string{protobuf, raft},
		beside: []string{
			"cluster/commit", "cluster/disk", "cluster/duty", "cluster/member", "cluster/peers", "cluster/raftguard", "cluster/readindex",
			"cluster/transport",
		},
	},
	{folder: "cluster/member", floor: 1, modules: []string{protobuf, raft}},
	{
		folder: "cluster/peers", floor: 1, modules: []string{protobuf, raft},
		beside: []string{
			"cluster/apply", "cluster/disk", "cluster/duty", "cluster/member", "cluster/quorum", "cluster/raftguard",
			"cluster/transport", "cluster/witness",
		},
	},
	{folder: "cluster/quorum", floor: 1, modules: []string{raft}},
	{folder: "cluster/raftguard", floor: 1, modules: []string{raft}, beside: []string{"cluster/duty", "cluster/member"}},
	{
		folder: "test/papertest", floor: 1, modules: []string{raft},
		beside: []string{"cluster/raftguard", "cluster/raftlogger", "cluster/transport", "cluster/witness"},
	},
	{folder: "cluster/raftlogger", floor: 1, modules: []string{hclog}},
	{folder: "cluster/readindex", floor: 1, modules: []string{raft}},
	{folder: "cluster/store", floor: 1, beside: []string{"cluster/raftlogger", "cluster/store/wal"}, modules: []string{bbolt, raft, raftBolt}},
	{folder: "cluster/store/wal", floor: 1, modules: []string{raft}},
	{
		folder: "cluster/transport", floor: 1, beside: []string{"cluster/raftguard", "cluster/raftlogger", "cluster/witness"},
		modules: []string{hclog, raft, xsys, xtime},
	},
	{folder: "cluster/witness", floor: 1},
	{
		folder: "cluster", floor: 1, modules: []string{protobuf, raft, xsync},
		beside: []string{
			"cluster/apply", "cluster/commit", "cluster/disk", "cluster/duty", "cluster/leader", "cluster/member", "cluster/peers",
			"cluster/quorum", "cluster/raftguard", "cluster/raftlogger",
			"cluster/readindex", "cluster/store", "cluster/transport", "cluster/witness",
		},
	},

	// The error of a call, which use cases return and each API writes.
	{folder: "server/apierror", floor: 1, not: []string{"cluster", "fsm"}, modules: []string{grpcCodes}},

	// The Go client, which programs outside import.
	{folder: "client", floor: 1, modules: []string{genproto, grpc, pluralize, protobuf}},

	// A load and its statistics, over the public API.
	{folder: "client/gormid", floor: 2, modules: []string{gorm}},
	{folder: "internal/bench", floor: 2, modules: []string{hdr, genproto, grpc, protobuf}},

	// What comes from a cluster into files, and from files into a cluster.
	{folder: "transfer", floor: 2, not: []string{"cluster", "etag", "fsm", "server"}, modules: []string{genproto, grpc, protobuf}},

	// The use cases, which know no Raft, and the calls between nodes.
	{
		folder: "server/service", floor: 2, beside: []string{"server/admission", "server/etags", "server/reserve"},
		not: []string{"cluster", "etag/boltetag"}, modules: []string{protobuf, uuid, xsync, xtime},
	},
	{folder: "server/admission", floor: 2, not: []string{"cluster", "etag"}, modules: []string{xtime}},
	{folder: "server/reserve", floor: 2, not: []string{"cluster"}, modules: []string{protobuf}},
	{folder: "server/etags", floor: 2, not: []string{"cluster", "etag/boltetag"}, modules: []string{protobuf}},
	{folder: "server/calllog", floor: 2},
	{folder: "server/peer", floor: 2, not: []string{"fsm", "etag"}, modules: []string{genproto, grpc, protobuf}},

	// What the outside sees of one node.
	{folder: "server/grpcapi", floor: 3, not: []string{"cluster", "fsm", "etag/boltetag"}, modules: []string{genproto, grpc, protobuf}},
	{folder: "server/httpapi", floor: 3, not: []string{"cluster", "fsm", "etag"}, modules: []string{protobuf}},
	{folder: "server/jsonapi", floor: 3, not: []string{"cluster", "fsm", "etag"}, modules: []string{genproto, grpc, protobuf}},
	{
		folder: "server/webpage", floor: 3, beside: []string{"server/jsonapi"}, not: []string{"cluster", "fsm", "etag"},
		modules: []string{goldmark, protobuf},
	},
	{folder: "server/config", floor: 3, not: []string{"fsm", "etag"}, modules: []string{pflag, yaml}},
	{folder: "server/metrics", floor: 3, not: []string{"etag/boltetag"}, modules: []string{grpc, prometheus, promModel, protobuf}},
	{folder: "server/tracing", floor: 3, not: []string{"fsm", "etag"}, modules: []string{grpc, otel}},
	{folder: "server/tlsconf", floor: 3, not: []string{"fsm", "etag"}, modules: []string{grpc, pkcs12}},

	// One server put together, the last resort of one that is not, and the program around
	// them.
	{folder: "server/recovery", floor: 4, not: []string{"etag"}},
	{folder: "server/node", floor: 4, modules: []string{grpc, protobuf, raft, xsync, xsys}},
	{folder: "cmd/idnode", floor: 5, modules: []string{cobra, genproto, grpc, isatty, pflag, protobuf, uuid, xsync, yaml}},
	{
		folder: "examples/go-orders", floor: 5, not: []string{"cluster", "fsm", "server", "etag", "internal"},
		modules: []string{gorm, gormSqlite},
	},
	{folder: "examples/invoicing", floor: 5, not: []string{"cluster", "fsm", "server", "etag", "internal"}, modules: []string{sqlite}},
	{folder: "spec", floor: 5},
	{folder: "test/mutants/patches", floor: 5},
	{folder: "test/mutants", floor: 5, beside: []string{"test/mutants/patches"}},
	{folder: "test/e2e/edge", floor: 5},
	{
		folder: "test/e2e/harness", floor: 5, beside: []string{"test/e2e/edge", "test/mutants/patches"},
		modules: []string{genproto, grpc, protobuf, xsys},
	},
	{folder: "test/e2e/matrix", floor: 5, beside: []string{"test/e2e/edge", "test/e2e/harness"}, modules: []string{genproto, grpc, protobuf}},
	{folder: "test/e2e/clients", floor: 5, beside: []string{"test/e2e/harness"}, modules: []string{genproto, grpc, pluralize, protobuf}},
	{folder: "test/e2e", floor: 5, beside: []string{"test/e2e/edge", "test/e2e/harness"}, modules: []string{genproto, grpc, protobuf}},
}
