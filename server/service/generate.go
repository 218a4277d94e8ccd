package service

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/identity"
)

const (
	// MaxIDs is how many ids one answer holds as text.
	MaxIDs = 10_000
	// MaxIDsBytes bounds the text of all ids of one answer.
	MaxIDsBytes = 1 << 20

	// numberDigits is the length of the longest number in an id: a server-side
	// id always has so many digits, an identity at most.
	numberDigits = 19
	guidBytes    = 36
)

// GenerateRequest asks for ids from a template.
type GenerateRequest struct {
	Database string
	// Template picks the strategy by its form.
	Template string
	// Separator is empty for "/".
	Separator string
	// Count is 1 to 1,000,000; 0 means 1. Semantic ids allow only 1.
	Count int64
	// Claim records the id as taken; for semantic ids only.
	Claim bool
	// RequestID is refused for server-side ids and GUIDs.
	RequestID *RequestID
	// BlocksOnly leaves the ids out of the answer; for server-side ids and
	// identities only, and needed for more than MaxIDs of them.
	BlocksOnly bool
}

// IDBlock is a run of ids: Prefix + number + Suffix for First ≤ number ≤ Last.
type IDBlock struct {
	Prefix      string
	First, Last int64
	// Width pads the number with zeros to so many digits; 0 pads nothing.
	Width  int
	Suffix string
}

// GenerateResponse holds the ids.
type GenerateResponse struct {
	// IDs are in order; nil if only blocks were asked for.
	IDs []string
	// Blocks describe the same ids; nil for GUIDs and semantic ids.
	Blocks   []IDBlock
	Strategy docid.Kind
	// NodeTag is the tag of the node that served this very call, "" before the
	// cluster has confirmed it.
	NodeTag string
	// LogIndex is 0 if the log was not used.
	LogIndex uint64
}

// ids are the use cases that make ids from templates.
type ids struct {
	*calls
	*proposer
	identities *identities
	claims     *claims
	etags      Etags
	tag        nodeTag
}

// Generate makes ids from a template.
func (g *ids) Generate(ctx context.Context, req GenerateRequest) (GenerateResponse, error) {
	return call(ctx, g.calls, "Generate", req, g.generate)
}

func (g *ids) generate(ctx context.Context, req GenerateRequest) (GenerateResponse, error) {
	database, err := databaseKey(req.Database)
	if err != nil {
		return GenerateResponse{}, err
	}
	template, err := docid.Parse(req.Template, req.Separator)
	if err != nil {
		return GenerateResponse{}, badForm(err, "")
	}
	count, err := parseCount(req.Count)
	if err != nil {
		return GenerateResponse{}, err
	}
	if req.RequestID, err = g.accept(req.RequestID, 0); err != nil {
		return GenerateResponse{}, err
	}
	if err := checkGenerate(req, template.Kind, count); err != nil {
		return GenerateResponse{}, err
	}
	switch template.Kind {
	case docid.GUID:
		if err := g.allowTemplate(ctx, "", target{targetNothing, database, ""}, count); err != nil {
			return GenerateResponse{}, err
		}
		return g.guids(database, count)
	case docid.ServerSide:
		if err := g.allowTemplate(ctx, req.Template, target{targetDatabase, database, ""}, count); err != nil {
			return GenerateResponse{}, err
		}
		return g.serverSide(req, database, count)
	case docid.Identity:
		res, err := g.identity(ctx, req, database, template, count)
		return res, inTemplate(err)
	default:
		res, err := g.semantic(ctx, req, database)
		return res, inTemplate(err)
	}
}

// allowTemplate refuses ids that the caller has no right to, or that are beyond its
// limits. It folds the template itself, if there are roles.
func (g *ids) allowTemplate(ctx context.Context, template string, what target, count int64) error {
	if g.state.Roles().Table.Set() {
		if err := g.authorize(ctx, rights.Generate, what.database, docid.Fold(template)); err != nil {
			return err
		}
	}
	return g.limit(ctx, what, count)
}

// inTemplate names the template as the field at fault where the state names the
// part of it that it knows.
func inTemplate(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Field != "name" && e.Field != "id" {
		return err
	}
	renamed := *e
	renamed.Field = "template"
	if e.Reason == ReasonInvalidName {
		renamed.Reason = ReasonInvalidID
	}
	return &renamed
}

// checkGenerate checks which fields may go with which kind, and how many ids
// one answer may hold.
func checkGenerate(req GenerateRequest, kind docid.Kind, count int64) error {
	generates := kind != docid.Semantic
	logged := kind == docid.Identity || kind == docid.Semantic
	inBlocks := kind == docid.Identity || kind == docid.ServerSide
	switch {
	case req.Claim && generates:
		return invalid(ReasonInvalidClaim, "claim", "only a finished id can be claimed, not a template that generates")
	case req.RequestID != nil && !logged:
		return invalid(ReasonInvalidRequestID, "request_id", "%s ids take no request id", kind)
	case req.BlocksOnly && !inBlocks:
		return invalid(ReasonInvalidBlocksOnly, "blocks_only", "%s ids do not come in blocks", kind)
	case count > 1 && !generates:
		return invalid(ReasonInvalidCount, "count", "a semantic id is one id, not %d", count)
	case req.BlocksOnly:
		return nil
	}
	return checkAnswerSize(count, longestID(req, kind))
}

