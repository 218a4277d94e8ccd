package httpapi

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/service"
)

// params are the parameters of one call. The first one that is wrong is kept in
// err; later reads return zero values. Names have no case, as with
// RavenDB, and a parameter that is blank counts as absent.
type params struct {
	values map[string][]string
	// keys are the values of the header Idempotency-Key.
	keys []string
	err  error
}

// parseParams reads a raw query. Some clients send values as they are, so what net/url refuses is
// a character like any other here: a semicolon, and a percent sign that begins no escape.
func parseParams(rawQuery string, keys []string) *params {
	p := &params{values: make(map[string][]string), keys: keys}
	for pair := range strings.SplitSeq(rawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name = strings.ToLower(unescape(name))
		p.values[name] = append(p.values[name], unescape(value))
	}
	return p
}

// unescape undoes percent encoding, and leaves invalid escapes unchanged.
func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	var b strings.Builder
	for s != "" {
		n := 1
		if s[0] == '%' {
			n = min(3, len(s))
		}
		plain, err := url.QueryUnescape(s[:n])
		if err != nil {
			plain, n = s[:1], 1
		}
		b.WriteString(plain)
		s = s[n:]
	}
	return b.String()
}

func (p *params) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &apierror.Error{
			Code: apierror.CodeInvalidArgument, Reason: apierror.ReasonInvalidRequest, Message: fmt.Sprintf(format, args...),
		}
	}
}

// text returns a parameter, or "" if it is absent. One that is given twice is
// refused: either of the two may be the wrong one.
func (p *params) text(name string) string {
	values := p.values[strings.ToLower(name)]
	switch {
	case len(values) > 1:
		p.fail("the parameter %s is given %d times", name, len(values))
		return ""
	case len(values) == 0 || strings.TrimSpace(values[0]) == "":
		return ""
	}
	return values[0]
}

func (p *params) needed(name string) string {
	value := p.text(name)
	if value == "" {
		p.fail("the parameter %s is missing", name)
	}
	return value
}

func (p *params) number(name string, absent int64) int64 {
	value := p.text(name)
	if value == "" {
		return absent
	}
	// A plus sign arrives as a space.
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if err != nil {
		p.fail("the parameter %s is %.64q, not a whole number from %d to %d", name, value, math.MinInt64, math.MaxInt64)
	}
	return n
}

func (p *params) neededNumber(name string) int64 {
	_ = p.needed(name)
	return p.number(name, 0)
}

func (p *params) flag(name string) bool {
	switch value := strings.TrimSpace(p.text(name)); strings.ToLower(value) {
	case "", "false":
		return false
	case "true":
		return true
	default:
		p.fail("the parameter %s is %.64q, neither true nor false", name, value)
		return false
	}
}

// time returns a time, and whether there is one. Clients write "never" as the
// first year there is, in some time zone: whatever is before 1970 counts as that.
// So does what is no time, as with RavenDB: at worst it costs the growth of ranges.
func (p *params) time(name string) (at time.Time, given bool) {
	value := p.text(name)
	if value == "" {
		return time.Time{}, false
	}
	at, ok := parseTime(value)
	return at, ok && at.Unix() >= 0
}

func (p *params) requestID() *idnodev1.RequestId {
	id, err := service.IdempotencyKey(p.keys, p.text("raft-request-id"))
	if err != nil && p.err == nil {
		p.err = err
	}
	if id == "" {
		return nil
	}
	return &idnodev1.RequestId{Id: id}
}

// timeFormat is how RavenDB writes a time: in UTC, in units of 100 ns.
const timeFormat = "2006-01-02T15:04:05.0000000Z"

// timeForm is RFC 3339 with at most nine fraction digits, and without a zone as RavenDB's clients
// also write it. The plus sign of a zone that is not escaped arrives as a space.
var timeForm = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?)([Zz]|[-+ ]\d{2}:\d{2})?$`)

// parseTime reads a time; without a zone it is in UTC.
func parseTime(s string) (time.Time, bool) {
	parts := timeForm.FindStringSubmatch(strings.TrimSpace(s))
	if parts == nil {
		return time.Time{}, false
	}
	zone := strings.ToUpper(strings.Replace(parts[3], " ", "+", 1))
	if zone == "" {
		zone = "Z"
	}
	t, err := time.Parse(time.RFC3339, parts[1]+"T"+parts[2]+zone)
	return t.UTC(), err == nil
}
