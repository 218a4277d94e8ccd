package main

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/dialcause"
)

// maxAnswerBytes is several times the largest answer, a page of 1,000 names of 2,000 bytes.
const maxAnswerBytes = 32 << 20

// unreachableError is an endpoint no connection could be made to.
type unreachableError struct {
	endpoint string
	cause    string
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("cannot reach %s: %s", e.endpoint, e.cause)
}

// GRPCStatus makes the error count as UNAVAILABLE.
func (e *unreachableError) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, e.Error())
}

// connect returns a connection that is up, so that a failure before it is known to have done nothing.
func (s *clusterClient) connect(ctx context.Context, endpoint string) (*grpc.ClientConn, error) {
	conn, err := s.conn(endpoint)
	if err != nil {
		return nil, &unreachableError{endpoint: endpoint, cause: err.Error()}
	}
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if state == connectivity.TransientFailure || state == connectivity.Shutdown {
			return nil, &unreachableError{endpoint: endpoint, cause: whyNot(ctx, conn)}
		}
		conn.Connect()
		if !conn.WaitForStateChange(ctx, state) {
			return nil, &unreachableError{endpoint: endpoint, cause: "no connection in time"}
		}
	}
	return conn, nil
}

// conn returns the endpoint's connection, which may not be up yet.
func (s *clusterClient) conn(endpoint string) (*grpc.ClientConn, error) {
	if conn := s.conns[endpoint]; conn != nil {
		return conn, nil
	}
	security := insecure.NewCredentials()
	if s.tls != nil {
		security = credentials.NewTLS(s.tls)
	}
	conn, err := grpc.NewClient("dns:///"+url.PathEscape(endpoint), append(s.naming(),
		grpc.WithTransportCredentials(security),
		grpc.WithDisableServiceConfig(),
		// A cluster is not reached through a web proxy.
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswerBytes)))...)
	if err != nil {
		return nil, err
	}
	if s.conns == nil {
		s.conns = make(map[string]*grpc.ClientConn)
	}
	s.conns[endpoint] = conn
	return conn, nil
}

// whyNot asks a broken connection for its last error: a call that does not wait fails with it at once.
func whyNot(ctx context.Context, conn *grpc.ClientConn) string {
	_, err := idnodev1.NewClusterServiceClient(conn).GetStatus(ctx, &idnodev1.GetStatusRequest{})
	if err == nil {
		return "the connection broke"
	}
	return dialCause(status.Convert(err).Message())
}

// otherPort is how a connection ends that another protocol answers, as at a node's Raft port.
var otherPort = regexp.MustCompile(`server preface|broken pipe|connection reset`)

// dialCause is the cause of a failed connection, with what to try.
func dialCause(text string) string {
	cause := dialcause.Of(text)
	switch {
	case strings.Contains(cause, defaultEndpoint+": connect: connection refused"):
		cause += "; 'idnode dev' starts a cluster there, --endpoint or IDNODE_ENDPOINTS names another one"
	case otherPort.MatchString(cause) && !strings.Contains(cause, "tls:"):
		cause += "; is this the gRPC port of a node, and does it want TLS (--tls-ca, --tls-cert, --tls-key)?"
	case strings.Contains(cause, "does not look like a TLS handshake"):
		cause += "; a node without TLS is called without --tls-ca, --tls-cert and --tls-key"
	}
	return cause
}
