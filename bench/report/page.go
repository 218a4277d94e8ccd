package report

import (
	"fmt"
	"strings"
)

// Marks around a generated part. The rest of the page is written by hand.
const (
	beginMark = "<!-- generated: %s -->\n"
	endMark   = "<!-- end -->\n"
)

// replaceBlocks puts the parts between their marks. Each must be there.
func replaceBlocks(page string, all []block) (string, error) {
	for _, b := range all {
		begin := fmt.Sprintf(beginMark, b.name)
		before, rest, found := strings.Cut(page, begin)
		if !found {
			return "", fmt.Errorf("there is no line %q", strings.TrimSpace(begin))
		}
		_, after, found := strings.Cut(rest, endMark)
		if !found {
			return "", fmt.Errorf("there is no line %q after %q", strings.TrimSpace(endMark), strings.TrimSpace(begin))
		}
		page = before + begin + "\n" + b.text + "\n" + endMark + after
	}
	return page, nil
}
