package layering

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rooms are the folders in which a kind of id has files.
var rooms = []string{
	"client", "client/idnodev1", "cmd/idnode", "fsm", "fsm/op", "proto/idnode/v1", "proto/raftlog/v1",
	"server/grpcapi", "server/httpapi", "server/service", "server/webpage/assets", "test/history/check", "test/model", "test/simulation",
}

// otherNouns are names of files that a kind does not have: its noun is identity, hilo, claim, etag, series or
// snowflake.
var otherNouns = regexp.MustCompile(`^(identities|hilos|claims|etags|snowflakes|workers?|pools?)(_test)?(\.|$)`)

// TestAKindHasOneNoun: a kind's files have the same prefix in all rooms, so that a pattern lists them.
func TestAKindHasOneNoun(t *testing.T) {
	files := 0
	walk(t, func(file string) {
		if top, _, _ := strings.Cut(file, "/"); otherNouns.MatchString(top) {
			t.Errorf("the room of %s is not named by its kind's noun", file)
		}
		if !slices.Contains(rooms, path.Dir(file)) {
			return
		}
		if files++; otherNouns.MatchString(path.Base(file)) {
			t.Errorf("%s is not named by its kind's noun", file)
		}
	})
	if files < 5*len(rooms) {
		t.Errorf("there are only %d files in these rooms", files)
	}
}
