package service

import (
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/server/apierror"
)

// checkFolded bounds names in the state. Folding may lengthen a text by half, so a text that is
// short enough as written may be too long as a key.
func checkFolded(folded string, limit int, reason, field string) error {
	if len(folded) > limit {
		return apierror.Invalid(reason, field, "%s is %d bytes long without regard to case, more than the %d that are allowed", field,
			len(folded), limit)
	}
	return nil
}

func databaseKey(database string) (string, error) {
	database, err := docid.ParseDatabase(database)
	if err != nil {
		return "", badForm(err, "")
	}
	return docid.Fold(database), nil
}

// keyOf checks and folds the name of a series or a pool, which is in a field.
func keyOf(database, name, field string) (foldedDatabase, foldedName string, err error) {
	if foldedDatabase, err = databaseKey(database); err != nil {
		return "", "", err
	}
	if err := docid.ValidateTag(name, docid.DefaultSeparator); err != nil {
		bad := badForm(err, field)
		bad.Reason = apierror.ReasonInvalidName // Both are named by the rules of tags.
		return "", "", bad
	}
	foldedName = docid.Fold(name)
	return foldedDatabase, foldedName, checkFolded(foldedName, docid.MaxNameBytes, apierror.ReasonInvalidName, field)
}
