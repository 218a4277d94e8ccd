package op

import (
	"errors"
	"fmt"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// RefusedError is an operation that the replicated state refused: nothing changed.
type RefusedError struct {
	// Refusal says why, in the words of the log.
	Refusal *raftlogv1.Refusal
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused: %s (%s)", e.Refusal.GetDetail(), e.Refusal.GetReason())
}

func (e *RefusedError) Refused() *raftlogv1.Refusal { return e.Refusal }

// RefusalOf returns the refusal in err, or nil. An error has one if it has a method
// Refused, as that of a call to a peer may have.
func RefusalOf(err error) *raftlogv1.Refusal {
	var refused interface{ Refused() *raftlogv1.Refusal }
	if errors.As(err, &refused) {
		return refused.Refused()
	}
	return nil
}
