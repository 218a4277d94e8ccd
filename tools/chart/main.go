// Command chart renders a Helm chart as `helm template` would, without Helm and without
// a cluster, for release and namespace idnode.
//
//	go run . ../../deploy/helm/idnode [VALUES.yaml] > FILE.yaml
package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: chart FOLDER [VALUES.yaml]")
		os.Exit(2)
	}
	values := []byte{}
	var err error
	if len(os.Args) == 3 {
		values, err = os.ReadFile(os.Args[2])
	}
	var text string
	if err == nil {
		text, err = render(os.Args[1], values)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}

// render returns the documents of a chart with these values in place of its own.
func render(folder string, own []byte) (string, error) {
	chart, err := loader.Load(folder)
	if err != nil {
		return "", err
	}
	if err := chart.Validate(); err != nil {
		return "", err
	}
	given, err := chartutil.ReadValues(own)
	if err != nil {
		return "", err
	}
	values, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: "idnode", Namespace: "idnode", IsInstall: true}, nil)
	if err != nil {
		return "", err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, values)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := strings.Trim(files[name], "\n-"); text != "" && path.Base(name) != "NOTES.txt" {
			fmt.Fprintf(&all, "---\n%s\n", text)
		}
	}
	return all.String(), nil
}
