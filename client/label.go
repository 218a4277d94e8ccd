package client

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/idnode/idnode/client/docid"
)

// maxLabelBytes is the greatest length of a label.
const maxLabelBytes = 64

// defaultLabel returns the names of the host and of the program.
func defaultLabel() string {
	host, _ := os.Hostname() // Without it the label is the program's name.
	return labelOf(host, filepath.Base(os.Args[0]))
}

// labelOf returns a label of two names, which may have any characters and any length.
func labelOf(host, program string) string {
	label := strings.Map(func(r rune) rune {
		if _, invisible := docid.FirstInvisible(string(r)); invisible {
			return -1
		}
		return r
	}, strings.TrimSpace(host+" "+program))
	label = label[:min(len(label), maxLabelBytes)]
	return strings.ToValidUTF8(label, "") // The last character may be cut.
}
