package main

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
)

// usageTests are command lines that are refused before any call. Each exits with 2 and says why in one line.
type usageTests []struct {
	line string
	want string // a part of what is printed
}

func (tests usageTests) run(t *testing.T) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			got := command(t, strings.Fields(tt.line)...)
			if got.code != exitUsage {
				t.Errorf("exit code %d, want %d", got.code, exitUsage)
			}
			if got.stdout != "" {
				t.Errorf("printed %q on stdout", got.stdout)
			}
			if strings.Count(got.stderr, "\n") != 1 || !strings.HasPrefix(got.stderr, "idnode: ") {
				t.Errorf("not one line: %q", got.stderr)
			}
			if !strings.Contains(got.stderr, tt.want) {
				t.Errorf("%q does not say %q", got.stderr, tt.want)
			}
		})
	}
}

// TestUnknownCommandsAndFlags: the one that may be meant is named.
func TestUnknownCommandsAndFlags(t *testing.T) {
	usageTests{
		{"nxt", `unknown command "nxt" for 'idnode', did you mean "next"?`},
		{"serv --config a.yaml", `unknown command "serv" for 'idnode', did you mean "serve"?`},
		{"hilo nxt users --size 4", `unknown command "nxt" for 'idnode hilo', did you mean "next"?`},
		{"hilo nxt", `unknown command "nxt" for 'idnode hilo', did you mean "next"?`},
		{"identity grow users", `unknown command "grow" for 'idnode identity'`},
		{"cluster explode", `unknown command "explode" for 'idnode cluster'`},
		{"status", "did you mean 'idnode cluster status'?"},
		{"list", `unknown command "list" for 'idnode'`},
		{"next users/ --cuont 3", "unknown flag: --cuont, did you mean --count?"},
		{"next users/ --colour", "unknown flag: --colour; usage"},
		{"serve --data-dri x", "did you mean --data-dir?"},
		{"restore x --database shop", "unknown flag: --database: 'idnode restore' does not take a database"},
		{"series explode", `unknown command "explode" for 'idnode series'`},
		{"completion tcsh", `unknown command "tcsh" for 'idnode completion'`},
		{"help nxt", `unknown command "nxt" for 'idnode', did you mean "next"?`},
		{"help series tkae", `unknown command "tkae" for 'idnode series', did you mean "take"?`},
		{"help next users", "'idnode next' has no commands"},
		{"identity show x", "for 'idnode identity'; there are delete, get, list, seed"},
	}.run(t)
}

func TestWrongUsageOfIds(t *testing.T) {
	usageTests{
		{"next", "usage: idnode next TEMPLATE"},
		{"next a b", "usage: idnode next TEMPLATE"},
		{"hilo reserves --database shop", "does not take a database"},
		{"next users/ --count many", "invalid argument"},
		{"next users/ --count 0", "--count must be 1 to 1,000,000, not 0"},
		{"next users/ --count 1000001", "--count must be 1 to 1,000,000"},
		{"next users| --separator xx", "separator"},
		{`next a\b`, "INVALID_ID"},
		{"next users| --retry-since 4", "--retry-since needs the --request-id"},
		{"next users| --request-id=", "--request-id must have 1 to 64 bytes"},
		{"next users| --request-id M\xfcller", "--request-id must have 1 to 64 bytes of UTF-8"},
		{"next users| --request-id " + strings.Repeat("x", 65), "--request-id must have 1 to 64 bytes"},
		{"next users| --endpoint nowhere", `--endpoint (IDNODE_ENDPOINTS): "nowhere" is not HOST:PORT`},
		{"next users| --endpoint a:99999", `"a:99999" has a port that is not 1 to 65535`},
		{"next users| --timeout 0s", "--timeout must be above zero"},
		{"next users| -o yaml", `--output must be text, wide or json, not "yaml"`},
		{"next users| --tls-cert a.crt", "certificate and key go together"},
		{"next users| --tls-ca /does/not/exist", "/does/not/exist"},
		{"next users| --tls-cert /does/not --tls-key /exist", "/does/not"},
		{"hilo set users 64", "--expected is required"},
		{"hilo set users many --expected 0", "MAX must be a whole number"},
		{"hilo return users --low 1 --high 32", "--last is required"},
		{"hilo next users --last-range-at yesterday", "--last-range-at must be a time"},
		{"hilo who-holds users", "usage: idnode hilo who-holds TAG NUMBER"},
		{"hilo who-holds users many", "NUMBER must be a whole number"},
		{"hilo list extra", "usage: idnode hilo list"},
		{"hilo list --limit -1", "--limit must not be negative"},
		{"identity seed users", "usage: idnode identity seed NAME VALUE"},
		{"identity seed users many", "VALUE must be a whole number"},
		{"bench --cluster 0", "--cluster must be 1 to 9, not 0"},
		{"bench --cluster 3 --endpoint localhost:7400", "leave out --endpoint"},
	}.run(t)
}

