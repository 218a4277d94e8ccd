package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// TestBillOfThisTest makes the bill of the program that runs this test.
func TestBillOfThisTest(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-name", "x", "-version", "v1.2.3", "-time", "1700000000", program}
	var first, second bytes.Buffer
	if err := run(args, &first); err != nil {
		t.Fatal(err)
	}
	if err := run(args, &second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("the second bill is another one: %v", err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(&first, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.Metadata.Timestamp != "2023-11-14T22:13:20Z" || bom.Metadata.Component.Version != "v1.2.3" {
		t.Errorf("%+v", bom.Metadata)
	}
	named := make(map[string]string)
	for _, c := range *bom.Components {
		named[c.Name] = c.Version
		if c.Licenses == nil || len(*c.Licenses) == 0 {
			t.Errorf("%s has no licence in the bill", c.Name)
		}
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Deps) == 0 {
		t.Fatal("this program does not know what it was built from")
	}
	for _, dep := range info.Deps {
		if named[dep.Path] != dep.Version {
			t.Errorf("%s %s is in the bill as %q", dep.Path, dep.Version, named[dep.Path])
		}
	}
	if "go"+named["std"] != info.GoVersion {
		t.Errorf("the standard library is in the bill as %q", named["std"])
	}
}

// TestReplacedModules: one of the repository has the program's version, and another module in the
// place of one has its own name.
func TestReplacedModules(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Path: "a.org/p"}, Deps: []*debug.Module{
		{Path: "a.org/p/client", Version: "(devel)"},
		{Path: "b.org/x", Version: "v1.0.0", Replace: &debug.Module{Path: "c.org/x", Version: "v1.0.1"}},
	}}
	var got []string
	for _, c := range *describe(info, "p", "v1.2.3", [32]byte{}).Components {
		got = append(got, c.PackageURL)
	}
	if want := []string{"pkg:golang/std@", "pkg:golang/a.org/p/client@v1.2.3", "pkg:golang/c.org/x@v1.0.1"}; !slices.Equal(got, want) {
		t.Errorf("the bill has %q", got)
	}
}

// TestLicences: a library whose licence is not known fails the bill.
func TestLicences(t *testing.T) {
	folder := t.TempDir()
	for text, want := range map[string][]string{
		"Apache License\n   Version 2.0, January 2004":                               {"Apache-2.0"},
		"Mozilla Public License, version 2.0":                                        {"MPL-2.0"},
		"Permission is hereby granted, free of\ncharge, to any person":               {"MIT"},
		"Redistribution and use in source and binary forms …\nNeither the name of":   {"BSD-3-Clause"},
		"Redistribution and use in source and binary forms":                          {"BSD-2-Clause"},
		"Permission is hereby granted, free of charge … Apache License, Version 2.0": {"Apache-2.0", "MIT"},
		"Permission to use, copy, modify, and distribute this software":              {"ISC"},
		"All rights reserved.": nil,
	} {
		if err := os.WriteFile(filepath.Join(folder, "LICENSE.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ids, texts, err := licencesIn(folder, "x v1")
		if !slices.Equal(ids, want) || (err == nil) != (want != nil) || err == nil && !bytes.Contains(texts, []byte(text)) {
			t.Errorf("%q: %v, %v", text, ids, err)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"-name", "x", "-version", "1"},
		{"-name", "x", "main.go"},
		{"-name", "x", "-version", "1", "main.go"},
	} {
		if run(args, &bytes.Buffer{}) == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
