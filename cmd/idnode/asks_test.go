package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
)

// Why a command does not ask.
const (
	reads   = "it changes nothing"
	adds    = "it takes nothing from anybody, and nothing is refused because of it but the same name again"
	caller  = "its caller names what is the caller's own: a token, or a document's number"
	keeps   = "what it changes comes back by the same command"
	says    = "a flag of its own says what is lost"
	process = "it is the process itself"
)

// whatAsks has a decision for every command: how it is called when it asks, or why it never does.
var whatAsks = map[string]struct{ line, never string }{
	"audit verify":       {never: reads},
	"backup":             {line: "backup FILE"},
	"backup inspect":     {never: reads},
	"bench":              {never: adds},
	"certs":              {never: says},
	"claim":              {never: adds},
	"claims":             {never: reads},
	"cluster demote":     {line: "cluster demote C --force"},
	"cluster join-token": {never: adds},
	"cluster members":    {never: reads},
	"cluster promote":    {never: keeps},
	"cluster remove":     {line: "cluster remove C --force"},
	"cluster roles":      {never: reads},
	"cluster set":        {line: "cluster set request-window 1"},
	"cluster set-roles":  {line: "cluster set-roles ROLES"},
	"cluster settings":   {never: reads},
	"cluster status":     {never: reads},
	"cluster transfer":   {never: keeps},
	"context delete":     {line: "context delete prod"},
	"context list":       {never: reads},
	"context save":       {line: "context save prod --cluster-id=00000000000000000000000000000002"},
	"context show":       {never: reads},
	"context use":        {never: keeps},
	"database delete":    {line: "database delete trial"},
	"database list":      {never: reads},
	"dev":                {never: process},
	"export":             {line: "export FILE --form csv"},
	"health":             {never: reads},
	"hilo get":           {never: reads},
	"hilo list":          {never: reads},
	"hilo next":          {never: adds},
	"hilo reserves":      {never: reads},
	"hilo return":        {line: "hilo return users --low 1 --high 32 --last 7"},
	"hilo set":           {never: adds},
	"hilo who-holds":     {never: reads},
	"identity delete":    {line: "identity delete users --forget"},
	"identity get":       {never: reads},
	"identity list":      {never: reads},
	"identity seed":      {line: "identity seed users --force -- -1"},
	"import":             {line: "import CSV"},
	"log verify":         {never: reads},
	"next":               {never: adds},
	"recover":            {line: ""}, // It needs a data directory: test/e2e has it.
	"release":            {line: "release users/x"},
	"restore":            {line: "restore BACKUP --skip-ahead 1"},
	"series allot":       {never: "a range that gave no number can be taken back, and allotted again"},
	"series close":       {line: "series close invoices 2026"},
	"series confirm":     {never: caller},
	"series define":      {never: adds},
	"series delete":      {line: "series delete invoices --expected-version 1"},
	"series list":        {never: reads},
	"series reconcile":   {line: "series reconcile invoices - --number 1="},
	"series release":     {line: "series release invoices --key k"},
	"series report":      {never: reads},
	"series resume":      {line: "series resume invoices"},
	"series show":        {never: reads},
	"series take":        {line: "series take invoices --key k --number 7 --because r"},
	"series verify":      {never: reads},
	"series void":        {line: "series void invoices --key k --reason r"},
	"series who-has":     {never: reads},
	"serve":              {never: process},
	"snowflake acquire":  {never: adds},
	"snowflake define":   {never: adds},
	"snowflake evict":    {line: "snowflake evict orders 3"},
	"snowflake next":     {never: adds},
	"snowflake pools":    {never: reads},
	"snowflake release":  {never: caller},
	"snowflake renew":    {never: caller},
	"snowflake workers":  {never: reads},
	"version":            {never: reads},
}

// TestEveryCommandDecides whether it asks: a command that loses or refuses something has --yes, and changes nothing without it.
func TestEveryCommandDecides(t *testing.T) {
	seen := map[string]bool{}
	for cmd := range withChildren(newRootCommand(&app{})) {
		path := strings.TrimPrefix(cmd.CommandPath(), "idnode ")
		group := cmd.HasSubCommands() && strings.TrimSuffix(cmd.UseLine(), " [flags]") == cmd.CommandPath()
		if group || !cmd.IsAvailableCommand() {
			continue
		}
		seen[path] = true
		decided, ok := whatAsks[path]
		if asks := cmd.Flags().Lookup("yes") != nil; !ok || asks != (decided.never == "") {
			t.Errorf("%s: asks %t, decided %t: %+v", path, asks, ok, decided)
		}
		if decided.line != "" {
			t.Run(path, func(t *testing.T) { changesNothingUnasked(t, decided.line) })
		}
	}
	for path := range whatAsks {
		if !seen[path] {
			t.Errorf("there is no command %s any more", path)
		}
	}
}

