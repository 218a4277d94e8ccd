package service

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/hilo"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/reserve"
)

// tokenDigits is the length of the token of a range or a lease.
const tokenDigits = 16

// tokenText returns a token as the API has it.
func tokenText(token uint64) string { return fmt.Sprintf("%0*x", tokenDigits, token) }

func parseToken(text string) (uint64, error) {
	token, err := strconv.ParseUint(text, 16, 64)
	if err != nil || text != tokenText(token) {
		return 0, apierror.Invalid(apierror.ReasonInvalidToken, "token", "the token is not %d digits of lower-case hex", tokenDigits)
	}
	return token, nil
}

type ranges struct {
	*base
	serverPrefix string
	// reserves may be nil; answered are the calls that it answered.
	reserves    Reserves
	answered    answered
	ownReserves func() []reserve.Left
}

// NextRange reserves the next HiLo range of a tag for the caller.
func (r *ranges) NextRange(ctx context.Context, req *idnodev1.NextRangeRequest) (*idnodev1.NextRangeResponse, error) {
	return r.NextRangeUpTo(ctx, req, 0)
}

// NextRangeUpTo is NextRange, and refuses a range that would end above maxHigh, unless that
// is 0.
func (r *ranges) NextRangeUpTo(ctx context.Context, req *idnodev1.NextRangeRequest, maxHigh int64) (*idnodev1.NextRangeResponse, error) {
	return admission.UntimedCall(ctx, r.Control, "NextRange", &wantedRange{NextRangeRequest: req, maxHigh: maxHigh}, r.nextRange)
}

// wantedRange is a request for a range. The fields after the first two are set once it was checked.
type wantedRange struct {
	*idnodev1.NextRangeRequest
	maxHigh             int64
	database, separator string
	next                *raftlogv1.HiLoNext
	key                 *op.RequestKey
	// before is the applied index when the call came: an older range was counted the first time.
	before uint64
	// owed is the count of numbers, of the range and of its last_max, that the caller's limit still has
	// to count.
	owed int64
}

func (r *ranges) nextRange(ctx context.Context, w *wantedRange) (*idnodev1.NextRangeResponse, error) {
	var err error
	if w.database, err = databaseKey(w.GetDatabase()); err != nil {
		return nil, err
	}
	if w.separator, err = r.checkRangeText(w.NextRangeRequest); err != nil {
		return nil, err
	}
	if err := checkRangeNumbers(w.NextRangeRequest); err != nil {
		return nil, err
	}
	if w.key, err = r.accept(w.GetRequestId(), 0, w.database, w.fingerprint); err != nil {
		return nil, err
	}
	w.before = r.state.AppliedIndex()
	// How many numbers there will be is not known yet: the rest is counted after.
	what := admission.Target{Kind: admission.TargetTag, Database: w.database, Name: docid.Fold(w.GetTag())}
	if err := r.Allow(ctx, rights.Ranges, what, 1); err != nil {
		return nil, err
	}
	if w.next, err = r.rangePayload(w); err != nil {
		return nil, err
	}
	got, err := r.takeRange(ctx, w)
	if err != nil {
		return nil, err
	}
	if w.owed > 0 {
		r.LimitsOf(ctx).Debit(time.Now(), w.owed)
	}
	r.events.rangeIssued(w.database, docid.Fold(w.GetTag()), got.GetHigh()-got.GetLow()+1)
	return got, nil
}

// fromCluster takes a range through the log. The answer is made of the result alone, so that a
// retry that another node serves gets the first server's tag, prefix and time.
func (r *ranges) fromCluster(ctx context.Context, w *wantedRange) (*idnodev1.NextRangeResponse, error) {
	e := op.Envelope{Database: w.database, Request: w.key, Principal: r.author(ctx)}
	// Asking again is safe even without a request id: a lost range is a hole.
	result, err := r.propose(ctx, e, w.next, true)
	if err != nil {
		return nil, err
	}
	next := result.GetHiloNext()
	got := &idnodev1.NextRangeResponse{
		Prefix: rangePrefix(w.GetTag(), w.separator, next.GetServerPrefix()),
		Low:    next.GetLow(), High: next.GetHigh(), Size: next.GetSize(),
		RangeAt:  timestamppb.New(time.Unix(0, next.GetTimeUnixNano())),
		Token:    tokenText(next.GetToken()),
		LogIndex: result.GetLogIndex(),
	}
	if next.GetServerPrefix() == "" {
		got.NodeTag = next.GetServerTag()
	}
	if got.GetLogIndex() > w.before {
		w.owed = got.GetHigh() - got.GetLow()
		if result.Before != nil {
			w.owed += got.GetLow() - 1 - result.GetBefore()
		}
	}
	return got, nil
}

