package cluster

import "testing"

// TestStanding walks through what a node hears of whether it is where it belongs.
func TestStanding(t *testing.T) {
	var (
		nothing     = func(s *standing) { s.report(false, false) }
		foreign     = func(s *standing) { s.report(false, true) }
		own         = func(s *standing) { s.report(true, true) }
		quorum      = func(s *standing) { s.quorum(true) }
		quorumAlone = func(s *standing) { s.quorum(false) }
	)
	for name, tt := range map[string]struct {
		heard []func(*standing)
		want  error
	}{
		"nothing yet":                               {nil, errStillAsking},
		"nobody answers":                            {[]func(*standing){nothing}, nil},
		"another cluster's":                         {[]func(*standing){foreign}, errNotVouched},
		"another cluster's, later":                  {[]func(*standing){nothing, foreign}, errNotVouched},
		"another cluster's, and it is gone":         {[]func(*standing){foreign, nothing}, nil},
		"one of its own":                            {[]func(*standing){own, foreign}, nil},
		"a quorum, before anybody was asked":        {[]func(*standing){quorum}, errStillAsking},
		"that quorum is lost, and another answers":  {[]func(*standing){quorum, foreign}, errNotVouched},
		"a quorum against another cluster's":        {[]func(*standing){foreign, quorum}, nil},
		"itself alone against another cluster's":    {[]func(*standing){foreign, quorumAlone}, errNotVouched},
		"itself alone, and another cluster's later": {[]func(*standing){nothing, quorumAlone, foreign}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var s standing
			s.asking.Store(true)
			for _, hear := range tt.heard {
				hear(&s)
			}
			if err := s.err(); err != tt.want {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
	var s standing
	if err := s.err(); err != nil {
		t.Errorf("a node that was told of nobody: %v", err)
	}
}
