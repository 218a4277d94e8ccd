package service

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/identity"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

const (
	// MaxIDs bounds the ids of one answer as text.
	MaxIDs = 10_000
	// MaxIDsBytes bounds the text of all ids of one answer, in bytes.
	MaxIDsBytes = 1 << 20

	// numberDigits is the length of the longest number in an id: a server-side
	// id always has so many digits, an identity at most.
	numberDigits = 19
	guidBytes    = 36
)

// ids are the use cases that make ids from templates.
type ids struct {
	*base
	identities *identities
	claims     *claims
}

// Generate makes ids from a template.
func (g *ids) Generate(ctx context.Context, req *idnodev1.GenerateRequest) (*idnodev1.GenerateResponse, error) {
	return admission.UntimedCall(ctx, g.Control, "Generate", req, g.generate)
}

func (g *ids) generate(ctx context.Context, req *idnodev1.GenerateRequest) (*idnodev1.GenerateResponse, error) {
	database, err := databaseKey(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	template, err := docid.Parse(req.GetTemplate(), req.GetSeparator())
	if err != nil {
		return nil, badForm(err, "")
	}
	count, err := parseCount(req.GetCount(), identity.MaxCount)
	if err != nil {
		return nil, err
	}
	key, err := g.accept(req.GetRequestId(), 0, database, func() fingerprint {
		return newFingerprint("Generate").text(req.GetDatabase()).text(req.GetTemplate()).text(req.GetSeparator()).
			number(req.GetCount()).flag(req.GetClaim()).flag(req.GetBlocksOnly())
	})
	if err != nil {
		return nil, err
	}
	if err := checkGenerate(req, template.Kind, count); err != nil {
		return nil, err
	}
	switch template.Kind {
	case docid.GUID:
		if err := g.allowTemplate(ctx, "", admission.Target{Database: database}, count); err != nil {
			return nil, err
		}
		return g.guids(database, count, req.GetTimeOrdered())
	case docid.ServerSide:
		what := admission.Target{Kind: admission.TargetDatabase, Database: database}
		if err := g.allowTemplate(ctx, req.GetTemplate(), what, count); err != nil {
			return nil, err
		}
		return g.serverSide(req, database, count)
	case docid.Identity:
		res, err := g.identity(ctx, req, key, database, template, count)
		return res, inTemplate(err)
	default:
		res, err := g.semantic(ctx, req, key, database)
		return res, inTemplate(err)
	}
}

// allowTemplate refuses ids that the caller has no right to, or that are beyond its
// limits. It folds the template itself, if there are roles.
func (g *ids) allowTemplate(ctx context.Context, template string, what admission.Target, count int64) error {
	if g.state.Roles().Table.Set() {
		if err := g.Authorize(ctx, rights.Generate, what.Database, docid.Fold(template)); err != nil {
			return err
		}
	}
	return g.Limit(ctx, what, count)
}

// inTemplate names the template as the field at fault where the state names a part of it.
func inTemplate(err error) error {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || e.Field != "name" && e.Field != "id" {
		return err
	}
	renamed := *e
	renamed.Field = "template"
	if e.Reason == apierror.ReasonInvalidName {
		renamed.Reason = apierror.ReasonInvalidID
	}
	return &renamed
}

// checkGenerate checks the fields allowed with the kind, and the number of ids in one answer.
func checkGenerate(req *idnodev1.GenerateRequest, kind docid.Kind, count int64) error {
	generates := kind != docid.Semantic
	logged := kind == docid.Identity || kind == docid.Semantic
	inBlocks := kind == docid.Identity || kind == docid.ServerSide
	switch {
	case req.GetClaim() && generates:
		return apierror.Invalid(apierror.ReasonInvalidClaim, "claim", "only a finished id can be claimed, not a template that generates")
	case req.GetRequestId() != nil && !logged:
		return apierror.Invalid(apierror.ReasonInvalidRequestID, "request_id", "%s ids take no request id", kind)
	case req.GetBlocksOnly() && !inBlocks:
		return apierror.Invalid(apierror.ReasonInvalidBlocksOnly, "blocks_only", "%s ids do not come in blocks", kind)
	case req.GetTimeOrdered() && kind != docid.GUID:
		return apierror.Invalid(apierror.ReasonInvalidTimeOrdered, "time_ordered",
			"%s ids have no order of time; only GUIDs, whose template is empty", kind)
	case count > 1 && !generates:
		return apierror.Invalid(apierror.ReasonInvalidCount, "count", "a semantic id is one id, not %d", count)
	case req.GetBlocksOnly():
		return nil
	}
	return checkAnswerSize(count, longestID(req, kind))
}

// longestID returns an upper bound of the length of each id; the node tag has at
// most four letters.
func longestID(req *idnodev1.GenerateRequest, kind docid.Kind) int {
	switch kind {
	case docid.GUID:
		return guidBytes
	case docid.Semantic:
		return len(req.GetTemplate())
	default:
		return len(req.GetTemplate()) + numberDigits + len("-ZZZZ")
	}
}

// checkAnswerSize bounds an answer before anything is taken for it: an answer
// too large to be sent would leave a hole.
func checkAnswerSize(count int64, longest int) error {
	switch {
	case count > MaxIDs:
		return apierror.Invalid(apierror.ReasonInvalidCount, "count",
			"%d ids are more than %d, which fit into one answer; ask for blocks only, or for fewer", count, MaxIDs)
	case count*int64(longest) > MaxIDsBytes:
		return apierror.Invalid(apierror.ReasonInvalidCount, "count",
			"%d ids of up to %d bytes do not fit into one answer of %d bytes; ask for blocks only, or for fewer",
			count, longest, MaxIDsBytes)
	}
	return nil
}

// guids makes UUIDs of version 4, or of version 7, each greater than those this process made
// before (RFC 9562, 6.2, method 3). Each takes its bytes from crypto/rand: the pool that package
// uuid offers is a switch for the whole process.
func (g *ids) guids(database string, count int64, timeOrdered bool) (*idnodev1.GenerateResponse, error) {
	next := uuid.NewRandom
	if timeOrdered {
		next = uuid.NewV7
	}
	ids := make([]string, count)
	for i := range ids {
		id, err := next()
		if err != nil {
			return nil, apierror.Internal(err)
		}
		ids[i] = id.String()
	}
	g.events.issued(database, docid.GUID, "", count)
	return &idnodev1.GenerateResponse{Ids: ids, Strategy: idnodev1.Strategy_STRATEGY_GUID, NodeTag: g.tag.confirmed()}, nil
}

// serverSide takes etags of this node. It never waits for the cluster.
func (g *ids) serverSide(req *idnodev1.GenerateRequest, database string, count int64) (*idnodev1.GenerateResponse, error) {
	tag, err := g.serverSideTag(req.GetTemplate())
	if err != nil {
		return nil, err
	}
	block, err := g.serverSideBlock(database, req.GetTemplate(), tag, count)
	if err != nil {
		return nil, err
	}
	res := &idnodev1.GenerateResponse{Blocks: []*idnodev1.IdBlock{block}, Strategy: idnodev1.Strategy_STRATEGY_SERVER_SIDE, NodeTag: tag}
	if !req.GetBlocksOnly() {
		res.Ids = make([]string, count)
		for i := range res.Ids {
			res.Ids[i] = docid.ServerSideID(req.GetTemplate(), uint64(block.First)+uint64(i), tag)
		}
	}
	return res, nil
}

func (g *ids) identity(
	ctx context.Context, req *idnodev1.GenerateRequest, key *op.RequestKey, database string, template docid.Template, count int64,
) (*idnodev1.GenerateResponse, error) {
	name := docid.Fold(template.Name)
	if err := checkFolded(name, docid.MaxNameBytes, apierror.ReasonInvalidID, "template"); err != nil {
		return nil, err
	}
	if err := g.allowTemplate(ctx, name, admission.Target{Kind: admission.TargetIdentity, Database: database, Name: name}, count); err != nil {
		return nil, err
	}
	taken, err := g.identities.take(ctx, takeValues{
		Envelope: op.Envelope{Database: database, Request: key}, name: name, separator: template.Separator, count: count,
	})
	if err != nil {
		return nil, err
	}
	res := &idnodev1.GenerateResponse{
		Blocks:   make([]*idnodev1.IdBlock, len(taken.blocks)),
		Strategy: idnodev1.Strategy_STRATEGY_IDENTITY, NodeTag: g.tag.confirmed(), LogIndex: taken.logIndex,
	}
	prefix := template.Name + template.Separator
	for i, b := range taken.blocks {
		res.Blocks[i] = &idnodev1.IdBlock{Prefix: prefix, First: b.First, Last: b.Last}
	}
	if !req.GetBlocksOnly() {
		res.Ids = identityIDs(template, taken.blocks, count)
	}
	return res, nil
}

func identityIDs(template docid.Template, blocks []identity.Block, count int64) []string {
	ids := make([]string, 0, count)
	for _, b := range blocks {
		// The difference bounds the loop: Last may be the end of int64.
		for i := range b.Last - b.First + 1 {
			ids = append(ids, docid.IdentityID(template.Name, template.Separator, b.First+i))
		}
	}
	return ids
}

// semantic returns the id unchanged; it uses the log only to claim it.
func (g *ids) semantic(
	ctx context.Context, req *idnodev1.GenerateRequest, key *op.RequestKey, database string,
) (*idnodev1.GenerateResponse, error) {
	res := &idnodev1.GenerateResponse{
		Ids: []string{req.GetTemplate()}, Strategy: idnodev1.Strategy_STRATEGY_SEMANTIC,
		NodeTag: g.tag.confirmed(),
	}
	if !req.GetClaim() {
		if err := g.allowTemplate(ctx, req.GetTemplate(), admission.Target{Database: database}, 1); err != nil {
			return nil, err
		}
		g.events.issued(database, docid.Semantic, "", 1)
		return res, nil
	}
	id := docid.Fold(req.GetTemplate())
	if err := checkFolded(id, docid.MaxIDBytes, apierror.ReasonInvalidID, "template"); err != nil {
		return nil, err
	}
	// To claim is another right, which claimKey asks for, and the state again.
	if err := g.Authorize(ctx, rights.Generate, database, id); err != nil {
		return nil, err
	}
	index, err := g.claims.claimKey(ctx, database, id, key)
	if err != nil {
		return nil, err
	}
	res.LogIndex = index
	return res, nil
}