func (r *ranges) checkRangeText(req *idnodev1.NextRangeRequest) (string, error) {
	separator, err := docid.ParseSeparator(req.GetSeparator())
	if err != nil {
		return "", badForm(err, "")
	}
	if err := docid.ValidateTag(req.GetTag(), separator); err != nil {
		return "", badForm(err, "")
	}
	label := req.GetLabel()
	if _, invisible := docid.FirstInvisible(label); invisible || len(label) > fsm.MaxLabelBytes || !utf8.ValidString(label) {
		return "", apierror.Invalid(apierror.ReasonInvalidLabel, "label", "the label is longer than %d bytes, or has invisible characters",
			fsm.MaxLabelBytes)
	}
	if err := checkFolded(docid.Fold(req.GetTag()), docid.MaxNameBytes, apierror.ReasonInvalidTag, "tag"); err != nil {
		return "", err
	}
	longest := len(rangePrefix(req.GetTag(), separator, r.serverPrefix)) + numberDigits
	if longest > docid.MaxIDBytes {
		return "", apierror.Invalid(apierror.ReasonInvalidTag, "tag",
			"tag makes ids of up to %d bytes with this node's server prefix, more than %d", longest, docid.MaxIDBytes)
	}
	return separator, nil
}

func checkRangeNumbers(req *idnodev1.NextRangeRequest) error {
	switch {
	case req.GetSize() < 0 || req.GetSize() > hilo.MaxSize:
		return apierror.Invalid(apierror.ReasonInvalidSize, "size", "the size %d is not in 1 to %d", req.GetSize(), hilo.MaxSize)
	case req.GetLastSize() < 0:
		return apierror.Invalid(apierror.ReasonInvalidSize, "last_size", "the last size %d is negative", req.GetLastSize())
	case req.GetLastMax() < 0:
		return apierror.Invalid(apierror.ReasonInvalidLastMax, "last_max", "the last max %d is negative", req.GetLastMax())
	case req.GetLastRangeAt() == nil:
	case req.GetLastRangeAt().CheckValid() != nil: // It would turn into another time.
		return apierror.Invalid(apierror.ReasonInvalidLastRangeAt, "last_range_at", "last_range_at is not a valid time")
	case !fitsUnixNano(req.GetLastRangeAt().AsTime()):
		return apierror.Invalid(apierror.ReasonInvalidLastRangeAt, "last_range_at", "the time of the last range is out of range")
	}
	return nil
}

// fitsUnixNano reports whether t can be written in nanoseconds since 1970, which holds from 1677 to
// 2262.
func fitsUnixNano(t time.Time) bool {
	first, last := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
	return !t.Before(first) && !t.After(last)
}

func (r *ranges) rangePayload(w *wantedRange) (*raftlogv1.HiLoNext, error) {
	tag := r.tag.confirmed()
	if tag == "" {
		// The id of a number in the range ends with the tag, so a range cannot
		// be given before the tag is settled.
		return nil, apierror.Unavailable(apierror.ReasonStarting, "the cluster has not confirmed this node's tag yet", apierror.RetryStarting,
			nil)
	}
	next := &raftlogv1.HiLoNext{
		Tag: docid.Fold(w.GetTag()), Size: w.GetSize(), LastSize: w.GetLastSize(), LastMax: w.GetLastMax(),
		Token: reserve.NewToken(), ServerTag: tag, ServerPrefix: r.serverPrefix, MaxHigh: w.maxHigh,
		Label: w.GetLabel(),
	}
	if at := w.GetLastRangeAt(); at != nil {
		next.HasLastRange, next.LastRangeUnixNano = true, at.AsTime().UnixNano()
	}
	return next, nil
}

