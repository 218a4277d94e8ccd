package fsm

import (
	"unicode/utf8"

	"github.com/idnode/idnode/client/docid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// checkText refuses a name that is empty, too long or no UTF-8. The service checks much more; the
// state relies only on these.
func checkText[T ~string | ~[]byte](field string, text T, most int) *refusal {
	switch {
	case len(text) == 0:
		return invalid(field, "is empty")
	case len(text) > most:
		return invalid(field, "has %d bytes, at most %d are allowed", len(text), most)
	case !validUTF8(text):
		return invalid(field, "is not valid UTF-8")
	}
	return nil
}

func validUTF8[T ~string | ~[]byte](text T) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return utf8.ValidString(string(text))
		}
	}
	return true
}

func invalid(field, format string, args ...any) *refusal {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, field, format, args...)
}

// checkVisible refuses an invisible character in the name of a new series or pool.
func checkVisible(name string) *refusal {
	if r, found := docid.FirstInvisible(name); found {
		return invalid("name", "has the character %U, which cannot be seen", r)
	}
	return nil
}
