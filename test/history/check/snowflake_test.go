package check_test

import (
	"testing"

	"github.com/idnode/idnode/test/history"
)

// lease, renew and free are calls for the lease with a token, and made are ids of it: time × 10 +
// worker. Times are both included.
func lease(token string, worker, low, high, call, ret int64, options ...option) history.Op {
	return op(history.Lease, call, ret, append([]option{tag(token), result(worker), bounds(low, high)}, options...)...)
}

func renew(token string, high, call, ret int64, options ...option) history.Op {
	return op(history.Renew, call, ret, append([]option{tag(token), bounds(0, high)}, options...)...)
}

func free(token string, last, call, ret int64, options ...option) history.Op {
	return op(history.Free, call, ret, append([]option{tag(token), func(o *history.Op) { o.Last = last }}, options...)...)
}

func evict(worker, call, ret int64, options ...option) history.Op {
	return op(history.Evict, call, ret, append([]option{result(worker)}, options...)...)
}

func made(token string, worker, time, at int64) history.Op {
	return op(history.Make, at, at, tag(token), result(worker), bounds(time, time), got(time*10+worker, time*10+worker))
}

func TestWorkers(t *testing.T) {
	verdicts{
		{"two workers at once", "", []history.Op{lease("a", 0, 1, 9, 1, 2), lease("b", 1, 1, 9, 1, 2), made("a", 0, 5, 3), made("b", 1, 5, 3)}},
		{"one window after the other", "", []history.Op{
			lease("a", 0, 1, 9, 1, 2), lease("b", 0, 10, 19, 11, 12), made("a", 0, 9, 20), made("b", 0, 10, 20),
		}},
		// A lock passes with its time, and its holder was paused.
		{"a lock", "workers/overlap", []history.Op{lease("a", 0, 1, 30, 1, 2), lease("b", 0, 20, 50, 20, 21)}},
		{"the paused holder of a lock", "workers/outside", []history.Op{
			lease("a", 0, 1, 9, 1, 2), lease("b", 0, 10, 19, 10, 11), made("b", 0, 12, 12), made("a", 0, 12, 12),
		}},
		{"its ids", "workers/twice", []history.Op{
			lease("a", 0, 1, 9, 1, 2), lease("b", 0, 10, 19, 10, 11), made("b", 0, 12, 12), made("a", 0, 12, 12),
		}},
		{"renewed", "", []history.Op{lease("a", 0, 1, 9, 1, 2), renew("a", 19, 3, 4), made("a", 0, 15, 5), lease("b", 0, 20, 29, 30, 31)}},
		{"renewed over another's window", "workers/overlap", []history.Op{
			lease("a", 0, 1, 9, 1, 2), lease("b", 0, 10, 19, 11, 12), renew("a", 12, 13, 14),
		}},
		{"perhaps renewed", "workers/outside", []history.Op{lease("a", 0, 1, 9, 1, 2), renew("a", 19, 3, 4, unknown), made("a", 0, 15, 5)}},
		{"renewed later", "workers/outside", []history.Op{lease("a", 0, 1, 9, 1, 2), made("a", 0, 15, 3), renew("a", 19, 4, 5)}},
		{"given back", "", []history.Op{lease("a", 0, 1, 9, 1, 2), made("a", 0, 3, 3), free("a", 3, 4, 5), lease("b", 0, 4, 13, 6, 7)}},
		{"perhaps given back", "", []history.Op{lease("a", 0, 1, 9, 1, 2), free("a", 3, 4, 0, unknown), lease("b", 0, 4, 13, 6, 7)}},
		{"not given back", "workers/overlap", []history.Op{lease("a", 0, 1, 9, 1, 2), free("a", 3, 4, 5, failed), lease("b", 0, 4, 13, 6, 7)}},
		{"the time of the last id is given again", "workers/overlap", []history.Op{
			lease("a", 0, 1, 9, 1, 2), free("a", 3, 4, 5), lease("b", 0, 3, 13, 6, 7),
		}},
		{"an id after it was given back", "workers/outside", []history.Op{lease("a", 0, 1, 9, 1, 2), free("a", 3, 4, 5), made("a", 0, 4, 6)}},
		{"nothing was used", "", []history.Op{lease("a", 0, 1, 9, 1, 2), free("a", 0, 4, 5), lease("b", 0, 1, 10, 6, 7)}},
		{"evicted, and its window ends by itself", "", []history.Op{
			lease("a", 0, 1, 9, 1, 2), evict(0, 3, 4), made("a", 0, 9, 5), lease("b", 0, 10, 19, 6, 7),
		}},
		{"given to another before the evicted window ends", "workers/overlap", []history.Op{
			lease("a", 0, 1, 9, 1, 2), evict(0, 3, 4), lease("b", 0, 5, 14, 6, 7),
		}},
		{"renewed after it was evicted", "workers/evicted", []history.Op{lease("a", 0, 1, 9, 1, 2), evict(0, 3, 4), renew("a", 19, 5, 6)}},
		{"released after it was evicted", "workers/evicted", []history.Op{lease("a", 0, 1, 9, 1, 2), evict(0, 3, 4), free("a", 3, 5, 6)}},
		{"perhaps released after it was evicted", "", []history.Op{lease("a", 0, 1, 9, 1, 2), evict(0, 3, 4), free("a", 3, 5, 0, unknown)}},
		{"perhaps released after it was evicted, and given to another", "workers/overlap", []history.Op{
			lease("a", 0, 1, 9, 1, 2), evict(0, 3, 4), free("a", 3, 5, 0, unknown), lease("b", 0, 4, 13, 6, 7),
		}},
		{"renewed while it is evicted", "", []history.Op{lease("a", 0, 1, 9, 1, 2), evict(0, 3, 6), renew("a", 19, 4, 5)}},
		{"perhaps evicted", "", []history.Op{lease("a", 0, 1, 9, 1, 2), evict(0, 3, 0, unknown), renew("a", 19, 5, 6)}},
		{"leased while another lease is evicted", "", []history.Op{lease("a", 0, 1, 9, 1, 5), evict(0, 3, 4), renew("a", 19, 6, 7)}},
		{"another worker is evicted", "", []history.Op{lease("a", 0, 1, 9, 1, 2), evict(1, 3, 4), renew("a", 19, 5, 6)}},
		{"before the window", "workers/outside", []history.Op{lease("a", 0, 5, 9, 1, 2), made("a", 0, 4, 3)}},
		{"another worker's id", "workers/outside", []history.Op{lease("a", 0, 1, 9, 1, 2), made("a", 1, 4, 3)}},
		{"nobody's lease", "workers/outside", []history.Op{made("a", 0, 4, 3)}},
		{"one id twice", "workers/twice", []history.Op{lease("a", 0, 1, 9, 1, 2), made("a", 0, 5, 3), made("a", 0, 5, 4)}},
		{"ids of a node", "workers/twice", []history.Op{made("", 0, 5, 3), made("", 0, 5, 4)}},
		{"other ids of a node", "", []history.Op{made("", 0, 5, 3), made("", 0, 6, 4)}},
		{"a window without a time", "malformed", []history.Op{lease("a", 0, 9, 8, 1, 2)}},
		{"a repeated call", "", []history.Op{lease("a", 0, 1, 9, 1, 2, request("r")), lease("a", 0, 1, 9, 3, 4, request("r"))}},
		{"a repeated call has another window", "requests/answers", []history.Op{
			lease("a", 0, 1, 9, 1, 2, request("r")), lease("a", 0, 1, 19, 3, 4, request("r")),
		}},
		{"another pool", "", []history.Op{lease("a", 0, 1, 9, 1, 2), lease("b", 0, 1, 9, 1, 2, name("other"))}},
	}.run(t)
}