func (w *wantedRange) fingerprint() fingerprint {
	f := newFingerprint("NextRange").text(w.GetDatabase()).text(w.GetTag()).text(w.GetSeparator()).
		number(w.GetLastSize()).number(w.GetLastMax()).number(w.GetSize()).time(w.GetLastRangeAt())
	if w.maxHigh > 0 {
		f = f.number(w.maxHigh)
	}
	if w.GetLabel() != "" {
		f = f.text(w.GetLabel())
	}
	return f
}

func rangePrefix(tag, separator, serverPrefix string) string {
	if serverPrefix == "" {
		return tag + separator
	}
	return tag + separator + serverPrefix + separator
}

// ReturnRange returns the unused rest of a range. A return that is late, repeated, foreign or not
// of the newest range is no error.
func (r *ranges) ReturnRange(ctx context.Context, req *idnodev1.ReturnRangeRequest) (*idnodev1.ReturnRangeResponse, error) {
	token, wrong := checkReturn(req)
	return admission.UntimedCall(ctx, r.Control, "ReturnRange", returnedRange{req, token, wrong}, r.returnRange)
}

// ReturnRangeByHigh is ReturnRange for a protocol that carries neither the first number of a
// range nor its token. The range is then matched by its last number and its holder: callers with
// the same name, as all have without TLS, can return each other's.
func (r *ranges) ReturnRangeByHigh(ctx context.Context, req *idnodev1.ReturnRangeRequest) (*idnodev1.ReturnRangeResponse, error) {
	return admission.UntimedCall(ctx, r.Control, "ReturnRange", returnedRange{req, 0, checkReturned(req)}, r.returnRange)
}

type returnedRange struct {
	*idnodev1.ReturnRangeRequest
	// token is the request's, if it has one, and wrong the error in it or in the numbers.
	token uint64
	wrong error
}

func (r *ranges) returnRange(ctx context.Context, req returnedRange) (*idnodev1.ReturnRangeResponse, error) {
	database, tag, err := hiloKey(req.GetDatabase(), req.GetTag())
	if err != nil {
		return nil, err
	}
	if req.wrong != nil {
		return nil, req.wrong
	}
	e, err := r.prepare(ctx, req.GetRequestId(), rights.Ranges, admission.Target{Database: database, Name: tag}, 0, func() fingerprint {
		return newFingerprint("ReturnRange").text(req.GetDatabase()).text(req.GetTag()).
			number(req.GetLow()).number(req.GetHigh()).number(req.GetLast()).text(req.GetToken())
	})
	if err != nil {
		return nil, err
	}
	e.Principal = r.author(ctx)
	before := r.state.AppliedIndex()
	ret := &raftlogv1.HiLoReturn{
		Tag: tag, Low: req.GetLow(), High: req.GetHigh(), Last: req.GetLast(), CheckToken: req.GetToken() != "", Token: req.token,
	}
	result, err := r.propose(ctx, e, ret, false)
	if err != nil {
		return nil, err
	}
	returned := result.GetHiloReturn()
	if returned.GetReturned() {
		if result.GetLogIndex() > before { // Otherwise it was given back the first time.
			r.LimitsOf(ctx).GiveBack(time.Now(), req.GetHigh()-req.GetLast())
		}
		r.events.RangeReturned(database, req.GetHigh()-req.GetLast())
	}
	return &idnodev1.ReturnRangeResponse{Returned: returned.GetReturned(), Max: returned.GetMax(), LogIndex: result.GetLogIndex()}, nil
}