func TestWrongUsageOfSeries(t *testing.T) {
	usageTests{
		{"series define invoices", "--format is required"},
		{"series define invoices --format {number} --reset-by decade", `--reset-by must be never, year, month, day, week or fiscal-year, not "decade"`},
		{"series define invoices --format {number} --order unspecified", "--order must be any, dates-do-not-go-back or one-open"},
		{"series define invoices --format {number} --on-release reuse_lowest", "--on-release must be void, reuse-newest or reuse-lowest"},
		{"series define invoices --format {number} --on-expiry never", "--on-expiry must be report, void or reuse-lowest"},
		{"series define invoices --format {number} --expires-in 0s", "--expires-in must be above zero"},
		{"series define invoices --format {number} --allow BERLIN", `--allow must be NAME=A,B, not "BERLIN"`},
		{"series define invoices --format {number} --max-ahead-days x", "--max-ahead-days"},
		{"series define invoices --format {number} --expires-in 3", "not a duration"},
		{"series show", "usage: idnode series show NAME"},
		{"series list extra", "usage: idnode series list"},
		{"series take invoices", "--key is required"},
		{"series take invoices --key k --expires-in -1s", "--expires-in must be above zero"},
		{"series take invoices --key k --value BERLIN", `--value must be NAME=VALUE, not "BERLIN"`},
		{"series take invoices --key k --value branch=A --value branch=B", `--value has "branch" twice`},
		{"series confirm invoices", "--key is required"},
		{"series confirm invoices --key a --key b --number 1", "--number needs exactly one --key, not 2"},
		{"series release invoices --key a --number 0", "--number must be above zero, not 0"},
		{"series release invoices --number 1", "--key is required"},
		{"series void invoices --key a", "--reason is required"},
		{"series report invoices --limit -1", "--limit must not be negative"},
		{"series report invoices --limit -1 --state open", "--limit must not be negative"},
		{"series report invoices --state overdue", `--state must be open, confirmed, voided, released or unknown, not "overdue"`},
		{"series report invoices --state=", "--state must be open"},
		{"series report invoices --csv", "--csv needs --from or --to"},
		{"series report invoices --from 2026-01-01 --state open", "--from and --to go without --state and --limit"},
		{"series who-has invoices", "exactly one of --key and --text is required"},
		{"series who-has invoices --key a --text b", "exactly one of --key and --text is required"},
		{"series close invoices --yes", "usage: idnode series close NAME SCOPE"},
		{"series close invoices 2026,,BERLIN --yes", `SCOPE must be a period and values as in 2026,BERLIN, or - for none, not "2026,,BERLIN"`},
		{"series close invoices 2026", "say --yes"},
		{"series resume invoices", "say --yes"},
		{"series resume invoices --yes --last 41", `--last must be SCOPE=NUMBER[@DATE], not "41"`},
		{"series resume invoices --yes --last 2026=41@", `--last "2026=41@" has no date behind the @`},
		{"series resume invoices --yes --last 2026=0", "the number of --last must be above zero, not 0"},
		{"series resume invoices --yes --last -=1 --last -=2", `--last has the scope "-" twice`},
		{"series resume invoices --yes --closed 2026,", "SCOPE must be a period and values"},
		{"series reconcile invoices --number 1=a", "usage: idnode series reconcile NAME SCOPE"},
		{"series reconcile invoices -", "exactly one of --number and --file is required"},
		{"series reconcile invoices - --number 1=a --file x", "exactly one of --number and --file is required"},
		{"series reconcile invoices - --number 8", `--number must be NUMBER=KEY, or NUMBER= if no document has it, not "8"`},
		{"series reconcile invoices - --number a=b", "the number of --number must be a whole number"},
		{"series resume invoices --yes --last =41", "SCOPE must be a period and values"},
		{"series resume invoices --yes --last 2026=many", "the number of --last must be a whole number"},
		{"series take invoices doc/1", `"doc/1" is one argument too many: a document goes with --key; usage: idnode series take NAME --key K`},
	}.run(t)
}

