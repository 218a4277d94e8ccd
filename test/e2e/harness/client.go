package harness

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/idnode/idnode/client/idnodev1"
)

// Client talks to one node over plain gRPC, without retries.
type Client struct {
	Conn    *grpc.ClientConn
	Ids     idnodev1.IdsServiceClient
	Series  idnodev1.SeriesServiceClient
	Cluster idnodev1.ClusterServiceClient
	Health  healthv1.HealthClient
}

// Dial makes a client for a node's gRPC address. With certs it shows the
// client certificate of that directory.
func Dial(t testing.TB, addr, certs string) *Client {
	t.Helper()
	return DialAs(t, addr, certs, "client")
}

// DialAs makes a client that shows the certificate with this name.
func DialAs(t testing.TB, addr, certs, name string, options ...grpc.DialOption) *Client {
	t.Helper()
	creds := insecure.NewCredentials()
	if certs != "" {
		creds = clientCredentials(t, certs, name)
	}
	conn, err := grpc.NewClient(addr, append(options,
		grpc.WithTransportCredentials(creds),
		// A node that was restarted is asked again at once, not after the
		// default back-off of seconds.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.5, MaxDelay: 100 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}),
		// gRPC's own transparent retries would hide what the server said.
		grpc.WithDisableRetry(),
	)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &Client{
		Conn: conn, Ids: idnodev1.NewIdsServiceClient(conn), Series: idnodev1.NewSeriesServiceClient(conn),
		Cluster: idnodev1.NewClusterServiceClient(conn),
		Health:  healthv1.NewHealthClient(conn),
	}
}

// Reason is the reason in the ErrorInfo of err, or "" if there is none.
func Reason(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.Domain == "idnode" {
			return info.Reason
		}
	}
	return ""
}

// Fields are the fields the BadRequest of err names.
func Fields(err error) []string {
	var fields []string
	for _, d := range status.Convert(err).Details() {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			for _, v := range bad.FieldViolations {
				fields = append(fields, v.Field)
			}
		}
	}
	return fields
}

// NeverSent says whether err means that no connection took the call.
func NeverSent(err error) bool { return strings.Contains(err.Error(), "Error while dialing") }

// CertainlyNothing says whether err means that the call took nothing.
func CertainlyNothing(err error) bool {
	switch status.Code(err) {
	case codes.OK, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unknown:
		return false
	}
	reason := Reason(err)
	return reason != "" && reason != "OUTCOME_UNKNOWN"
}
