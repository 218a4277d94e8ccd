package grpcapi

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// peerPrefix begins the methods that nodes call on each other.
const peerPrefix = "/peer.v1.PeerService/"

// maxFailureLines is how many failed calls are logged above debug per second: a
// node without a quorum refuses some ten thousand calls a second, and its log
// must stay readable, and its disk free.
const maxFailureLines = 5

// requestLog writes one line per call: at debug if it went well or came from
// another node, at info if the caller is at fault, above that if the node is.
// Requests and answers are never logged. A call that is not logged costs two
// readings of the clock at most; that is why it is written here: the logging
// interceptor of go-grpc-middleware puts its fields together for every call.
type requestLog struct {
	logger *slog.Logger
	budget lineBudget
}

func (l *requestLog) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	start := time.Now()
	res, err := handler(ctx, req)
	l.done(ctx, info.FullMethod, start, err)
	return res, err
}

func (l *requestLog) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	start := time.Now()
	err := handler(srv, stream)
	l.done(stream.Context(), info.FullMethod, start, err)
	return err
}

func (l *requestLog) done(ctx context.Context, method string, start time.Time, err error) {
	code := status.Code(err)
	level := levelOf(method, code)
	if !l.logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", method), slog.String("code", code.String()), slog.Duration("took", time.Since(start)),
	}
	if level > slog.LevelDebug {
		silent, ok := l.budget.take(start)
		if !ok {
			return
		}
		if silent > 0 {
			attrs = append(attrs, slog.Int("lines_left_out", silent))
		}
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

// reasonOf returns the reason in err's ErrorInfo, or "".
func reasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// lineBudget allows maxFailureLines per second. It is safe for concurrent use.
type lineBudget struct {
	mu     sync.Mutex
	since  time.Time
	lines  int
	silent int
}

// take says whether a line may be written at now, and how many were not since
// the last one that was.
func (b *lineBudget) take(now time.Time) (silent int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.since) >= time.Second {
		b.since, b.lines = now, 0
	}
	if b.lines >= maxFailureLines {
		b.silent++
		return 0, false
	}
	b.lines++
	silent, b.silent = b.silent, 0
	return silent, true
}
