package service

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"math"
	"time"
	"unicode/utf8"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/hilo"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// tokenBytes is the length of a range's token.
	tokenBytes = 8
	// maxServerPrefix keeps a server prefix short beside tags of any length.
	maxServerPrefix = 256
)

// NextRangeRequest reserves a HiLo range.
type NextRangeRequest struct {
	Database string
	// Tag is the collection's tag.
	Tag string
	// Separator is the one of the ids the client will build; empty means "/".
	Separator string
	// LastSize is the size of the client's last range, 0 if it had none.
	LastSize int64
	// HasLastRange says that the client had a range before, at LastRangeAt.
	HasLastRange bool
	LastRangeAt  time.Time
	// LastMax is the highest number the client knows to be taken, 0 for none.
	LastMax int64
	// Size is the size wanted, 1 to 1,048,576; 0 lets the policy decide.
	Size int64
	// MaxHigh, if not 0, refuses a range that would end above it.
	MaxHigh int64
	// Label is what the caller calls itself, for those who ask who holds the range.
	Label     string
	RequestID *RequestID
}

// NextRangeResponse is the reserved range. Prefix and NodeTag belong to this
// range and must only ever be joined with its numbers.
type NextRangeResponse struct {
	// Prefix stands before a number of the range in an id.
	Prefix string
	// Low and High are the first and the last number.
	Low, High int64
	// Size is the size granted.
	Size int64
	// NodeTag is the tag of the node that first served the client; empty if its
	// server prefix stands in Prefix instead.
	NodeTag string
	// RangeAt is the leader's time of the range, UTC.
	RangeAt time.Time
	// Token proves ownership when the range is returned.
	Token    [tokenBytes]byte
	LogIndex uint64
	// Skipped is how many numbers before Low the caller's LastMax took.
	Skipped int64
	// FromReserve says that the range came from this node's reserve: LogIndex is then
	// 0, and RangeAt this node's time.
	FromReserve bool
}

// ranges are the use cases of HiLo ranges.
type ranges struct {
	*calls
	*proposer
	*reader
	tag nodeTag
	// serverPrefix is Config.ServerPrefix.
	serverPrefix string
	// reserves may be nil; answered are the calls that it answered.
	reserves Reserves
	answered answered
	// ownReserves is Config.OwnReserves.
	ownReserves func() []Reserve
}

// NextRange reserves the next HiLo range of a tag for the caller.
func (r *ranges) NextRange(ctx context.Context, req NextRangeRequest) (NextRangeResponse, error) {
	return call(ctx, r.calls, "NextRange", req, r.nextRange)
}

func (r *ranges) nextRange(ctx context.Context, req NextRangeRequest) (NextRangeResponse, error) {
	database, err := databaseKey(req.Database)
	if err != nil {
		return NextRangeResponse{}, err
	}
	separator, err := r.checkRangeText(req)
	if err != nil {
		return NextRangeResponse{}, err
	}
	if err := checkRangeNumbers(req); err != nil {
		return NextRangeResponse{}, err
	}
	if req.RequestID, err = r.accept(req.RequestID, 0); err != nil {
		return NextRangeResponse{}, err
	}
	before := r.state.AppliedIndex()
	// How many numbers there will be is not known yet: the rest is counted after.
	if err := r.allow(ctx, rights.Ranges, target{targetTag, database, docid.Fold(req.Tag)}, 1); err != nil {
		return NextRangeResponse{}, err
	}
	next, err := r.rangePayload(req)
	if err != nil {
		return NextRangeResponse{}, err
	}
	wanted := wantedRange{NextRangeRequest: req, database: database, separator: separator, next: next, key: requestKey(database, req.RequestID, req.fingerprint)}
	res, fresh, err := r.takeRange(ctx, &wanted)
	if err != nil {
		return NextRangeResponse{}, err
	}
	if fresh || res.LogIndex > before { // Otherwise it was counted the first time.
		r.limitsOf(ctx).debit(time.Now(), res.High-res.Low+res.Skipped)
	}
	r.events.rangeIssued(database, res.High-res.Low+1)
	return res, nil
}

// wantedRange is a checked request for a range.
type wantedRange struct {
	NextRangeRequest
	database, separator string
	next                *raftlogv1.HiLoNext
	key                 *op.RequestKey
}