// TestWrongUsageOfOtherCommands: the cluster, backups, and the program itself.
func TestWrongUsageOfOtherCommands(t *testing.T) {
	usageTests{
		{"cluster status --watch=5", "not a duration"},
		{"backup x --database shop", "does not take a database"},
		{"cluster members --database shop", "does not take a database"},
		{"cluster set max-identities lots", "VALUE must be a whole number"},
		{"cluster set max-name-bytes-total 2GB", "such as 512KiB"},
		{"cluster transfer A B", "usage: idnode cluster transfer [TAG]"},
		{"backup", "usage: idnode backup FILE|DIR"},
		{"restore x --skip-ahead -1", "--skip-ahead is from 0 to 281474976710656, not -1"},
		{"restore x --skip-ahead 281474976710657", "--skip-ahead is from 0 to"},
		{"recover --data-dir x --members A --skip-ahead 9223372036854775807", "--skip-ahead is from 0 to"},
		{"import x --form xml", `--form must be ravendb or csv, not "xml"`},
		{"export x --form xml", `--form must be ravendb, csv or series, not "xml"`},
		{"recover --members A --skip-ahead 1", "--data-dir and --members are required"},
		{"recover --data-dir x --members A", "--skip-ahead is required"},
		{"version now", "usage: idnode version"},
		{"cluster set max-claims=5", "VALUE is missing: a space goes between KEY and VALUE, no =; usage: idnode cluster set KEY VALUE"},
		{"certs d --node A --node A", "--node A is given twice"},
		{"version -o yaml", "--output must be text, wide or json"},
	}.run(t)
}

// TestGroupsWithoutCommand print what there is, and fail.
func TestGroupsWithoutCommand(t *testing.T) {
	for _, line := range []string{"", "hilo", "identity", "series", "cluster", "completion"} {
		got := command(t, strings.Fields(line)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, "Available Commands:") && !strings.Contains(got.stderr, "Ids:") {
			t.Errorf("idnode %s: code %d, %q", line, got.code, got.stderr)
		}
	}
}

// TestHelpOfEveryCommand checks that each command explains itself.
func TestHelpOfEveryCommand(t *testing.T) {
	root := newRootCommand(&app{})
	commands := root.Commands()
	for len(commands) > 0 {
		c := commands[0]
		commands = append(commands[1:], c.Commands()...)
		if c.Short == "" || !c.HasSubCommands() && c.Example == "" {
			t.Errorf("%s has no description or no example", c.CommandPath())
		}
		if strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: the short description ends with a full stop", c.CommandPath())
		}
		got := command(t, append(strings.Fields(c.CommandPath())[1:], "--help")...)
		connects := c.Flags().Lookup("context") != nil
		if got.code != exitOK || !strings.Contains(got.stdout, "Usage:") ||
			strings.Contains(got.stdout, "\nConnection:\n      --cluster-id") != connects || strings.Count(got.stdout, "--endpoint str") > 1 {
			t.Errorf("%s --help: code %d, %q", c.CommandPath(), got.code, got.stdout)
		}
	}
}

