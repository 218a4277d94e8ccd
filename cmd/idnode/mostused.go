package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
)

// mostUsed has the three commands of each group that people use most, in the order of a first use;
// a group of fewer has all. The help of the group begins with them.
var mostUsed = map[string]string{
	"idnode": `  idnode dev                                       a whole cluster on this machine
  idnode next 'users|'                             the next identity: users/1
  idnode cluster status                            what a node sees of the cluster`,
	"audit": "  idnode audit verify /var/lib/idnode/audit.log    nothing was changed, added or taken out",
	"cluster": `  idnode cluster status                            leader, members, alarms
  idnode cluster members                           how each member is
  idnode cluster set max-identities 2000000        a setting of all nodes`,
	"completion": `  idnode completion bash                           for bash: source <(idnode completion bash)
  idnode completion zsh                            for zsh: source <(idnode completion zsh)
  idnode completion fish                           for fish: idnode completion fish | source`,
	"context": `  idnode context save prod --endpoint 10.0.0.1:7400    keep a connection, and its cluster
  idnode context use prod                          take it from now on
  idnode context list                              those that there are`,
	"database": `  idnode database list                             those that have names
  idnode database delete old-shop                  forget all names of one`,
	"hilo": `  idnode hilo next users                           the next range, for a client that makes the ids
  idnode hilo get users                            the highest number reserved
  idnode hilo list                                 all counters`,
	"identity": `  idnode identity get users                        the last value used
  idnode identity list                             all identities
  idnode identity seed users 5000                  go on above 5000`,
	"log": "  idnode log verify /var/lib/idnode                the log of a stopped node is whole",
	"series": `  idnode series take invoices --key doc-1          a number for the document doc-1
  idnode series confirm invoices --key doc-1       it is final
  idnode series report invoices                    numbers by scope and state`,
	"snowflake": `  idnode snowflake define orders                   begin a pool, once
  idnode snowflake next orders                     an id of it
  idnode snowflake pools                           all pools`,
}

// help prints what a command does and how it is used. That of a group begins with the commands that
// people use most.
func help(cmd *cobra.Command, _ []string) {
	out := cmd.OutOrStdout()
	if used := mostUsed[cmd.Name()]; used != "" && used == cmd.Example {
		fmt.Fprintf(out, "Most used:\n%s\n\n", used)
		cmd.Example = "" // Once is enough.
		defer func() { cmd.Example = used }()
	}
	fmt.Fprintf(out, "%s\n\n%s", cmp.Or(cmd.Long, cmd.Short), cmd.UsageString())
}
