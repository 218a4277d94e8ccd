package main

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
)

// TestTheMostTellingErrorWins: what a node of the cluster says about it comes before
// what an endpoint alone could not do, in whatever order they are asked.
func TestTheMostTellingErrorWins(t *testing.T) {
	noQuorum := newFakeNode(t, refuse(failure(t, codes.Unavailable, "NO_QUORUM", "no leader"))).addr
	stopping := newFakeNode(t, refuse(failure(t, codes.Unavailable, "STOPPING", "bye"))).addr
	foreign := newFakeNode(t, refuse(failure(t, codes.Unimplemented, "", "404"))).addr
	nobody := unusedAddr(t)
	for _, tt := range []struct {
		endpoints []string
		want      string
	}{
		{[]string{noQuorum, nobody}, "NO_QUORUM: "},
		{[]string{nobody, noQuorum}, "NO_QUORUM: "},
		{[]string{noQuorum, stopping, nobody}, "NO_QUORUM: "},
		{[]string{nobody, stopping, foreign}, "STOPPING: "},
		{[]string{foreign, nobody}, "UNIMPLEMENTED: "},
		{[]string{nobody}, "UNAVAILABLE: cannot reach"},
	} {
		got := command(t, "identity", "get", "users", "--endpoint", strings.Join(tt.endpoints, ","))
		if !strings.HasPrefix(got.stderr, "idnode: "+tt.want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%v: %+v, want %s in one line", tt.endpoints, got, tt.want)
		}
		if len(tt.endpoints) > 1 && !strings.Contains(got.stderr, "(tried "+strings.Join(tt.endpoints, ", ")+")") {
			t.Errorf("%q does not name all endpoints in their order", got.stderr)
		}
	}

	got := command(t, "identity", "get", "users", "-v", "--endpoint", noQuorum+","+nobody)
	lines := strings.Split(strings.TrimSuffix(got.stderr, "\n"), "\n")
	if got.code != exitUnavailable || len(lines) != 3 || !strings.HasPrefix(lines[0], "idnode: NO_QUORUM: ") ||
		!strings.HasPrefix(lines[1], "idnode: "+noQuorum+": NO_QUORUM: no leader") ||
		!strings.HasPrefix(lines[2], "idnode: "+nobody+": UNAVAILABLE: ") {
		t.Errorf("with -v: %+v", got)
	}
}
