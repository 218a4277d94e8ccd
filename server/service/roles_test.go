package service

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
)

// TestRightsHaveTheirNumbers: the API's rights are those of package rights, in
// the same order.
func TestRightsHaveTheirNumbers(t *testing.T) {
	for i, right := range rights.All.List() {
		name := right.String()
		want := idnodev1.Right(idnodev1.Right_value["RIGHT_"+strings.ToUpper(name)])
		if got := apiRight(right); got != want || int(want) != i+1 {
			t.Errorf("%s is %v, want %v, number %d", name, got, want, i+1)
		}
		if got := rightsOf([]idnodev1.Right{want}); got != right {
			t.Errorf("%v is %s", want, got)
		}
	}
	if len(idnodev1.Right_name) != len(rights.All.List())+1 {
		t.Errorf("the API has %d rights", len(idnodev1.Right_name)-1)
	}
}

// TestRolesThereAndBack: the roles read are the roles set.
func TestRolesThereAndBack(t *testing.T) {
	want := Roles{
		Roles: []rights.Role{{Name: "a", Principals: []string{"x", "y"}, Grants: []rights.Grant{
			{Database: "db", Prefix: "p", Rights: rights.Read | rights.Cluster}, {Database: "*", Rights: rights.Backup},
		}}},
		Limits: []rights.Limit{{Principals: []string{"*"}, InFlight: 1, IDsPerSecond: 2}},
	}
	if diff := cmp.Diff(want, RolesOf(want.Message())); diff != "" {
		t.Error(diff)
	}
}

// TestUnknownRightsAreRefused: a right of a later API must not be dropped.
func TestUnknownRightsAreRefused(t *testing.T) {
	for _, r := range []idnodev1.Right{0, 12, -1, 32, 33} {
		set := rightsOf([]idnodev1.Right{idnodev1.Right_RIGHT_READ, r})
		_, err := rights.New([]rights.Role{{Name: "a", Principals: []string{"x"}, Grants: []rights.Grant{{Database: "*", Rights: set}}}}, nil)
		if err == nil {
			t.Errorf("right %d is accepted", r)
		}
	}
}