// fromCluster takes a range through the log.
func (r *ranges) fromCluster(ctx context.Context, w *wantedRange) (NextRangeResponse, error) {
	e := op.Envelope{Database: w.database, Request: w.key, Principal: r.holder(ctx)}
	// Asking again is safe even without a request id: a lost range is a hole.
	result, err := r.propose(ctx, e, w.next, true)
	if err != nil {
		return NextRangeResponse{}, err
	}
	return rangeResponse(w.Tag, w.separator, result)
}

// checkRangeText checks tag, separator and label, and returns the separator.
func (r *ranges) checkRangeText(req NextRangeRequest) (string, error) {
	separator, err := docid.ParseSeparator(req.Separator)
	if err != nil {
		return "", badForm(err, "")
	}
	if err := docid.ValidateTag(req.Tag, separator); err != nil {
		return "", badForm(err, "")
	}
	if _, invisible := docid.FirstInvisible(req.Label); invisible || len(req.Label) > fsm.MaxLabelBytes || !utf8.ValidString(req.Label) {
		return "", invalid(ReasonInvalidLabel, "label", "the label is longer than %d bytes, or has invisible characters", fsm.MaxLabelBytes)
	}
	if err := checkFolded(docid.Fold(req.Tag), docid.MaxNameBytes, ReasonInvalidTag, "tag"); err != nil {
		return "", err
	}
	longest := len(rangePrefix(req.Tag, separator, r.serverPrefix)) + numberDigits
	if longest > docid.MaxIDBytes {
		return "", invalid(ReasonInvalidTag, "tag",
			"tag makes ids of up to %d bytes with this node's server prefix, more than %d", longest, docid.MaxIDBytes)
	}
	return separator, nil
}

// holder returns the caller's name, which the state keeps with the range.
func (r *ranges) holder(ctx context.Context) *string { return r.proposer.auth.principal(ctx, true) }

func checkRangeNumbers(req NextRangeRequest) error {
	switch {
	case req.Size < 0 || req.Size > hilo.MaxSize:
		return invalid(ReasonInvalidSize, "size", "the size %d is not in 1 to %d", req.Size, hilo.MaxSize)
	case req.LastSize < 0:
		return invalid(ReasonInvalidSize, "last_size", "the last size %d is negative", req.LastSize)
	case req.LastMax < 0:
		return invalid(ReasonInvalidLastMax, "last_max", "the last max %d is negative", req.LastMax)
	case req.HasLastRange && !fitsUnixNano(req.LastRangeAt):
		return invalid(ReasonInvalidLastRangeAt, "last_range_at", "the time of the last range is out of range")
	}
	return nil
}

// fitsUnixNano says whether t can be written in nanoseconds since 1970; that
// holds from 1677 to 2262.
func fitsUnixNano(t time.Time) bool {
	first, last := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
	return !t.Before(first) && !t.After(last)
}

func (r *ranges) rangePayload(req NextRangeRequest) (*raftlogv1.HiLoNext, error) {
	tag := r.tag.confirmed()
	if tag == "" {
		// The id of a number in the range ends with the tag, so a range cannot
		// be given before the tag is settled.
		return nil, unavailable(ReasonStarting, "the cluster has not confirmed this node's tag yet", retryStarting, nil)
	}
	next := &raftlogv1.HiLoNext{
		Tag: docid.Fold(req.Tag), Size: req.Size, LastSize: req.LastSize, LastMax: req.LastMax,
		Token: newToken(), ServerTag: tag, ServerPrefix: r.serverPrefix, MaxHigh: req.MaxHigh,
		Label: req.Label,
	}
	if req.HasLastRange {
		next.HasLastRange, next.LastRangeUnixNano = true, req.LastRangeAt.UnixNano()
	}
	return next, nil
}

func (r NextRangeRequest) fingerprint() fingerprint {
	f := newFingerprint("NextRange").text(r.Database).text(r.Tag).text(r.Separator).
		number(r.LastSize).number(r.LastMax).number(r.Size).flag(r.HasLastRange)
	if r.HasLastRange {
		f = f.number(r.LastRangeAt.UnixNano())
	}
	if r.MaxHigh > 0 {
		f = f.number(r.MaxHigh)
	}
	if r.Label != "" {
		f = f.text(r.Label)
	}
	return f
}

// newToken returns 8 random bytes as a number. crypto/rand does not fail.
func newToken() uint64 {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:])
}

