package grpcapi

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/calllog"
)

// peerPrefix begins the methods that nodes call on each other.
const peerPrefix = "/peer.v1."

// requestLog writes one line per call: at debug if it succeeded or came from another node, at info
// if the caller is at fault, above that if the node is. Requests and answers are never logged. The
// logging interceptor of go-grpc-middleware builds its fields for every call, also one that is not
// logged.
type requestLog struct {
	logger   *slog.Logger
	budget   calllog.Budget
	observer Observer
}

// Observer learns of calls, for metrics. Its methods are called for every call,
// also for calls between nodes. They must be quick, and safe for concurrent use.
type Observer interface {
	// Started reports a call that begins, by its full method.
	Started(method string)
	// Handled reports a call that ended.
	Handled(method string, code codes.Code, took time.Duration)
	// Exchanged reports a call that was made in a message of an Exchange.
	Exchanged(method string, code codes.Code)
	// Received and Sent report each message of a stream, by its full method.
	Received(method string)
	Sent(method string)
	// Refused reports calls that were refused before they came to the service, which
	// reports those that it refuses itself.
	Refused(reason string, calls int)
}

// unary is an interceptor. It sees what a panic became.
func (l *requestLog) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (res any, err error) {
	start := l.begin(info.FullMethod)
	defer func() { l.end(ctx, info.FullMethod, start, err) }()
	defer l.recovered(ctx, &err)
	return l.countedUnary(ctx, req, info, handler)
}

// stream does the same for a stream.
func (l *requestLog) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	start := l.begin(info.FullMethod)
	stream = observedStream{stream, l.observer, info.FullMethod}
	defer func() { l.end(stream.Context(), info.FullMethod, start, err) }()
	defer l.recovered(stream.Context(), &err)
	return l.countedStream(srv, stream, info, handler)
}

func (l *requestLog) begin(method string) time.Time {
	l.observer.Started(method)
	return time.Now()
}

func (l *requestLog) end(ctx context.Context, method string, start time.Time, err error) {
	l.observer.Handled(method, status.Code(err), time.Since(start))
	l.write(ctx, method, start, err)
}

// refused records calls that did not reach the service; those of a message, often many, at once.
func (l *requestLog) refused(reason string, calls int) {
	if calls > 0 {
		l.observer.Refused(reason, calls)
	}
}

// refuse records such a call, and returns its error as a status.
func (l *requestLog) refuse(err *apierror.Error) error {
	l.refused(err.Reason, 1)
	return statusError(err)
}

// observedStream tells of the messages of a stream.
type observedStream struct {
	grpc.ServerStream
	observer Observer
	method   string
}

func (s observedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.observer.Received(s.method)
	}
	return err
}

func (s observedStream) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if err == nil {
		s.observer.Sent(s.method)
	}
	return err
}

// done records a call of an Exchange that ended.
func (l *requestLog) done(ctx context.Context, method string, start time.Time, err error) {
	l.observer.Exchanged(method, status.Code(err))
	l.write(ctx, method, start, err)
}

func (l *requestLog) write(ctx context.Context, method string, start time.Time, err error) {
	code := status.Code(err)
	level := levelOf(method, code)
	if !l.logger.Enabled(ctx, level) {
		return
	}
	attrs, ok := l.budget.Line(level, start,
		slog.String("method", method), slog.String("code", code.String()), slog.Duration("took", time.Since(start)))
	if !ok {
		return
	}
	if err != nil {
		attrs = append(attrs, slog.String("reason", reasonOf(err)), slog.String("error", status.Convert(err).Message()))
	}
	if p, ok := peer.FromContext(ctx); ok {
		attrs = append(attrs, slog.String("caller", p.Addr.String()))
	}
	l.logger.LogAttrs(ctx, level, "call", attrs...)
}

func levelOf(method string, code codes.Code) slog.Level {
	if strings.HasPrefix(method, peerPrefix) {
		return slog.LevelDebug
	}
	switch code {
	case codes.OK:
		return slog.LevelDebug
	case codes.Unavailable, codes.ResourceExhausted:
		return slog.LevelWarn
	case codes.Internal, codes.DataLoss, codes.Unknown:
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

func reasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// recovered is deferred: it turns a panic in a handler into INTERNAL for that caller alone. A bad
// request must not end a node that serves thousands of others.
func (l *requestLog) recovered(ctx context.Context, err *error) {
	if p := recover(); p != nil {
		*err = statusError(calllog.Panicked(ctx, l.logger, p))
	}
}
