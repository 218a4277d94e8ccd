package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write docs/reference/cli.md")

const cliPage = "../../docs/reference/cli.md"

// TestCommandsPage: docs/reference/cli.md lists every command, as the program has it.
func TestCommandsPage(t *testing.T) {
	var out strings.Builder
	out.WriteString(cliHead)
	for _, cmd := range newRootCommand(&app{}).Commands() {
		writeCommand(&out, cmd)
	}
	if *update {
		if err := os.WriteFile(cliPage, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(mustRead(t, cliPage)) != out.String() {
		t.Error("docs/reference/cli.md is not what the program has: go test ./cmd/idnode -run TestCommandsPage -update")
	}
}

// writeCommand writes a row for a command, or for each of those below it.
func writeCommand(out *strings.Builder, cmd *cobra.Command) {
	if !cmd.IsAvailableCommand() {
		return
	}
	use := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	if group := cmd.HasSubCommands() && use == cmd.CommandPath(); !group {
		fmt.Fprintf(out, "| `%s` | %s |\n", strings.ReplaceAll(use, "|", `\|`), strings.ReplaceAll(cmd.Short, "|", `\|`))
	}
	for _, child := range cmd.Commands() {
		writeCommand(out, child)
	}
}

const cliHead = `# The command line

<!-- Written by go test ./cmd/idnode -run TestCommandsPage -update: change cmd/idnode instead. -->

For those who run a cluster or try one. ` + "`idnode COMMAND --help` lists the flags of a command, with an example; packages have man pages.\n\n" +
	"## Client commands\n\n" +
	"They take `--endpoint` (several; or `IDNODE_ENDPOINTS`; default `127.0.0.1:7400`), `--timeout`, `-o json` and TLS files, and what is about one database takes `--database`.\n" +
	"They ask the endpoints in order, and the next one only if that cannot make the call count twice. `--cluster-id` (`IDNODE_CLUSTER_ID`) says the cluster: a node\n" +
	"of another one does nothing. Without it, endpoints of two clusters are refused.\n\n" +
	"`idnode context save prod --endpoint … --tls-ca …` keeps a connection and its cluster, `--context prod` or `IDNODE_CONTEXT` takes it, and `idnode context use prod` makes it\n" +
	"the one of commands that say nothing else. What changes the cluster then says where it goes.\n\n" +
	"A command that loses or refuses something asks first: it names what is lost, with the old and the new value. `--yes` answers. Without a terminal and `--yes` it does nothing.\n\n" +
	"## Exit codes\n\n" +
	"| code | means |\n|---|---|\n" +
	"| 0 | done |\n" +
	"| 1 | failed or refused |\n" +
	"| 2 | wrong usage, also a value that the server rejects (INVALID_ARGUMENT) |\n" +
	"| 3 | unavailable: no quorum, no node reached, or no answer in time |\n" +
	"| 4 | of `serve` and `log verify`: the data is damaged |\n" +
	"| 5 | of `serve`: the cluster does not accept the node; of both: a newer program wrote the data |\n\n" +
	"[errors.md](errors.md) has what to do on each error.\n\n" +
	"## Settings of serve\n\n" +
	"Each flag of `serve` can also come from the environment (`--call-timeout` is `IDNODE_CALL_TIMEOUT`) and from a YAML file (`--config FILE`, key\n" +
	"`call-timeout`): [configuration.md](configuration.md) has all.\n\n" +
	"## Commands\n\n" +
	"| command | does |\n|---|---|\n"