// rangeResponse builds the answer from the result alone, so that a retry that
// another node serves gets the first server's tag, prefix and time.
func rangeResponse(tag, separator string, result *raftlogv1.Result) (NextRangeResponse, error) {
	next := result.GetHiloNext()
	if next == nil {
		return NextRangeResponse{}, wrongResult("NextRange", result)
	}
	res := NextRangeResponse{
		Prefix: rangePrefix(tag, separator, next.GetServerPrefix()),
		Low:    next.GetLow(), High: next.GetHigh(), Size: next.GetSize(),
		RangeAt:  time.Unix(0, next.GetTimeUnixNano()).UTC(),
		LogIndex: result.GetLogIndex(),
	}
	if result.Before != nil {
		res.Skipped = res.Low - 1 - result.GetBefore()
	}
	if next.GetServerPrefix() == "" {
		res.NodeTag = next.GetServerTag()
	}
	binary.BigEndian.PutUint64(res.Token[:], next.GetToken())
	return res, nil
}

func rangePrefix(tag, separator, serverPrefix string) string {
	if serverPrefix == "" {
		return tag + separator
	}
	return tag + separator + serverPrefix + separator
}

// ReturnRangeRequest gives the unused rest of a range back.
type ReturnRangeRequest struct {
	Database string
	Tag      string
	// Low is the range's first number. Only a caller whose protocol does not
	// carry it may leave it 0, and says so with LowUnknown.
	Low        int64
	LowUnknown bool
	// High is the range's last number.
	High int64
	// Last is the last number used, Low-1 if none was.
	Last int64
	// Token came with the range. A caller that has none must say so: by
	// WithoutToken, or by LowUnknown if its protocol knows neither. The range is
	// then matched by its numbers and its holder: callers with one name, as all have
	// without TLS, can return each other's.
	Token        []byte
	WithoutToken bool
	RequestID    *RequestID
}

// ReturnRangeResponse is the outcome of a return.
type ReturnRangeResponse struct {
	// Returned is false if nothing changed.
	Returned bool
	// Max is the counter's value after the call.
	Max      int64
	LogIndex uint64
}

// ReturnRange gives the unused rest of a range back. A return that is late,
// repeated, foreign or not of the newest range is no error.
func (r *ranges) ReturnRange(ctx context.Context, req ReturnRangeRequest) (ReturnRangeResponse, error) {
	return call(ctx, r.calls, "ReturnRange", req, r.returnRange)
}

func (r *ranges) returnRange(ctx context.Context, req ReturnRangeRequest) (ReturnRangeResponse, error) {
	database, tag, err := hiloKey(req.Database, req.Tag)
	if err != nil {
		return ReturnRangeResponse{}, err
	}
	if err := checkReturn(req); err != nil {
		return ReturnRangeResponse{}, err
	}
	if req.RequestID, err = r.accept(req.RequestID, 0); err != nil {
		return ReturnRangeResponse{}, err
	}
	if err := r.authorize(ctx, rights.Ranges, database, tag); err != nil {
		return ReturnRangeResponse{}, err
	}
	before := r.state.AppliedIndex()
	ret := &raftlogv1.HiLoReturn{Tag: tag, Low: req.Low, High: req.High, Last: req.Last}
	if len(req.Token) > 0 {
		ret.CheckToken, ret.Token = true, binary.BigEndian.Uint64(req.Token)
	}
	e := op.Envelope{Database: database, Request: requestKey(database, req.RequestID, req.fingerprint), Principal: r.holder(ctx)}
	result, err := r.propose(ctx, e, ret, req.RequestID != nil)
	if err != nil {
		return ReturnRangeResponse{}, err
	}
	returned := result.GetHiloReturn()
	if returned == nil {
		return ReturnRangeResponse{}, wrongResult("ReturnRange", result)
	}
	if returned.GetReturned() {
		if result.GetLogIndex() > before { // Otherwise it was given back the first time.
			r.limitsOf(ctx).giveBack(time.Now(), req.High-req.Last)
		}
		r.events.rangeReturned(database, req.High, req.Last)
	}
	return ReturnRangeResponse{Returned: returned.GetReturned(), Max: returned.GetMax(), LogIndex: result.GetLogIndex()}, nil
}

