package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/server/config"
)

func TestTagByHost(t *testing.T) {
	hosts := []string{"--data-dir=/data", "--tag-by-host=ids-0=A,ids-1=B"}
	for name, tc := range map[string]struct {
		host  string
		flags []string
		tag   string
		err   string
	}{
		"first":            {"ids-0", hosts, "A", ""},
		"second":           {"ids-1", hosts, "B", ""},
		"not in it":        {"ids-2", hosts, "", "ids-2, is not in it"},
		"not in it, given": {"ids-2", with(hosts, "--tag=C"), "C", ""},
		"the same":         {"ids-0", with(hosts, "--tag=A"), "A", ""},
		"another":          {"ids-0", with(hosts, "--tag=B"), "", "tag says B"},
		"no tag":           {"ids-0", with(alone[1:], "--tag-by-host=ids-0=a"), "", "tag:"},
		"no list":          {"ids-0", alone, "A", ""},
		"not a pair":       {"ids-0", with(alone, "--tag-by-host=ids-0"), "", "NAME=VALUE"},
	} {
		t.Run(name, func(t *testing.T) {
			config.SetHostname(t, tc.host)
			c, err := load(t, tc.flags, nil)
			switch {
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got %v, want %q", err, tc.err)
			case tc.err == "" && err != nil:
				t.Error(err)
			case err == nil && c.Tag != tc.tag:
				t.Errorf("tag %q, want %q", c.Tag, tc.tag)
			}
			if err == nil {
				if diff := cmp.Diff(c, reread(t, c)); diff != "" {
					t.Errorf("(-printed +read):\n%s", diff)
				}
			}
		})
	}
}

// TestPeerAndJoin: with both, the first nodes have peers and all others join.
func TestPeerAndJoin(t *testing.T) {
	both := []string{"--data-dir=/data", "--peer=A=a:1,B=b:1", "--join=a:1"}
	first := mustLoad(t, with(both, "--tag=B"), nil)
	if len(first.Peer) != 2 || first.Join != nil {
		t.Errorf("a first node: peers %v, joins %v", first.Peer, first.Join)
	}
	later := mustLoad(t, with(both, "--tag=C"), nil)
	if later.Peer != nil || len(later.Join) != 1 {
		t.Errorf("a later node: peers %v, joins %v", later.Peer, later.Join)
	}
	if _, err := load(t, with(both, "--tag=B", "--watcher"), nil); err == nil {
		t.Error("a first node is a watcher")
	}
}