// checkReturn returns the token, if there is one, and refuses malformed returns; the state decides whether a
// return matches a range.
func checkReturn(req *idnodev1.ReturnRangeRequest) (token uint64, err error) {
	given := req.GetToken() != ""
	if given {
		if token, err = parseToken(req.GetToken()); err != nil {
			return 0, err
		}
	}
	if req.GetLow() < 1 {
		return 0, apierror.Invalid(apierror.ReasonInvalidLow, "low", "the first number %d is below 1", req.GetLow())
	}
	if err := checkReturned(req); err != nil {
		return 0, err
	}
	switch {
	case !given && !req.GetWithoutToken():
		return 0, apierror.Invalid(apierror.ReasonInvalidToken, "token", "the token that came with the range is missing")
	case given && req.GetWithoutToken():
		return 0, apierror.Invalid(apierror.ReasonInvalidToken, "token", "there is a token in a return without token")
	}
	return token, nil
}

// checkReturned is the part of checkReturn that every protocol carries.
func checkReturned(req *idnodev1.ReturnRangeRequest) error {
	switch {
	case req.GetHigh() < 1:
		return apierror.Invalid(apierror.ReasonInvalidHigh, "high", "the last number of the range %d is below 1", req.GetHigh())
	case req.Last == nil:
		return apierror.Invalid(apierror.ReasonInvalidLast, "last", "the last number used is missing")
	case req.GetLast() < 0:
		return apierror.Invalid(apierror.ReasonInvalidLast, "last", "the last number used %d is negative", req.GetLast())
	}
	return nil
}

// SetHiLo raises the counter of a tag if it still has the expected value.
func (r *ranges) SetHiLo(ctx context.Context, req *idnodev1.SetHiLoRequest) (*idnodev1.SetHiLoResponse, error) {
	return admission.Call(ctx, r.Control, "SetHiLo", req, r.setHiLo)
}

func (r *ranges) setHiLo(ctx context.Context, req *idnodev1.SetHiLoRequest) (*idnodev1.SetHiLoResponse, error) {
	database, tag, err := hiloKey(req.GetDatabase(), req.GetTag())
	if err != nil {
		return nil, err
	}
	// A set may create the counter, so the tag must be valid for ranges.
	if err := docid.ValidateTag(req.GetTag(), docid.DefaultSeparator); err != nil {
		return nil, badForm(err, "")
	}
	largest, expected := req.GetMax(), req.GetExpected()
	if expected < 0 {
		return nil, apierror.Invalid(apierror.ReasonInvalidExpected, "expected", "the expected value %d is negative", expected)
	}
	if largest < expected {
		return nil, apierror.Invalid(apierror.ReasonInvalidMax, "max",
			"max %d is lower than the expected value %d: a counter only rises this way", largest, expected)
	}
	need, what := r.toRaise(uint64(largest-expected)), admission.Target{Kind: admission.TargetTag, Database: database, Name: tag}
	e, err := r.prepare(ctx, req.GetRequestId(), need, what, 1, func() fingerprint {
		return newFingerprint("SetHiLo").text(req.GetDatabase()).text(req.GetTag()).number(largest).number(expected)
	})
	if err != nil {
		return nil, err
	}
	record := audit.Record{Event: audit.EventSetHiLo, Database: database, Name: tag, Before: expected, After: largest}
	set := &raftlogv1.HiLoSet{Tag: tag, Max: largest, Expected: expected}
	now, err := r.proposeAudited(ctx, record, e, set, false, func(now *raftlogv1.Result) (before, after any) {
		return expected, now.GetValue()
	})
	return &idnodev1.SetHiLoResponse{Max: now.GetValue(), LogIndex: now.GetLogIndex()}, err
}

// hiloKey checks and folds database and tag of a call that names no separator.
// A tag may have been made under any separator, so only the forms that none
// allows are refused.
func hiloKey(database, tag string) (foldedDatabase, foldedTag string, err error) {
	foldedDatabase, err = databaseKey(database)
	if err == nil {
		foldedTag, err = tagKey(tag)
	}
	return foldedDatabase, foldedTag, err
}

func tagKey(tag string) (folded string, err error) {
	if err := docid.ValidateTag(tag, docid.DefaultSeparator); err != nil && docid.ValidateTag(tag, anySeparator) != nil {
		return "", badForm(err, "tag")
	}
	folded = docid.Fold(tag)
	return folded, checkFolded(folded, docid.MaxNameBytes, apierror.ReasonInvalidTag, "tag")
}
