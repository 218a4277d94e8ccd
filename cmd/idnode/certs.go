package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/server/tlsconf"
)

func newCertsCommand(a *app) *cobra.Command {
	var o tlsconf.MakeOptions
	cmd := &cobra.Command{
		Use:   "certs DIR",
		Short: "Make certificates for nodes and a client, to begin with",
		Long: `Writes a CA, a certificate for each node and one for a client into DIR: ca.crt,
TAG.crt and TAG.key, client.crt and client.key. A CA that is there is used again,
so nodes can be added later. --client NAME adds NAME.crt and NAME.key, also alone.

A node's certificate says that it is one, by the URI idnode://*/node/TAG. It names
its tag, localhost, 127.0.0.1, ::1, idnode-tag (in small letters) and every --host.
Some clients read only RSA keys in the form PKCS#1 (--rsa), or a PFX (--pfx): a file
with certificate, key and CA, and an empty password.
The command prints the flag that makes the client the administrator of a node.`,
		Example: `  idnode certs ./certs --node A --node B --node C
  idnode certs ./certs --node D --host ids.example.org --host 10.0.0.4
  idnode certs ./certs --node E --client webshop --client operator
  idnode certs ./certs --client reports --rsa --pfx`,
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Nodes, "node", nil, "tag of a node; once for each node")
	f.StringSliceVar(&o.Hosts, "host", nil, "further host name or IP address for every node's certificate")
	f.StringSliceVar(&o.Clients, "client", nil, "name of a further client, which its certificate names; once for each")
	f.BoolVar(&o.Overwrite, "overwrite", false, "replace the certificates that are there; the CA stays")
	f.BoolVar(&o.RSA, "rsa", false, "make RSA keys for nodes and clients, in the form PKCS#1, instead of ECDSA keys in PKCS#8")
	f.BoolVar(&o.PFX, "pfx", false, "also write NAME.pfx (PKCS#12) for each certificate, with an empty password")
	cmd.RunE = a.enter(func(_ *cobra.Command, args []string) error {
		if len(o.Nodes) == 0 && len(o.Clients) == 0 {
			return usagef("--node TAG or --client NAME is required")
		}
		for i, tag := range o.Nodes {
			if slices.Contains(o.Nodes[:i], tag) {
				return usagef("--node %s is given twice", tag)
			}
		}
		if err := tlsconf.MakeCerts(args[0], o); errors.Is(err, tlsconf.ErrExists) {
			return fmt.Errorf("%w; --overwrite replaces it", err)
		} else if err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.stdout, "certificates are in %s; keep ca.key and the other keys to yourself\n", args[0])
		if err == nil && len(o.Nodes) > 0 {
			_, err = fmt.Fprintln(a.stdout, "start each node with: --admin "+tlsconf.FirstClient)
		}
		return err
	})
	return cmd
}
