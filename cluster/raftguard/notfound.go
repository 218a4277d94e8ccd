package raftguard

// keyTerm is where the library keeps its term.
const keyTerm = "CurrentTerm"

// StoredNumber returns a number of the store, 0 if it was never set. The library detects that
// case by the error's text, and so its stores have no error to compare with.
func StoredNumber(s Store, key []byte) (uint64, error) {
	n, err := s.GetUint64(key)
	if err != nil && err.Error() == "not found" {
		return 0, nil
	}
	return n, err
}

// StoredTerm returns the library's term, 0 if no term is stored.
func StoredTerm(s Store) (uint64, error) { return StoredNumber(s, []byte(keyTerm)) }

// SetStoredTerm sets it, while the library does not run.
func SetStoredTerm(s Store, term uint64) error { return s.SetUint64([]byte(keyTerm), term) }
