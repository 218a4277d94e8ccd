package raftguard

// MustBootstrap reports whether a founder still has to write the first configuration. The
// library writes a term and then the configuration, and takes a term alone for existing
// state: after a crash between the two the cluster would never form. A founder's log
// begins with the configuration, so where there is neither a log nor a snapshot, it was
// never written; the term is taken back then.
func MustBootstrap(s Store) (bool, error) {
	last, err := s.LastIndex()
	if err != nil || last > 0 {
		return false, err
	}
	snapshots, err := s.Snapshots().List()
	if err != nil || len(snapshots) > 0 {
		return false, err
	}
	switch term, err := StoredTerm(s); {
	case err != nil || term > 1:
		return false, err
	case term == 1:
		return true, SetStoredTerm(s, 0)
	}
	return true, nil
}
