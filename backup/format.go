package backup

import "errors"

const (
	// Format is the newest format of the file that is read and written.
	Format = 1
	// magic begins every backup, of any format.
	magic = "idnode backup\n"
	// maxFrame is the largest message that is read, far above what is written.
	maxFrame = 256 << 20
	// buffered is how much is read and written at once.
	buffered = 64 << 10
)

// Errors that a Reader's methods wrap; test for them with errors.Is.
var (
	// ErrCorrupt means that the file is no backup, or is damaged, or cut short.
	ErrCorrupt = errors.New("the backup is damaged")
	// ErrNewer means that a newer release wrote it.
	ErrNewer = errors.New("the backup was written by a newer release")
)
