package main

import (
	"regexp"
	"strings"
)

var (
	failedTest = regexp.MustCompile(`--- FAIL: (\S+/\S+|Test\S+)`)
	finding    = regexp.MustCompile(`^\s+\w+_test\.go:\d+: (.*)`)
)

// most is how much of a finding is shown.
const most = 110

// explain finds in a test's output which test has failed, and what it says first.
func explain(folder, output string) (test, saw string) {
	test, saw = folder, "it ended in the middle"
	for line := range strings.Lines(output) {
		if m := failedTest.FindStringSubmatch(line); m != nil && saw == "it ended in the middle" {
			test = folder + " " + m[1]
		}
		if m := finding.FindStringSubmatch(line); m != nil {
			return shorten(test), cut(m[1])
		}
		if rest, ok := strings.CutPrefix(line, "panic: "); ok {
			return shorten(test), cut("panic: " + rest)
		}
	}
	return shorten(test), saw
}

// shorten names a seed.
func shorten(test string) string {
	return strings.Replace(test, simulation+" TestSeeds/seeds/", "simulation, seed ", 1)
}

func cut(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	return text
}
