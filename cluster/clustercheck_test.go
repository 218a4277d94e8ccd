package cluster

import "testing"

// TestClusterCheck walks through what a node hears of its cluster.
func TestClusterCheck(t *testing.T) {
	var (
		nothing     = func(s *clusterCheck) { s.report(false, false) }
		foreign     = func(s *clusterCheck) { s.report(false, true) }
		own         = func(s *clusterCheck) { s.report(true, true) }
		quorum      = func(s *clusterCheck) { s.quorum(true) }
		quorumAlone = func(s *clusterCheck) { s.quorum(false) }
	)
	for name, tt := range map[string]struct {
		heard []func(*clusterCheck)
		want  error
	}{
		"nothing yet":                               {nil, errCheckPending},
		"nobody answers":                            {[]func(*clusterCheck){nothing}, nil},
		"another cluster's":                         {[]func(*clusterCheck){foreign}, errNotConfirmed},
		"another cluster's, later":                  {[]func(*clusterCheck){nothing, foreign}, errNotConfirmed},
		"another cluster's, and it is gone":         {[]func(*clusterCheck){foreign, nothing}, nil},
		"one of its own":                            {[]func(*clusterCheck){own, foreign}, nil},
		"a quorum, before anybody was asked":        {[]func(*clusterCheck){quorum}, errCheckPending},
		"that quorum is lost, and another answers":  {[]func(*clusterCheck){quorum, foreign}, errNotConfirmed},
		"a quorum against another cluster's":        {[]func(*clusterCheck){foreign, quorum}, nil},
		"itself alone against another cluster's":    {[]func(*clusterCheck){foreign, quorumAlone}, errNotConfirmed},
		"itself alone, and another cluster's later": {[]func(*clusterCheck){nothing, quorumAlone, foreign}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var s clusterCheck
			s.pending.Store(true)
			for _, hear := range tt.heard {
				hear(&s)
			}
			if err := s.err(); err != tt.want {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
	var s clusterCheck
	if err := s.err(); err != nil {
		t.Errorf("a node that was told of nobody: %v", err)
	}
}
