package client

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
)

// Series gives documents numbers without an unexplained gap: a number belongs to a document's
// key, and a repeated request returns the same number. Store the document without a number,
// take a number for the document's own id, store the number, and confirm it. It is safe for
// concurrent use.
//
// A Series is defined with the command line, 'idnode series define'.
type Series struct {
	client *Client
	name   string
	opts   options
}

// Series returns the series with this name. It makes no call. WithDatabase applies to all calls of
// the handle that have no such option themselves. Another option is refused by the calls.
func (c *Client) Series(name string, opts ...Option) Series {
	return Series{client: c, name: name, opts: c.options(opts, 0)}
}

// NumberState is the state of a number.
type NumberState string

// The states of a number.
const (
	// NumberOpen: the number was taken.
	NumberOpen NumberState = "open"
	// NumberConfirmed: the number is final.
	NumberConfirmed NumberState = "confirmed"
	// NumberVoided: the number belongs to no document.
	NumberVoided NumberState = "voided"
	// NumberReleased: the number was given back, and another key may get it.
	NumberReleased NumberState = "released"
	// NumberUnknown: after a restore or a recovery it is not known whether a document has the
	// number. No other key gets it.
	NumberUnknown NumberState = "unknown"
)

// DocumentNumber is the number of a document.
type DocumentNumber struct {
	// Key is the document's key; of an unknown number, the last known key.
	Key string
	// Text is the number in the series' format.
	Text string
	// Scope is the period, in which numbers begin again, and the values of the format; Number
	// is the number in it.
	Scope  []string
	Number int64
	State  NumberState
	// Overdue means that the number is open and its time has ended.
	Overdue bool
	// Date is the document's date, as 2026-12-31.
	Date string
	// Taken is when the key got the number, by the leader's clock, and Expires when its time
	// ends; the zero time means never.
	Taken, Expires time.Time
	Label          string
	// Reason is the reason of a voided number.
	Reason string
	// Note is that of the range which an authority allotted.
	Note string
}

// NumberRequest asks for numbers.
type NumberRequest struct {
	// Keys are the documents' keys, each once: 1 to 1,000 keys of 1 to 128 bytes.
	Keys []string
	// Values are the format's values, as branch: BERLIN.
	Values map[string]string
	// Date is the document's date, as 2026-12-31; empty means today in the series' zone.
	Date string
	// Label is stored with each new number; at most 64 bytes.
	Label string
	// ExpiresIn, if not 0, replaces the definition's: at least a minute, and at most the
	// definition's.
	ExpiresIn time.Duration
	// Number, if not 0, is what the document of the only key has already, from another tool or by
	// hand, and Because why it is entered. It becomes confirmed; numbers that it passes over are
	// voided for that reason.
	Number  int64
	Because string
}

// Take gives each key a number, or fails for all. A key keeps its number: check its State, for
// it can be voided. The other keys get consecutive numbers in their order. The errors are
// ErrKeyConflict, ErrConcurrency (the series was redefined meanwhile: repeat the call),
// ErrSeriesSuspended, ErrNotFound, ErrInvalid and those of every call.
func (s Series) Take(ctx context.Context, want NumberRequest, opts ...Option) ([]DocumentNumber, error) {
	o := s.opts.with(opts, 0)
	req := &idnodev1.TakeNumbersRequest{
		Database: o.database, Series: s.name, Keys: want.Keys, Values: want.Values, Date: want.Date, Label: want.Label,
		Number: want.Number, Because: want.Because,
	}
	if want.ExpiresIn != 0 {
		req.ExpiresIn = durationpb.New(want.ExpiresIn)
	}
	r, err := invoke(ctx, s.client, o, changes, (*api).TakeNumbers, req)
	return documentNumbers(r.GetNumbers()), err
}

// Confirm makes all numbers final, or none. Of each, Key and Number count; a Number of 0 means
// the key's number. The errors are ErrReservationExpired, ErrConcurrency for a key that has
// another number, ErrNotFound, ErrInvalid and those of every call.
func (s Series) Confirm(ctx context.Context, numbers []DocumentNumber, opts ...Option) ([]DocumentNumber, error) {
	o := s.opts.with(opts, 0)
	req := &idnodev1.ConfirmNumbersRequest{Database: o.database, Series: s.name, Keys: numberKeys(numbers)}
	r, err := invoke(ctx, s.client, o, changes, (*api).ConfirmNumbers, req)
	return documentNumbers(r.GetNumbers()), err
}

