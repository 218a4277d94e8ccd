// Command sbom prints the software bill of materials of a Go program as CycloneDX
// JSON: the modules and the standard library it was built from, as the program
// itself names them, with their licences. The same program gives the same bytes.
//
//	sbom -name NAME -version VERSION -time UNIX [-licences FILE] PROGRAM
//
// The file gets the texts of the licences, which copies of the program must come with.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	name := flags.String("name", "", "name of the program")
	version := flags.String("version", "", "its version")
	at := flags.Int64("time", 0, "when it was made, in seconds since 1970 UTC")
	into := flags.String("licences", "", "file for the licences' texts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *name == "" || *version == "" {
		return errors.New("usage: sbom -name NAME -version VERSION -time UNIX [-licences FILE] PROGRAM")
	}
	program, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return err
	}
	bom := describe(info, *name, *version, sha256.Sum256(program))
	bom.Metadata.Timestamp = time.Unix(*at, 0).UTC().Format(time.RFC3339)
	texts, err := addLicences(bom, info.Main.Path)
	if err != nil {
		return err
	}
	if *into != "" {
		if err := os.WriteFile(*into, texts, 0o644); err != nil {
			return err
		}
	}
	encoder := cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	return encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}

// describe makes the bill of a program with this SHA-256.
func describe(info *debug.BuildInfo, name, version string, sum [sha256.Size]byte) *cyclonedx.BOM {
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serial(sum)
	main := cyclonedx.Component{
		BOMRef: purl(info.Main.Path, version), Type: cyclonedx.ComponentTypeApplication, Name: name, Version: version,
		PackageURL: purl(info.Main.Path, version),
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}},
		Properties: properties(info.Settings),
	}
	components := []cyclonedx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, dep := range info.Deps {
		if strings.HasPrefix(dep.Path, info.Main.Path+"/") {
			// A module of the program's own repository, taken from its workspace, has the program's version.
			dep = &debug.Module{Path: dep.Path, Version: version}
		}
		dep = cmp.Or(dep.Replace, dep)
		components = append(components, library(dep.Path, dep.Version, dep.Sum))
	}
	needs := cyclonedx.Dependency{Ref: main.BOMRef, Dependencies: &[]string{}}
	for _, c := range components {
		*needs.Dependencies = append(*needs.Dependencies, c.BOMRef)
	}
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	bom.Components, bom.Dependencies = &components, &[]cyclonedx.Dependency{needs}
	return bom
}

func library(path, version, sum string) cyclonedx.Component {
	c := cyclonedx.Component{
		BOMRef: purl(path, version), Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl(path, version),
	}
	if sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: sum}}
	}
	return c
}

// purl is the package URL of a Go module.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// properties are the settings of the build that say for what machine it is.
func properties(settings []debug.BuildSetting) *[]cyclonedx.Property {
	var all []cyclonedx.Property
	for _, s := range settings {
		if strings.HasPrefix(s.Key, "GO") || s.Key == "CGO_ENABLED" || s.Key == "-tags" {
			all = append(all, cyclonedx.Property{Name: "go:" + s.Key, Value: s.Value})
		}
	}
	return &all
}

// serial makes a UUID of version 8, whose bits are for their maker to choose, of
// the program's hash.
func serial(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