// TestHelpBeginsWithWhatIsUsedMost: that of the program, and of each group of commands, begins with three
// of its commands, or all that there are. Each is one that the program takes, and stands there once.
func TestHelpBeginsWithWhatIsUsedMost(t *testing.T) {
	a, groups := &app{}, 0
	root := newRootCommand(a)
	a.strict(root)
	commands := []*cobra.Command{root}
	for ; len(commands) > 0; commands = commands[1:] {
		group := commands[0]
		commands = append(commands, group.Commands()...)
		if !group.HasSubCommands() || strings.Contains(group.Use, " ") {
			continue
		}
		groups++
		got := command(t, append(strings.Fields(group.CommandPath())[1:], "--help")...).stdout
		head, rest, _ := strings.Cut(got, "\n\n")
		lines := strings.Split(head, "\n")
		if lines[0] != "Most used:" || len(lines)-1 != min(3, len(childrenOf(group))) || strings.Contains(rest, lines[1]) {
			t.Errorf("%s --help begins with %q", group.CommandPath(), head)
		}
		for _, line := range lines[1:] {
			used, does, _ := strings.Cut(strings.TrimSpace(line), "   ")
			words := shellWord.FindAllString(strings.ReplaceAll(used, "'", ""), -1)
			cmd, args, err := group.Root().Find(words[1:])
			if err == nil {
				err = cmd.ParseFlags(args)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil || does == "" || cmd.HasSubCommands() || !strings.HasPrefix(cmd.CommandPath(), group.CommandPath()+" ") {
				t.Errorf("%s --help: %q is no command of it: %v", group.CommandPath(), used, err)
			}
		}
	}
	if groups != len(mostUsed) {
		t.Errorf("there are %d groups, and %d have what is used most", groups, len(mostUsed))
	}
}

func TestVersion(t *testing.T) {
	for _, words := range []string{"version", "--version"} {
		if got := command(t, words); got.code != exitOK || !strings.HasPrefix(got.stdout, "idnode ") ||
			!strings.Contains(got.stdout, versionText()) {
			t.Errorf("%s: %+v", words, got)
		}
	}
}

func TestVersionAsJSON(t *testing.T) {
	got := command(t, "version", "-o", "json")
	var is map[string]string
	if err := json.Unmarshal([]byte(got.stdout), &is); err != nil || is["version"] != versionText() || is["os"] != runtime.GOOS {
		t.Errorf("%+v: %v", got, err)
	}
}

// TestNamesOfTheClusterAreCompleted, and files where files are meant.
func TestNamesOfTheClusterAreCompleted(t *testing.T) {
	for line, tt := range map[string]struct {
		res  proto.Message
		want string
	}{
		"series show":            {&idnodev1.ListSeriesResponse{Series: []*idnodev1.Series{{Name: "invoices"}}}, "invoices\n:4\n"},
		"cluster remove":         {&idnodev1.ListMembersResponse{Members: []*idnodev1.Member{{Tag: "A"}, {Tag: "B"}}}, "A\nB\n:4\n"},
		"cluster transfer":       {&idnodev1.ListMembersResponse{Members: []*idnodev1.Member{{Tag: "A"}}}, "A\n:4\n"},
		"cluster set":            {&idnodev1.ListSettingsResponse{Settings: []*idnodev1.Setting{{Key: "max-claims"}}}, "max-claims\n:4\n"},
		"cluster set k":          {nil, ":4\n"},
		"database delete":        {&idnodev1.ListDatabasesResponse{Databases: []string{"shop"}}, "shop\n:4\n"},
		"next users| --database": {&idnodev1.ListDatabasesResponse{Databases: []string{"shop"}}, "shop\n:4\n"},
		"import":                 {nil, ":0\n"},
	} {
		node := newFakeNode(t, answer(tt.res))
		words := strings.Fields(line)
		args := append([]string{"__complete", words[0], "--endpoint", node.addr}, append(words[1:], "")...)
		if words[0] != "import" && words[0] != "next" {
			args = append([]string{"__complete", words[0], words[1], "--endpoint", node.addr}, append(words[2:], "")...)
		}
		if got := command(t, args...); got.stdout != tt.want {
			t.Errorf("%s: %+v, want %q", line, got, tt.want)
		}
	}
}

func TestCompletion(t *testing.T) {
	got := command(t, "completion", "bash")
	if got.code != exitOK || !strings.Contains(got.stdout, "__start_idnode") {
		t.Errorf("code %d", got.code)
	}
	for line, want := range map[string]string{
		"bench --op":                  "identity\nserver-side\nrange\n",
		"cluster members -o":          "text\nwide\njson\n",
		"export x --form":             "ravendb\ncsv\nseries\n",
		"import x --form":             "ravendb\ncsv\n:",
		"series define x --on-expiry": "report\nvoid\nreuse-lowest\n",
	} {
		if got := command(t, append([]string{"__complete"}, append(strings.Fields(line), "")...)...); !strings.HasPrefix(got.stdout, want) {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
}

// TestUnknownVariables: a variable that looks like ours and is none is told of, by every
// command but serve, which refuses it.
func TestUnknownVariables(t *testing.T) {
	env := []string{"IDNODE_ENDPOINT=db:1", "IDNODE_ODD=", "IDNODE_DATABASE=x", "IDNODE_DATA_DIR=/d", "HOME=/", "IDNODES=1"}
	want := "idnode: warning: IDNODE_ENDPOINT in the environment is no variable of idnode; IDNODE_ENDPOINTS is one\n" +
		"idnode: warning: IDNODE_ODD in the environment is no variable of idnode\n"
	if got := commandEnv(t, env, "version"); got.code != exitOK || got.stderr != want {
		t.Errorf("%+v", got)
	}
	if got := commandEnv(t, env, "serve", "--tag", "A"); got.code != exitUsage || strings.Contains(got.stderr, "warning") ||
		!strings.Contains(got.stderr, "unknown variable IDNODE_ENDPOINT") {
		t.Errorf("%+v", got)
	}
}

// ending ends a context at the first write.
type ending struct {
	written int
	end     context.CancelFunc
}

func (e *ending) Write(p []byte) (int, error) {
	e.written += len(p)
	e.end()
	return len(p), nil
}

// TestCtrlCEndsALongOutput: a million ids are not printed to their end.
func TestCtrlCEndsALongOutput(t *testing.T) {
	node := newFakeNode(t, answer(&idnodev1.GenerateResponse{Blocks: []*idnodev1.IdBlock{{Prefix: "users/", First: 1, Last: 1_000_000}}}))
	ctx, cancel := context.WithCancel(t.Context())
	out := &ending{end: cancel}
	var stderr strings.Builder
	code := run(ctx, []string{"next", "users|", "--count", "1000000", "--endpoint", node.addr}, strings.NewReader(""), out, &stderr, nil)
	if code != exitFailed || stderr.String() != "idnode: CANCELLED: interrupted\n" || out.written > 1<<20 {
		t.Errorf("code %d, %q, %d bytes written", code, stderr.String(), out.written)
	}
}
