package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/CycloneDX/cyclonedx-go"
)

// licences are texts by which licences are known, with their names in SPDX's list. Longer ones come before those
// whose text they contain.
var licences = []struct {
	id   string
	text *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`Apache License,? +Version 2\.0`)},
	{"MPL-2.0", regexp.MustCompile(`Mozilla Public License,? +[Vv]ersion 2\.0`)},
	{"MIT", regexp.MustCompile(`Permission is hereby granted, free of charge`)},
	{"BSD-3-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms.*[Nn]either the name`)},
	{"BSD-2-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms`)},
	{"ISC", regexp.MustCompile(`Permission to use, copy, modify, (and/or|and) distribute`)},
}

// known returns the names of the licences in a text.
func known(text []byte) (ids []string) {
	words := strings.Join(strings.Fields(string(text)), " ")
	for _, l := range licences {
		if l.text.MatchString(words) && !(l.id == "BSD-2-Clause" && len(ids) > 0 && ids[len(ids)-1] == "BSD-3-Clause") {
			ids = append(ids, l.id)
		}
	}
	return ids
}

// licenceFile matches the files that go with a copy of a module.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([.-].*)?$`)

// addLicences names the licences of a bill's libraries, and returns their texts. The modules of the repository have its
// own, which is beside the program. The bill fails where a licence is not known.
func addLicences(bom *cyclonedx.BOM, repository string) (texts []byte, err error) {
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	cache, goroot, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	for i := range *bom.Components {
		c := &(*bom.Components)[i]
		folder := filepath.Join(cache, escaped(c.Name)+"@"+escaped(c.Version))
		switch {
		case strings.HasPrefix(c.Name, repository+"/"):
			c.Licenses = named([]string{"MIT"})
			continue
		case c.Name == "std":
			folder = goroot
		}
		ids, text, err := licencesIn(folder, c.Name+" "+c.Version)
		if err != nil {
			return nil, err
		}
		c.Licenses, texts = named(ids), append(texts, text...)
	}
	return texts, nil
}

// named are licences as the bill has them.
func named(ids []string) *cyclonedx.Licenses {
	var all cyclonedx.Licenses
	for _, id := range ids {
		all = append(all, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: id}})
	}
	return &all
}

// licencesIn returns the names and the texts of the licences in a library's folder.
func licencesIn(folder, library string) (ids []string, texts []byte, err error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		if !licenceFile.MatchString(file.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, known(text)...)
		texts = fmt.Appendf(texts, "%s, %s\n\n%s\n\n", library, file.Name(), bytes.TrimSpace(text))
	}
	if len(ids) == 0 {
		return nil, nil, fmt.Errorf("%s has no licence that is known", folder)
	}
	slices.Sort(ids)
	return slices.Compact(ids), texts, nil
}

// escaped is a path or a version as it stands in the module cache: https://go.dev/ref/mod#module-cache.
func escaped(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