// changesNothingUnasked runs a command that nobody can answer. It may only have read.
func changesNothingUnasked(t *testing.T, line string) {
	node := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
		switch req.(type) {
		case *idnodev1.ListSettingsRequest:
			return allSettings(), nil
		case *idnodev1.GetIdentityRequest:
			return &idnodev1.GetIdentityResponse{Identity: &idnodev1.Identity{Name: "users", Value: 5}}, nil
		case *idnodev1.GetRolesRequest:
			return &idnodev1.GetRolesResponse{}, nil
		case *idnodev1.GetStatusRequest:
			return &idnodev1.GetStatusResponse{}, nil
		case *idnodev1.ListSeriesRequest:
			return &idnodev1.ListSeriesResponse{}, nil
		case *idnodev1.ListWorkersRequest:
			return &idnodev1.ListWorkersResponse{}, nil
		case *idnodev1.ReportSeriesRequest:
			return &idnodev1.ReportSeriesResponse{}, nil
		}
		return nil, nil
	})
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	contexts := write("idnode/contexts.yaml", "contexts: {prod: {endpoint: ['"+node.addr+"']}}\n")
	files := map[string]string{
		"FILE":   write("file", "old"),
		"ROLES":  write("roles.yaml", "roles: [{name: a, principals: [x], grants: [{database: '*', rights: [read]}]}]"),
		"CSV":    write("counters.csv", "database,kind,name,value\nshop,identity,users,5\n"),
		"BACKUP": seriesBackup(t, []string{"idle"}, nil),
	}
	args, flags, _ := strings.Cut(line, " -- ")
	words := strings.Fields(args)
	for i, word := range words {
		if path, ok := files[word]; ok {
			words[i] = path
		}
	}
	if !strings.HasPrefix(line, "context delete") {
		words = append(words, "--endpoint", node.addr)
	}
	if flags != "" {
		words = append(words, "--", flags)
	}
	before := map[string]string{contexts: string(mustRead(t, contexts)), files["FILE"]: "old"}
	got := commandEnv(t, []string{"XDG_CONFIG_HOME=" + dir}, words...)
	if got.code != exitUsage || !strings.Contains(got.stderr, "nothing was done: the command asks first") {
		t.Errorf("%+v, want the question, and exit code %d", got, exitUsage)
	}
	for _, req := range node.requests() {
		name := string(req.ProtoReflect().Descriptor().Name())
		if !strings.HasPrefix(name, "Get") && !strings.HasPrefix(name, "List") && !strings.HasPrefix(name, "Report") {
			t.Errorf("it sent %s without an answer", name)
		}
	}
	for path, want := range before {
		if got := string(mustRead(t, path)); got != want {
			t.Errorf("%s is %q, was %q", path, got, want)
		}
	}
}

func allSettings() *idnodev1.ListSettingsResponse {
	res := &idnodev1.ListSettingsResponse{}
	for _, s := range fsm.New(fsm.Config{}).Settings() {
		res.Settings = append(res.Settings, &idnodev1.Setting{Key: s.Key, Value: s.Value, Lowered: s.Lowered})
	}
	return res
}

// TestLoweringASettingAsks, whichever it is, with the old and the new value and what is lost; raising it does not.
func TestLoweringASettingAsks(t *testing.T) {
	for _, s := range fsm.New(fsm.Config{}).Settings() {
		if s.Lowered == "" {
			t.Errorf("%s does not say what a lower value loses or refuses", s.Key)
		}
		for _, tt := range []struct {
			value int64
			asks  bool
		}{{s.Value - 1, true}, {s.Min, true}, {s.Value, false}, {s.Value + 1, false}} {
			changed := 0
			node := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
				if set, ok := req.(*idnodev1.UpdateSettingRequest); ok {
					changed++
					return &idnodev1.UpdateSettingResponse{Setting: &idnodev1.Setting{Key: set.GetKey(), Value: set.GetValue()}}, nil
				}
				return allSettings(), nil
			})
			was, becomes := settingText(s.Key, s.Value), settingText(s.Key, tt.value)
			args := []string{"cluster", "set", s.Key, becomes, "--endpoint", node.addr}
			got := command(t, args...)
			question := "Lowers " + s.Key + " from " + was + " to " + becomes + ": " + s.Lowered
			if asked := strings.Contains(got.stderr, question); asked != tt.asks || (changed == 0) != tt.asks {
				t.Errorf("%v: %+v, %d changes, want a question: %t", args, got, changed, tt.asks)
			}
			if got = command(t, append(args, "--yes")...); got.stdout != s.Key+"\t"+becomes+"\tbefore\t"+was+"\n" {
				t.Errorf("%v --yes: %+v", args, got)
			}
		}
	}
}
