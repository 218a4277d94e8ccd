package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/service"
)

// reasonOtherCluster is the reason of a call that would go to another cluster.
const reasonOtherCluster = apierror.ReasonOtherCluster

const (
	// settleWithin bounds the question for the cluster; the calls say why no endpoint answers.
	settleWithin = time.Second
	// othersWithin is how long a command waits for the other endpoints after the first has named its
	// cluster.
	othersWithin = 300 * time.Millisecond
)

// settle finds the cluster of the endpoints before the first call, unless it is said or there is only
// one endpoint. It refuses endpoints of two clusters. If none answers, the calls say why.
func (s *clusterClient) settle(ctx context.Context) error {
	endpoints := slices.Compact(slices.Sorted(slices.Values(s.Endpoints)))
	if s.ClusterID != "" || s.anyCluster || len(endpoints) == 1 {
		return nil
	}
	id, err := s.askCluster(ctx, endpoints)
	s.ClusterID = id
	return err
}

// clusterAnswer is what an endpoint says of its cluster; status is nil if it does not answer.
type clusterAnswer struct {
	endpoint string
	status   *idnodev1.GetStatusResponse
}

// askCluster asks all endpoints for their cluster, and returns the one that all name who answer in
// time. It is empty if none does.
func (s *clusterClient) askCluster(ctx context.Context, endpoints []string) (string, error) {
	answers := make(chan clusterAnswer, len(endpoints))
	caller := ctx
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, unnamed{}, true), min(s.timeout, settleWithin))
	defer cancel()
	for _, endpoint := range endpoints {
		conn, err := s.conn(endpoint)
		if err != nil {
			answers <- clusterAnswer{endpoint, nil}
			continue
		}
		go func() {
			res, _ := idnodev1.NewClusterServiceClient(conn).GetStatus(ctx, &idnodev1.GetStatusRequest{}) // Nil with an error.
			answers <- clusterAnswer{endpoint, res}
		}()
	}
	var first clusterAnswer
	var over <-chan time.Time
	for range endpoints {
		select {
		case a := <-answers:
			s.newest = max(s.newest, a.status.GetAppliedIndex())
			id := a.status.GetClusterId()
			if id == "" {
				continue
			}
			if len(endpoints) > 1 && len(a.status.GetMembers()) == 1 {
				fmt.Fprintf(s.stderr, "idnode: of several endpoints %s is a cluster of one node, %s\n", a.endpoint, id)
			}
			if first.status == nil {
				first, over = a, time.After(othersWithin)
			}
			if firstID := first.status.GetClusterId(); id != firstID {
				return "", otherCluster("the endpoints are of two clusters: %s of %s, and %s of %s", first.endpoint, firstID, a.endpoint, id)
			}
		case <-over:
			return first.status.GetClusterId(), nil
		case <-ctx.Done():
			if caller.Err() != nil {
				return "", &callError{err: caller.Err(), verbose: s.verbose}
			}
			return first.status.GetClusterId(), nil
		}
	}
	return first.status.GetClusterId(), nil
}

// otherCluster returns an error as a node of another cluster answers it.
func otherCluster(format string, args ...any) error {
	st := status.Newf(codes.FailedPrecondition, format, args...)
	detailed, err := st.WithDetails(&errdetails.ErrorInfo{Domain: errorDomain, Reason: reasonOtherCluster})
	if err != nil {
		return errors.Join(st.Err(), err)
	}
	return detailed.Err()
}

// unnamed is the key of contexts whose calls name no cluster.
type unnamed struct{}

// named returns a context whose calls name the cluster, if it is known.
func (s *clusterClient) named(ctx context.Context) context.Context {
	if ctx.Value(unnamed{}) != nil || s.ClusterID == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, strings.ToLower(service.ClusterIDHeader), s.ClusterID)
}

// naming are the options of connections whose calls name the cluster.
func (s *clusterClient) naming() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
			invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			return invoke(s.named(ctx), method, req, reply, cc, opts...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
			stream grpc.Streamer, opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			return stream(s.named(ctx), desc, cc, method, opts...)
		}),
	}
}
