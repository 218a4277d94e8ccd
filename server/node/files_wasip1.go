package node

import (
	"errors"

	"github.com/idnode/idnode/etag"
)

// openEtagFile fails: bbolt, which the file is made with, does not compile for
// WebAssembly. Simulations bring a storage of their own.
func openEtagFile(string, []byte, bool) (etag.Store, error) {
	return nil, errors.ErrUnsupported
}

// There are no files.
var (
	fileDamage []error
	errForeign = errors.ErrUnsupported
)
