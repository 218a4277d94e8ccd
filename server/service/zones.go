package service

import (
	_ "embed"
	"strings"
	"sync"
	"time"

	"github.com/idnode/idnode/series/format"
)

// zoneNames has the names of the IANA time zones, one per line, between line ends. They are
// those of Go's time/tzdata, which the program carries, so every node has all of them. The files
// of a system have others: localtime is another zone on each node, and right/… counts leap
// seconds.
//
//go:embed zonenames.txt
var zoneNames string

// zones are the time zones by their names. The zero value is ready.
type zones struct {
	// loaded caches the requested zones: loading one reads a file.
	loaded sync.Map
}

// has reports whether there is a zone; "" is UTC.
func (z *zones) has(name string) bool { return z.of(name) != nil }

// of returns a zone; nil if it does not exist.
func (z *zones) of(name string) *time.Location {
	if name == "" {
		return time.UTC
	}
	if zone, ok := z.loaded.Load(name); ok {
		return zone.(*time.Location)
	}
	if strings.Contains(name, "\n") || !strings.Contains(zoneNames, "\n"+name+"\n") {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	z.loaded.Store(name, zone)
	return zone
}

// offset returns the offset of a zone from UTC at a time, in seconds. A zone that is missing in an
// older table counts as UTC.
func (z *zones) offset(name string, at time.Time) int32 {
	zone := z.of(name)
	if zone == nil {
		return 0
	}
	_, offset := at.In(zone).Zone()
	return int32(offset)
}

// date returns the date in a zone at a time.
func (z *zones) date(name string, at time.Time) format.Date {
	return format.DateAt(at.UnixNano(), z.offset(name, at))
}