// checkReturn refuses what cannot be meant; whether a return matches a range is
// for the state to say.
func checkReturn(req ReturnRangeRequest) error {
	switch {
	case len(req.Token) != 0 && len(req.Token) != tokenBytes:
		return invalid(ReasonInvalidToken, "token", "the token has %d bytes, not %d", len(req.Token), tokenBytes)
	case req.LowUnknown && (req.Low != 0 || len(req.Token) != 0):
		return invalid(ReasonInvalidLow, "low", "an unknown low goes with neither a number nor a token")
	case !req.LowUnknown && req.Low < 1:
		return invalid(ReasonInvalidLow, "low", "the first number %d is below 1", req.Low)
	case req.High < 1:
		return invalid(ReasonInvalidHigh, "high", "the last number of the range %d is below 1", req.High)
	case req.Last < 0:
		return invalid(ReasonInvalidLast, "last", "the last number used %d is negative", req.Last)
	case len(req.Token) == 0 && !req.WithoutToken && !req.LowUnknown:
		return invalid(ReasonInvalidToken, "token", "the token that came with the range is missing")
	case len(req.Token) != 0 && req.WithoutToken:
		return invalid(ReasonInvalidToken, "token", "there is a token in a return without token")
	}
	return nil
}

func (r ReturnRangeRequest) fingerprint() fingerprint {
	return newFingerprint("ReturnRange").text(r.Database).text(r.Tag).
		number(r.Low).number(r.High).number(r.Last).text(string(r.Token))
}

// SetHiLoRequest raises a counter.
type SetHiLoRequest struct {
	Database string
	Tag      string
	// Max is the new value; not lower than Expected.
	Max int64
	// Expected is the value the caller read, 0 for an unknown tag.
	Expected  int64
	RequestID *RequestID
}

// SetHiLo raises the counter of a tag if it still has the expected value, and returns
// the new one.
func (r *ranges) SetHiLo(ctx context.Context, req SetHiLoRequest) (Value, error) {
	return call(ctx, r.calls, "SetHiLo", req, r.setHiLo)
}

func (r *ranges) setHiLo(ctx context.Context, req SetHiLoRequest) (Value, error) {
	database, tag, err := hiloKey(req.Database, req.Tag)
	if err != nil {
		return Value{}, err
	}
	// A set may bring the counter into being, so the tag must be one that ranges
	// can be asked of.
	if err := docid.ValidateTag(req.Tag, docid.DefaultSeparator); err != nil {
		return Value{}, badForm(err, "")
	}
	if req.Expected < 0 {
		return Value{}, invalid(ReasonInvalidExpected, "expected", "the expected value %d is negative", req.Expected)
	}
	if req.Max < req.Expected {
		return Value{}, invalid(ReasonInvalidMax, "max",
			"max %d is lower than the expected value %d: a counter only rises this way", req.Max, req.Expected)
	}
	if req.RequestID, err = r.accept(req.RequestID, 0); err != nil {
		return Value{}, err
	}
	need := r.toRaise(uint64(req.Max - req.Expected))
	if err := r.allow(ctx, need, target{targetTag, database, tag}, 1); err != nil {
		return Value{}, err
	}
	e := op.Envelope{Database: database, Request: requestKey(database, req.RequestID, func() fingerprint {
		return newFingerprint("SetHiLo").text(req.Database).text(req.Tag).number(req.Max).number(req.Expected)
	})}
	var res Value
	err = r.audited(ctx, audit.Record{Event: audit.EventSetHiLo, Database: database, Name: tag, Before: req.Expected, After: req.Max}, func() (change, error) {
		result, err := r.propose(ctx, e, &raftlogv1.HiLoSet{Tag: tag, Max: req.Max, Expected: req.Expected}, req.RequestID != nil)
		res, err = value("SetHiLo", result, err)
		return change{index: res.LogIndex, before: req.Expected, after: res.Value}, err
	})
	return res, err
}

// hiloKey checks and folds database and tag of a call that names no separator.
// A tag may have been made under any separator, so only the forms that none
// allows are refused.
func hiloKey(database, tag string) (foldedDatabase, foldedTag string, err error) {
	foldedDatabase, err = databaseKey(database)
	if err != nil {
		return "", "", err
	}
	if err := docid.ValidateTag(tag, docid.DefaultSeparator); err != nil && docid.ValidateTag(tag, anySeparator) != nil {
		return "", "", badForm(err, "tag")
	}
	foldedTag = docid.Fold(tag)
	if err := checkFolded(foldedTag, docid.MaxNameBytes, ReasonInvalidTag, "tag"); err != nil {
		return "", "", err
	}
	return foldedDatabase, foldedTag, nil
}