// Void records that open numbers belong to no document, with a reason of 1 to 128 bytes.
// Numbers and errors are those of Confirm.
func (s Series) Void(ctx context.Context, numbers []DocumentNumber, reason string, opts ...Option) ([]DocumentNumber, error) {
	o := s.opts.with(opts, 0)
	req := &idnodev1.VoidNumbersRequest{Database: o.database, Series: s.name, Keys: numberKeys(numbers), Reason: reason}
	r, err := invoke(ctx, s.client, o, changes, (*api).VoidNumbers, req)
	return documentNumbers(r.GetNumbers()), err
}

// Release gives open numbers back: another key may get them, or they are voided, by the
// series' policy. Numbers and errors are those of Confirm.
func (s Series) Release(ctx context.Context, numbers []DocumentNumber, opts ...Option) ([]DocumentNumber, error) {
	o := s.opts.with(opts, 0)
	req := &idnodev1.ReleaseNumbersRequest{Database: o.database, Series: s.name, Keys: numberKeys(numbers)}
	r, err := invoke(ctx, s.client, o, changes, (*api).ReleaseNumbers, req)
	return documentNumbers(r.GetNumbers()), err
}

// Reconcile decides all given unknown numbers of a scope, or none. Of each, Number and Key
// count: a key confirms the number for that document; an empty key voids the number for the
// reason, of which "" means "not in the books". The errors are ErrKeyConflict, ErrNotFound,
// ErrInvalid and those of every call.
func (s Series) Reconcile(ctx context.Context, scope []string, numbers []DocumentNumber, reason string,
	opts ...Option,
) ([]DocumentNumber, error) {
	o := s.opts.with(opts, 0)
	req := &idnodev1.ReconcileNumbersRequest{Database: o.database, Series: s.name, Scope: scope, Reason: reason}
	for _, n := range numbers {
		req.Numbers = append(req.Numbers, &idnodev1.ReconciledNumber{Number: n.Number, Key: n.Key})
	}
	r, err := invoke(ctx, s.client, o, changes, (*api).ReconcileNumbers, req)
	return documentNumbers(r.GetNumbers()), err
}

// Find returns the number of a key. It fails with ErrNotFound if the key has none.
func (s Series) Find(ctx context.Context, key string, opts ...Option) (DocumentNumber, error) {
	o := s.opts.with(opts, isRead)
	req := &idnodev1.WhoHasRequest{Database: o.database, Series: s.name, By: &idnodev1.WhoHasRequest_Key{Key: key}, Consistency: o.consistency}
	r, err := invoke(ctx, s.client, o, reads, (*api).WhoHas, req)
	if err != nil {
		return DocumentNumber{}, err
	}
	return documentNumber(r.GetNumber()), nil
}

func numberKeys(numbers []DocumentNumber) []*idnodev1.NumberOf {
	keys := make([]*idnodev1.NumberOf, len(numbers))
	for i, n := range numbers {
		keys[i] = &idnodev1.NumberOf{Key: n.Key, Number: n.Number}
	}
	return keys
}

func documentNumbers(list []*idnodev1.SeriesNumber) (numbers []DocumentNumber) {
	for _, m := range list {
		numbers = append(numbers, documentNumber(m))
	}
	return numbers
}

func documentNumber(m *idnodev1.SeriesNumber) DocumentNumber {
	return DocumentNumber{
		Key: m.GetKey(), Text: m.GetText(), Scope: m.GetScope(), Number: m.GetNumber(), State: numberStates[m.GetState()],
		Overdue: m.GetOverdue(), Date: m.GetDate(), Taken: timeOf(m.GetTaken()), Expires: timeOf(m.GetExpires()),
		Label: m.GetLabel(), Reason: m.GetReason(), Note: m.GetNote(),
	}
}

var numberStates = map[idnodev1.NumberState]NumberState{
	idnodev1.NumberState_NUMBER_STATE_OPEN: NumberOpen, idnodev1.NumberState_NUMBER_STATE_CONFIRMED: NumberConfirmed,
	idnodev1.NumberState_NUMBER_STATE_VOIDED: NumberVoided, idnodev1.NumberState_NUMBER_STATE_RELEASED: NumberReleased,
	idnodev1.NumberState_NUMBER_STATE_UNKNOWN: NumberUnknown,
}
