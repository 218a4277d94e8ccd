package service

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Caller identifies the caller of a call.
type Caller struct {
	// Principal is the name in its certificate, with its kind; empty without a
	// certificate.
	Principal string
	// Address is where the call came from, for the audit log; may be empty.
	Address string
}

type callerKey struct{}

// WithCaller returns a context whose calls are those of a caller. APIs that can
// find the caller in the context need not do this; see Config.Caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// caller returns the caller of ctx.
func (s *Service) caller(ctx context.Context) Caller {
	if c, ok := ctx.Value(callerKey{}).(Caller); ok {
		return c
	}
	if s.cfg.Caller != nil {
		return s.cfg.Caller(ctx)
	}
	return Caller{}
}

// authorize refuses what the caller has no right to. Database and name are
// folded; what concerns the whole cluster has neither. It is the one door of all
// APIs; while there are roles, the state judges again when it applies the
// operation, since they may change meanwhile.
//
// Without roles and administrators it costs one look at the roles.
func (s *Service) authorize(ctx context.Context, need rights.Right, database, name string) error {
	roles := s.cfg.State.Roles().Table
	if !roles.Set() {
		return s.authorizeGuarded(ctx, need)
	}
	who := s.caller(ctx).Principal
	if rights.Allows(roles, who, need, database, name) {
		return nil
	}
	return &Error{
		Code: PermissionDenied, Reason: ReasonPermissionDenied,
		Message: fmt.Sprintf("no role gives %.80q the right %s on %.80q of database %.80q", who, need, strings.TrimSuffix(name, rights.Further), database),
	}
}

// authorizeIDs refuses ids that the caller has no right to, or that are beyond its
// limit. It folds the template itself, if there are roles.
func (s *Service) authorizeIDs(ctx context.Context, database, template string, count int64) error {
	if s.cfg.State.Roles().Table.Set() {
		if err := s.authorize(ctx, rights.Generate, database, docid.Fold(template)); err != nil {
			return err
		}
	}
	return s.limitIDs(ctx, count)
}

// authorizeGuarded keeps dangerous calls to the administrators, if there are
// any.
func (s *Service) authorizeGuarded(ctx context.Context, need rights.Right) error {
	if !s.cfg.Guarded || need&rights.Guarded == 0 {
		return nil
	}
	who := s.caller(ctx).Principal
	if rights.Lists(s.cfg.Admins, who) {
		return nil
	}
	return &Error{
		Code: PermissionDenied, Reason: ReasonPermissionDenied,
		Message: fmt.Sprintf("%.80q is not among the administrators of this node, to whom the right %s is kept", who, need),
	}
}

// principal returns the caller's name for an operation, or nil as long as there
// are no roles: operations then carry no unused name. A request id is
// always its caller's, as soon as all members know that.
func (s *Service) principal(ctx context.Context, keyed bool) *string {
	if s.cfg.State.Roles().Table.Set() || keyed && s.cfg.State.Format() >= fsm.StrictFormat {
		return s.author(ctx)
	}
	return nil
}

// author returns the caller's name for an operation. As long as there are members
// that know no kinds of principals it has none.
func (s *Service) author(ctx context.Context) *string {
	who := s.caller(ctx).Principal
	if s.cfg.State.Format() < fsm.StrictFormat {
		who = rights.Plain(who)
	}
	return &who
}

// appendPrincipal appends the caller's name to an encoded operation.
func appendPrincipal(operation []byte, principal *string) []byte {
	if principal == nil {
		return operation
	}
	return appendText(operation, operationPrincipal, *principal)
}

// operationPrincipal is the field of raftlog.v1.Operation.
const operationPrincipal protowire.Number = 3

// unnamed says that an operation was refused only because it does not name its
// caller: roles, or the format in which request ids are their callers', came to be
// after this node had looked for them. Nothing happened, so it is proposed again with
// the name.
func unnamed(err error, principal *string) bool {
	return principal == nil && refusalOf(err).GetReason() == raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED
}
