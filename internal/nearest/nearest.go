// Package nearest finds the word that a slip of the keyboard may have made another of.
package nearest

// Of returns the word that differs least from the one given, or "" where none is near: two
// letters may differ, and one of three.
func Of(given string, words []string) (near string) {
	least := min(2, (len(given)+1)/3) + 1
	for _, word := range words {
		if d := distance(given, word); d < least || d == least && near != "" && word < near {
			near, least = word, d
		}
	}
	return near
}

// distance is Levenshtein's: how many letters are put in, taken out or changed. row has the
// distances of what was seen of a to each beginning of b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := i
		row[0] = i + 1
		for j := range len(b) {
			d := before
			if a[i] != b[j] {
				d = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
