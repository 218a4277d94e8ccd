package format

import (
	"errors"
	"strings"
	"testing"
)

// TestNamesLikeADate are refused as values, with the token that is meant: whoever writes
// them wants the document's date, and would find out with the first number.
func TestNamesLikeADate(t *testing.T) {
	for token, names := range map[string]string{
		"{year}":       "yyyy YYYY yyy y Y YY yr jjjj JJ aaaa years year2 year-short YEAR Year short-year invoice_year order-year calendar-year",
		"{month}":      "mm MM mmm MMMM m M mon mth months month-name month2 MONTH invoice_month",
		"{day}":        "dd DD ddd d D days DAY day-of-month dayofweek dow order-day",
		"{month}{day}": "doy DOY yday julian",
		"{year}-{month}-{day}": "date DATE Date dates datetime date-time today now ymd Ymd dmy mdy yyyymm YYYYMMDD yymmdd ddmmyyyy " +
			"yyyy-mm dd.mm.yyyy yyyy/mm/dd YYMM mmdd order-date invoice_date doc-date issue-date iso-date",
		"{week}": "w ww WW woy kw weeks weekday week-no weeknum week-yy WEEK iso-week isoweek calendar-week",
		"{fiscal-year:04-01}": "fy FY fyy fyyy FYYY fy-end tfy fiscal fiscalyear fiscal_year fiscal-year-start fiscal-yyyy Fiscal-Year " +
			"fiscal-month financial-year tax-year",
		"{period}":    "q Q qq qtr quarter QUARTER quarters quarter-year",
		"time of day": "h hh HH hour hours hour24 h24 hhmm HHMMSS hms min minute minutes sec second seconds ss time TIME timestamp yyyymmddhhmm",
	} {
		for name := range strings.FieldsSeq(names) {
			for _, option := range []string{"", ":2"} {
				_, err := Define("A-{"+name+option+"}-{number:4}", ResetNever)
				var wrong *Error
				if !errors.As(err, &wrong) || wrong.Position != 2 || !strings.Contains(wrong.Detail, "{"+name+"}, which is no token: ") ||
					!strings.Contains(wrong.Detail, token) {
					t.Errorf("{%s}: %v, want a hint at %s", name, err, token)
				}
			}
		}
	}
}

// TestNamesOfValues: what tells documents apart is free to be named.
func TestNamesOfValues(t *testing.T) {
	for name := range strings.FieldsSeq(`branch till client shop store kind type period part shift region country state plant machine device
		customer cust vendor series prefix code unit site desk team dept department division market model mode source channel domain
		data datev day-shift dome dock dom door sender second-shop minor secret hall house host timer team-a user kwh weight
		yard yield monaco money mandant mm1 y2 m1 d1 q1 h1 s t i n a b c e ms my md mo am pm de dm ad daily dayton fiscal-id fiscal-code
		fiscal-device from to order invoice document doc bill issue iso full long short calendar current order-type doc-kind bill-to`) {
		if f, err := Define("A-{"+name+"}-{number:4}", ResetNever); err != nil || len(f.Names()) != 1 {
			t.Errorf("{%s}: %v", name, err)
		}
	}
}

// TestTokensAreNoValues: each hint names tokens only.
func TestTokensAreNoValues(t *testing.T) {
	for _, n := range dateNames {
		for _, token := range strings.SplitAfter(n.means, "}") {
			if _, token, ok := strings.Cut(token, "{"); ok && token != "period}" {
				if f, err := Define("{"+token+"-{number}", ResetNever); err != nil || len(f.Names()) != 0 {
					t.Errorf("{%s is none: %v", token, err)
				}
			}
		}
	}
	for name := range dateTokens {
		if _, found := likeDate(name); !found {
			t.Errorf("{%s} in large letters would be a value", name)
		}
	}
}
