package node

import (
	"errors"

	"github.com/idnode/idnode/etag"
)

// openEtagFile fails: bbolt does not compile for WebAssembly. Simulations have their own
// Storage.
func openEtagFile(string, []byte, bool) (etag.Store, error) {
	return nil, errors.ErrUnsupported
}

// There are no files.
var (
	fileDamage []error
	errForeign = errors.ErrUnsupported
)
