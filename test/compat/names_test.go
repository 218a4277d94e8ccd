package compat_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/test/compat"
)

// root is the repository's root.
const root = "../../"

func TestSettingsKept(t *testing.T) {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(flags)
	settings, variables := []string{}, config.ClientVariables()
	flags.VisitAll(func(f *pflag.Flag) {
		settings = append(settings, f.Name+" "+f.Value.Type())
		variables = append(variables, config.EnvName(f.Name))
	})
	compat.Names(t, compat.Commands, "settings", settings)
	compat.Names(t, compat.Commands, "variables", variables)
}

func TestReasonsKept(t *testing.T) {
	compat.Names(t, compat.Reasons, "reasons", slices.Concat(
		constants(t, "server/apierror/reasons.go", "Reason"), constants(t, "client/errors.go", "reason")))
}

func TestAuditEventsKept(t *testing.T) {
	compat.Names(t, compat.Watched, "audit-events", slices.Concat(
		constants(t, "access/audit/audit.go", "Event"), constants(t, "access/audit/audit.go", "Outcome")))
}

// TestMetricsKept: the page has each metric, of which a test of server/node sees to it.
func TestMetricsKept(t *testing.T) {
	compat.Names(t, compat.Watched, "metrics", found(t, "docs/operate/metrics.md", "`((?:idnode|grpc_server)_[a-z_]+)`"))
	compat.Names(t, compat.Watched, "alerts", found(t, "deploy/prometheus/idnode-alerts.yml", "alert: ([A-Za-z]+)"))
}

// found are the texts in a file that match the first group of a pattern.
func found(t *testing.T, file, pattern string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(root + file)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		all = append(all, match[1])
	}
	return all
}

// constants are the values of the texts in a Go file whose names have a prefix.
func constants(t *testing.T, file, prefix string) []string {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), root+file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]bool)
	ast.Inspect(source, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, prefix) || len(spec.Values) == 0 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			value, err := strconv.Unquote(literal.Value)
			values[value] = err == nil
		}
		return true
	})
	return slices.Collect(maps.Keys(values))
}
