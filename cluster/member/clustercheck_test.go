package member

import "testing"

// TestClusterCheck walks through what a node hears of its cluster.
func TestClusterCheck(t *testing.T) {
	var (
		nothing     = func(s *ClusterCheck) { s.Report(false, false) }
		foreign     = func(s *ClusterCheck) { s.Report(false, true) }
		own         = func(s *ClusterCheck) { s.Report(true, true) }
		quorum      = func(s *ClusterCheck) { s.Quorum(true) }
		quorumAlone = func(s *ClusterCheck) { s.Quorum(false) }
	)
	for name, tt := range map[string]struct {
		heard []func(*ClusterCheck)
		want  error
	}{
		"nothing yet":                               {nil, errCheckPending},
		"nobody answers":                            {[]func(*ClusterCheck){nothing}, nil},
		"another cluster's":                         {[]func(*ClusterCheck){foreign}, errNotConfirmed},
		"another cluster's, later":                  {[]func(*ClusterCheck){nothing, foreign}, errNotConfirmed},
		"another cluster's, and it is gone":         {[]func(*ClusterCheck){foreign, nothing}, nil},
		"one of its own":                            {[]func(*ClusterCheck){own, foreign}, nil},
		"a quorum, before anybody was asked":        {[]func(*ClusterCheck){quorum}, errCheckPending},
		"that quorum is lost, and another answers":  {[]func(*ClusterCheck){quorum, foreign}, errNotConfirmed},
		"a quorum against another cluster's":        {[]func(*ClusterCheck){foreign, quorum}, nil},
		"itself alone against another cluster's":    {[]func(*ClusterCheck){foreign, quorumAlone}, errNotConfirmed},
		"itself alone, and another cluster's later": {[]func(*ClusterCheck){nothing, quorumAlone, foreign}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var s ClusterCheck
			s.Begin()
			for _, hear := range tt.heard {
				hear(&s)
			}
			if err := s.Err(); err != tt.want {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
	var s ClusterCheck
	if err := s.Err(); err != nil {
		t.Errorf("a node that was told of nobody: %v", err)
	}
}
