package service

import (
	"archive/zip"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // As the program has it.

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/server/apierror"
)

// TestZonesAreThoseOfEveryNode: no name of the files that a system has beside them.
func TestZonesAreThoseOfEveryNode(t *testing.T) {
	var z zones
	for _, name := range strings.Fields(zoneNames) {
		if !z.has(name) {
			t.Errorf("there is no zone %s", name)
		}
	}
	for _, name := range []string{"", "UTC", "GMT", "Europe/Berlin", "Asia/Kolkata", "US/Eastern", "Etc/GMT+12", "EST5EDT", "GB"} {
		if !z.has(name) {
			t.Errorf("there is no zone %s", name)
		}
	}
	for _, name := range []string{
		"localtime", "posixrules", "Local", "local", "right/UTC", "right/Europe/Berlin", "posix/Europe/Berlin", "Factory", "posix", "Europe",
		"europe/berlin", "Europe/Berlin ", " UTC", "Europe//Berlin", "Europe/../UTC", "./UTC", "../zoneinfo/UTC", "/etc/localtime", "tzdata.zi",
		"zone.tab", "iso3166.tab", "leapseconds", "+02:00", "UTC\nGMT", "\n", "Mars/Crater", "berlin", "GMT\x00",
	} {
		if z.has(name) {
			t.Errorf("there is a zone %q", name)
		}
	}
	if summer := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC); z.offset("Europe/Berlin", summer) != 7200 || z.offset("localtime", summer) != 0 {
		t.Error("offsets are wrong")
	}
}

// TestZoneNamesAreThoseOfGo fails when Go has another table. Then write the list anew:
//
//	(echo; unzip -Z1 $(go env GOROOT)/lib/time/zoneinfo.zip | grep -v '/$' | grep -vx Factory | LC_ALL=C sort) > zonenames.txt
func TestZoneNamesAreThoseOfGo(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("there is no Go here: %v", err)
	}
	table, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Skipf("Go has no table here: %v", err)
	}
	defer table.Close()
	var names []string
	for _, file := range table.File {
		if !strings.HasSuffix(file.Name, "/") && file.Name != "Factory" {
			names = append(names, file.Name)
		}
	}
	slices.Sort(names)
	if got := strings.Fields(zoneNames); !slices.Equal(got, names) {
		t.Errorf("%d names, Go has %d", len(got), len(names))
	}
}

// TestARightIsJudgedBeforeAZone is looked for: who may not define series learns nothing.
func TestARightIsJudgedBeforeAZone(t *testing.T) {
	n := newSeriesNode(t, nil)
	all := []rights.Grant{{Database: "*", Rights: rights.Generate}}
	n.setRoles(t, everything(), rights.Role{Name: "till", Principals: []string{"till"}, Grants: all})
	crater := series.Definition{Format: "{number}", TimeZone: "Mars/Crater"}
	_, err := n.DefineSeries(as("till"), &idnodev1.DefineSeriesRequest{Name: "x", Definition: definitionMessage(crater)})
	var denied *apierror.Error
	if !errors.As(err, &denied) || denied.Code != apierror.CodePermissionDenied {
		t.Errorf("%v", err)
	}
}
