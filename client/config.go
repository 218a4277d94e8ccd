package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/client/docid"
)

// Defaults of Config.
const (
	// DefaultTimeout bounds a call with all its tries. It is several times as long as a
	// cluster takes to elect a new leader.
	DefaultTimeout = 10 * time.Second
	// DefaultTryTimeout bounds one try at one node. A node without a leader answers within
	// 2 s, so a node that is silent for longer is cut off.
	DefaultTryTimeout = 3 * time.Second
)

// Config configures a Client.
type Config struct {
	// Endpoints are gRPC addresses (host:port) of nodes of one cluster; at least one. They are
	// tried in order. The client learns the cluster's other nodes from them.
	Endpoints []string
	// ClusterID is the cluster's id, as 'idnode cluster status' shows it. Each call names it, and
	// nodes of another cluster refuse the call. If it is empty, the client asks all endpoints
	// before its first call. Endpoints of two clusters make every call ErrOtherCluster. A sole
	// endpoint that answers within 0.3 s is taken, until one of another cluster answers.
	ClusterID string
	// Clusters are further clusters, each with databases of its own: calls about those go
	// there, and all others to Endpoints. The clusters need not know of each other. The other
	// fields apply to all clusters.
	Clusters []Cluster
	// Database is the default database of calls; empty means "default".
	Database string
	// TLS is used for all connections; nil means connections without TLS. An empty ServerName
	// means the host of each address.
	TLS *tls.Config
	// TLSFiles names the files that connections with TLS use, and reads them again when they have
	// changed. With it TLS may be nil; if it is not, the files replace its RootCAs and Certificates.
	TLSFiles TLSFiles
	// Timeout bounds every call with all its tries, even if its context allows more; 0 means
	// DefaultTimeout.
	Timeout time.Duration
	// TryTimeout bounds one try at one node; 0 means DefaultTryTimeout, or Timeout if that is
	// shorter.
	TryTimeout time.Duration
	// FailFastAfter has calls fail at once with ErrNoEndpoint once no node has answered for that long: they do not
	// wait for their Timeout in a long outage. One call a second is still tried, and all are once a node
	// answers. 0 means that each call is tried until its time is over.
	FailFastAfter time.Duration
	// Conventions override how ids are made for Go types (reflect.TypeFor[T]());
	// see IDFor.
	Conventions map[reflect.Type]Convention
	// Label is the cluster's answer to WhoHolds for HiLo ranges of this client: at most 64
	// bytes without invisible characters. Empty means the host's name and the program's.
	Label string
	// Unshared sends every call in a message of its own. By default concurrent calls share a
	// message, and concurrent callers of an identity may take their values in one call; a lone
	// caller does not wait for others.
	Unshared bool
	// TraceParent returns the caller's span in the form of the header traceparent (W3C Trace
	// Context), "" for none; nil means that no call names a span. The span of a call on its node
	// is then a child of it. With OpenTelemetry it is
	//
	//	func(ctx context.Context) string {
	//		header := propagation.MapCarrier{}
	//		propagation.TraceContext{}.Inject(ctx, header)
	//		return header["traceparent"]
	//	}
	//
	// Callers that share a call have their first span in it. Ranges that a HiLo handle fetches
	// belong to no caller.
	TraceParent func(ctx context.Context) string
	// Logger gets a line for a node of another cluster, at warn; for each repeated call, for another leader, and for numbers that came
	// back too late, at info; for each look for the leader at debug. No line has a request or a
	// secret. Nil means none.
	Logger *slog.Logger
	// Observe is called for each event, for metrics. It is called by the goroutine of the call or
	// of the look, without a lock, so it must return soon, be safe for concurrent use, and not
	// close the client. Nil means none.
	Observe func(Event)
	// DialOptions are further options of all gRPC connections, such as interceptors and stats
	// handlers. The client's own win for credentials, the dialer, backoff, keepalive, retries,
	// service config, proxies and the size of answers. A user agent given here replaces that of
	// the client, idnode-go/ and its version. An interceptor sees an Exchange stream, not the
	// calls that it carries.
	DialOptions []grpc.DialOption
	// Dial opens connections, for tunnels and tests; nil means TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// withDefaults returns c with defaults filled in, or the error of an invalid field.
func (c Config) withDefaults() (Config, error) {
	if err := c.checkClusters(); err != nil {
		return c, err
	}
	if _, err := docid.ParseDatabase(c.Database); err != nil {
		return c, invalid(err)
	}
	host, _ := os.Hostname() // Without it the label is the program's name.
	c.Label = cmp.Or(c.Label, labelOf(host, filepath.Base(os.Args[0])))
	if _, invisible := docid.FirstInvisible(c.Label); invisible || len(c.Label) > maxLabelBytes || !utf8.ValidString(c.Label) {
		return c, invalidField("INVALID_LABEL", "label", "the label is longer than 64 bytes, has invisible characters, or is not UTF-8")
	}
	if c.Timeout < 0 || c.TryTimeout < 0 || c.FailFastAfter < 0 {
		return c, errors.New("client: a negative timeout")
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.TryTimeout = min(cmp.Or(c.TryTimeout, DefaultTryTimeout), c.Timeout)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c, nil
}

// maxLabelBytes is the greatest length of a label.
const maxLabelBytes = 64

// labelOf returns a label of two names, which may have any characters and any length.
func labelOf(host, program string) string {
	label := strings.Map(func(r rune) rune {
		if _, invisible := docid.FirstInvisible(string(r)); invisible {
			return -1
		}
		return r
	}, strings.TrimSpace(host+" "+program))
	label = label[:min(len(label), maxLabelBytes)]
	return strings.ToValidUTF8(label, "") // The last character may be cut.
}