// longestID returns an upper bound of the length of each id; the node tag has at
// most four letters.
func longestID(req GenerateRequest, kind docid.Kind) int {
	switch kind {
	case docid.GUID:
		return guidBytes
	case docid.Semantic:
		return len(req.Template)
	default:
		return len(req.Template) + numberDigits + len("-ZZZZ")
	}
}

// checkAnswerSize bounds an answer before anything is taken for it: an answer
// too large to be sent would leave a hole.
func checkAnswerSize(count int64, longest int) error {
	switch {
	case count > MaxIDs:
		return invalid(ReasonInvalidCount, "count",
			"%d ids are more than %d, which fit into one answer; ask for blocks only, or for fewer", count, MaxIDs)
	case count*int64(longest) > MaxIDsBytes:
		return invalid(ReasonInvalidCount, "count",
			"%d ids of up to %d bytes do not fit into one answer of %d bytes; ask for blocks only, or for fewer",
			count, longest, MaxIDsBytes)
	}
	return nil
}

// guids makes version 4 UUIDs. They take their bytes from crypto/rand one by
// one: the pool that package uuid offers is a switch for the whole process.
func (g *ids) guids(database string, count int64) (GenerateResponse, error) {
	ids := make([]string, count)
	for i := range ids {
		id, err := uuid.NewRandom()
		if err != nil {
			return GenerateResponse{}, internal(err)
		}
		ids[i] = id.String()
	}
	g.events.issued(database, docid.GUID, count)
	return GenerateResponse{IDs: ids, Strategy: docid.GUID, NodeTag: g.tag.confirmed()}, nil
}

// serverSide takes etags of this node. It never waits for the cluster.
func (g *ids) serverSide(req GenerateRequest, database string, count int64) (GenerateResponse, error) {
	tag, err := g.serverSideTag(req.Template)
	if err != nil {
		return GenerateResponse{}, err
	}
	block, err := g.serverSideBlock(database, req.Template, tag, count)
	if err != nil {
		return GenerateResponse{}, err
	}
	res := GenerateResponse{Blocks: []IDBlock{block}, Strategy: docid.ServerSide, NodeTag: tag}
	if !req.BlocksOnly {
		res.IDs = make([]string, count)
		for i := range res.IDs {
			res.IDs[i] = docid.ServerSideID(req.Template, uint64(block.First)+uint64(i), tag)
		}
	}
	return res, nil
}

func (g *ids) identity(ctx context.Context, req GenerateRequest, database string, template docid.Template, count int64) (GenerateResponse, error) {
	name := docid.Fold(template.Name)
	if err := checkFolded(name, docid.MaxNameBytes, ReasonInvalidID, "template"); err != nil {
		return GenerateResponse{}, err
	}
	if err := g.allowTemplate(ctx, name, target{targetIdentity, database, name}, count); err != nil {
		return GenerateResponse{}, err
	}
	taken, err := g.identities.take(ctx, takeValues{
		Envelope: op.Envelope{
			Database: database,
			Request:  requestKey(database, req.RequestID, func() fingerprint { return generateFingerprint(req) }),
		},
		name: name, separator: template.Separator, count: count,
	})
	if err != nil {
		return GenerateResponse{}, err
	}
	res := GenerateResponse{
		Blocks:   make([]IDBlock, len(taken.Blocks)),
		Strategy: docid.Identity, NodeTag: g.tag.confirmed(), LogIndex: taken.LogIndex,
	}
	prefix := template.Name + template.Separator
	for i, b := range taken.Blocks {
		res.Blocks[i] = IDBlock{Prefix: prefix, First: b.First, Last: b.Last}
	}
	if !req.BlocksOnly {
		res.IDs = identityIDs(template, taken.Blocks, count)
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

// semantic gives the id as it is; it takes the log only to claim it.
func (g *ids) semantic(ctx context.Context, req GenerateRequest, database string) (GenerateResponse, error) {
	res := GenerateResponse{IDs: []string{req.Template}, Strategy: docid.Semantic, NodeTag: g.tag.confirmed()}
	if !req.Claim {
		if err := g.allowTemplate(ctx, req.Template, target{targetNothing, database, ""}, 1); err != nil {
			return GenerateResponse{}, err
		}
		g.events.issued(database, docid.Semantic, 1)
		return res, nil
	}
	key := docid.Fold(req.Template)
	if err := checkFolded(key, docid.MaxIDBytes, ReasonInvalidID, "template"); err != nil {
		return GenerateResponse{}, err
	}
	// To claim is another right, which claimKey asks for, and the state again.
	if err := g.authorize(ctx, rights.Generate, database, key); err != nil {
		return GenerateResponse{}, err
	}
	index, err := g.claims.claimKey(ctx, database, key, req.RequestID, func() fingerprint { return generateFingerprint(req) })
	if err != nil {
		return GenerateResponse{}, err
	}
	g.events.issued(database, docid.Semantic, 1)
	res.LogIndex = index
	return res, nil
}

func generateFingerprint(req GenerateRequest) fingerprint {
	return newFingerprint("Generate").text(req.Database).text(req.Template).text(req.Separator).
		number(req.Count).flag(req.Claim).flag(req.BlocksOnly)
}
