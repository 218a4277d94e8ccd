package admission

import (
	"context"
	"strings"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/server/apierror"
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
// find the caller in the context need not do this; see Config.From.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller that WithCaller gave to a context.
func CallerOf(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// authorizer identifies callers and decides their rights.
type authorizer struct {
	state   State
	from    func(ctx context.Context) Caller
	guarded bool
	admins  []string
}

// Caller returns who calls.
func (a *authorizer) Caller(ctx context.Context) Caller {
	if c, ok := CallerOf(ctx); ok {
		return c
	}
	return a.from(ctx)
}

// Authorize refuses calls without the right. Database and name are folded; both are empty for the
// whole cluster. All APIs use it. While there are roles, the state checks again when it applies the
// operation, since they may have changed meanwhile.
//
// Without roles and administrators it costs one read of the roles.
func (a *authorizer) Authorize(ctx context.Context, need rights.Right, database, name string) error {
	roles := a.state.Roles().Table
	if !roles.Set() {
		return a.AuthorizeGuarded(ctx, need)
	}
	who := a.Principal(ctx)
	if rights.Allows(roles, who, need, database, name) {
		return nil
	}
	return apierror.Forbidden("no role gives %.80q the right %s on %.80q of database %.80q", who, need,
		strings.TrimSuffix(name, rights.Further), database)
}

// AuthorizeGuarded keeps dangerous calls to the administrators, if there are
// any.
func (a *authorizer) AuthorizeGuarded(ctx context.Context, need rights.Right) error {
	if !a.guarded || need&rights.Guarded == 0 {
		return nil
	}
	who := a.Principal(ctx)
	if rights.Lists(a.admins, who) {
		return nil
	}
	return apierror.Forbidden("%.80q is not among the administrators of this node, to whom the right %s is kept", who, need)
}

// Principal returns the name of ctx's caller; may be empty.
func (a *authorizer) Principal(ctx context.Context) string { return a.Caller(ctx).Principal }

// Rights returns the caller's rights to a name of a database, in any case, or to the cluster if
// both are empty. APIs use it to show what is possible; each use case checks for itself.
func (a *authorizer) Rights(ctx context.Context, database, name string) rights.Right {
	return a.withoutGuarded(ctx, rights.Held(a.state.Roles().Table, a.Principal(ctx), docid.Fold(database), docid.Fold(name)))
}

// Grants returns the grants that give the caller rights in a database.
func (a *authorizer) Grants(ctx context.Context, database string) []rights.Grant {
	grants := rights.Within(a.state.Roles().Table, a.Principal(ctx), docid.Fold(database))
	for i := range grants {
		grants[i].Rights = a.withoutGuarded(ctx, grants[i].Rights)
	}
	return grants
}

// RightsWithin returns the rights that the caller has to any name of a database.
func (a *authorizer) RightsWithin(ctx context.Context, database string) (have rights.Right) {
	for _, g := range a.Grants(ctx, database) {
		have |= g.Rights
	}
	return have
}

// withoutGuarded takes the rights away that are kept to administrators as long as there are
// no roles.
func (a *authorizer) withoutGuarded(ctx context.Context, have rights.Right) rights.Right {
	if !a.state.Roles().Table.Set() && a.AuthorizeGuarded(ctx, rights.Guarded) != nil {
		return have &^ rights.Guarded
	}
	return have
}

// MayRead reports whether the caller may read everything.
func (a *authorizer) MayRead(ctx context.Context) bool {
	return a.Authorize(ctx, rights.Read, "", "") == nil
}
