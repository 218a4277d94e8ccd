package store

// FreeSpace returns how many bytes an ordinary user may still write to the file system of
// the store's directory. It does not touch the file itself, so it also works while a
// write hangs.
func (s *Store) FreeSpace() (uint64, error) {
	return FreeBytes(s.cfg.Dir)
}
