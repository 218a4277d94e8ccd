package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/idnode/idnode/docid"
)

// Defaults of Config.
const (
	// DefaultTimeout bounds a call with all its tries. It is several times as
	// long as a cluster takes to find a new leader.
	DefaultTimeout = 10 * time.Second
	// DefaultTryTimeout bounds one try at one node. A node answers within 2 s
	// even if it has no leader, so one that is silent for longer is cut off.
	DefaultTryTimeout = 3 * time.Second
)

// Config says which clusters a Client calls, and how.
type Config struct {
	// Endpoints are gRPC addresses (host:port) of nodes of one cluster; at least
	// one. They are tried in order. Other nodes of the cluster are found through
	// them.
	Endpoints []string
	// ClusterID is the cluster that is called, as 'idnode cluster status' shows it;
	// empty means that of the first node that answers. Each new connection is asked for
	// it, and nodes of another cluster are refused with ErrOtherCluster.
	ClusterID string
	// Clusters are further clusters, each with databases of its own: calls about those
	// go there, and all others to Endpoints. They need not know of each other. The other
	// fields are for all clusters.
	Clusters []Cluster
	// Database is the database whose ids are given; empty means "default".
	Database string
	// TLS is used for all connections; nil means plain connections. An empty
	// ServerName stands for the host of each address.
	TLS *tls.Config
	// Timeout bounds every call with all its tries, however long its context
	// would allow; 0 means DefaultTimeout.
	Timeout time.Duration
	// TryTimeout bounds one try at one node; 0 means DefaultTryTimeout, or
	// Timeout if that is shorter.
	TryTimeout time.Duration
	// Conventions override how ids are made for Go types (reflect.TypeFor[T]());
	// see IDFor.
	Conventions map[reflect.Type]Convention
	// Label is what the cluster tells those who ask who holds a HiLo range: at most 64
	// bytes without invisible characters. Empty means the names of the host and of the
	// program.
	Label string
	// Unshared sends every call in a message of its own. By default calls made
	// at the same moment share one, and callers of one identity may take their
	// values together, in one call; a lone caller does not wait for that.
	Unshared bool
	// Dial opens connections in place of TCP; nil means TCP. It is for tunnels
	// and tests.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// withDefaults checks c and fills in what is not set.
func (c Config) withDefaults() (Config, error) {
	if err := c.checkClusters(); err != nil {
		return c, err
	}
	if _, err := docid.ParseDatabase(c.Database); err != nil {
		return c, invalid(err)
	}
	if c.Label == "" {
		c.Label = defaultLabel()
	}
	if _, invisible := docid.FirstInvisible(c.Label); invisible || len(c.Label) > maxLabelBytes || !utf8.ValidString(c.Label) {
		return c, invalidField("INVALID_LABEL", "label", "the label is longer than 64 bytes, has invisible characters, or is not UTF-8")
	}
	if c.Timeout < 0 || c.TryTimeout < 0 {
		return c, errors.New("client: a negative timeout")
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.TryTimeout == 0 {
		c.TryTimeout = DefaultTryTimeout
	}
	c.TryTimeout = min(c.TryTimeout, c.Timeout)
	return c, nil
}
