package httpapi

import (
	"regexp"
	"strings"
	"time"
)

// timeFormat is how RavenDB writes a time: in UTC, in units of 100 ns.
const timeFormat = "2006-01-02T15:04:05.0000000Z"

// timeForm is RFC 3339 with at most nine fraction digits, and without a zone as
// RavenDB's clients also write it. The plus sign of a zone that is not escaped
// arrives as a space.
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
