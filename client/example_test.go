package client_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"reflect"
	"testing"

	"github.com/idnode/idnode/client"
)

// exampleCluster replaces the nodes of a cluster, so that the examples run.
func exampleCluster() (endpoints []string, stop func()) {
	t := &exampleTB{}
	f := newCluster(t, 3)
	return f.addrs(), t.stop
}

// exampleTB is what newCluster needs of a test.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (t *exampleTB) Helper()           {}
func (t *exampleTB) Cleanup(f func())  { t.cleanups = append(t.cleanups, f) }
func (t *exampleTB) Fatal(args ...any) { log.Fatal(args...) }
func (t *exampleTB) stop() {
	for _, f := range t.cleanups {
		f()
	}
}

func Example() {
	endpoints, stop := exampleCluster() // 127.0.0.1:7400, 127.0.0.1:7410, 127.0.0.1:7420
	defer stop()
	ctx := context.Background()

	c, err := client.New(ctx, client.Config{Endpoints: endpoints})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)

	invoice, err := c.Identity("invoices").Next(ctx) // 1, 2, 3 … across the cluster
	fmt.Println(invoice, err)

	id, _ := c.Next(ctx, "invoices|")     // the same as an id
	user, _ := c.NextHiLoID(ctx, "users") // without a call for most ids
	entry, _ := c.Next(ctx, "entries/")   // a server-side id
	err = c.Claim(ctx, "users/ayende")    // an id of one's own, if it is free
	again := c.Claim(ctx, "users/ayende") // it is taken
	taken := errors.Is(again, client.ErrIDClaimed)
	fmt.Println(id, user, entry, err, taken)
	// Output:
	// 1 <nil>
	// invoices/2 users/1-A entries/0000000000000000001-A <nil> true
}

func ExampleClient_HiLo() {
	endpoints, stop := exampleCluster()
	defer stop()
	ctx := context.Background()
	c, err := client.New(ctx, client.Config{Endpoints: endpoints})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx) // gives the unused numbers back

	users := c.HiLo("users") // made once, shared by all goroutines
	id, _ := users.NextID(ctx)
	number, _ := users.Next(ctx)
	more, _ := users.NextIDs(ctx, 3)
	fmt.Println(id)
	fmt.Println(number.Value(), number.NodeTag())
	fmt.Println(more)
	// Output:
	// users/1-A
	// 2 A
	// [users/3-A users/4-A users/5-A]
}

// With database/sql ids are taken before the transaction, which then waits for no cluster.
func ExampleHiLo_NextIDs() {
	insert := func(ctx context.Context, db *sql.DB, users *client.HiLo, names []string) error {
		ids, err := users.NextIDs(ctx, len(names))
		if err != nil {
			return err
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after Commit
		for i, name := range names {
			if _, err := tx.ExecContext(ctx, `INSERT INTO users (id, name) VALUES (?, ?)`, ids[i], name); err != nil {
				return err
			}
		}
		return tx.Commit()
	}
	_ = insert
}

func ExampleIDFor() {
	endpoints, stop := exampleCluster()
	defer stop()
	ctx := context.Background()
	c, err := client.New(ctx, client.Config{
		Endpoints: endpoints,
		Conventions: map[reflect.Type]client.Convention{
			reflect.TypeFor[Order](): {Collection: "Purchases"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)

	company, _ := client.IDFor[Company](ctx, c)
	line, _ := client.IDFor[OrderLine](ctx, c)
	order, _ := client.IDFor[Order](ctx, c)
	fmt.Println(company, line, order)
	// Output: companies/1-A OrderLines/1-A purchases/1-A
}

func ExampleClient_FillID() {
	endpoints, stop := exampleCluster()
	defer stop()
	ctx := context.Background()
	c, err := client.New(ctx, client.Config{Endpoints: endpoints})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)

	company := Company{Name: "Hibernating Rhinos"}
	if err := c.FillID(ctx, &company); err != nil {
		log.Fatal(err)
	}
	fmt.Println(company.ID)
	// Output: companies/1-A
}

// A call whose outcome is unknown is repeated with the same request id, also
// by another process: it counts once.
func ExampleError() {
	endpoints, stop := exampleCluster()
	defer stop()
	ctx := context.Background()
	c, err := client.New(ctx, client.Config{Endpoints: endpoints})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)

	id, err := c.Next(ctx, "invoices|")
	var e *client.Error
	if errors.Is(err, client.ErrOutcomeUnknown) && errors.As(err, &e) {
		id, err = c.Next(ctx, "invoices|", client.WithRetryOf(e.RequestID))
	}
	fmt.Println(id, err)
	// Output: invoices/1 <nil>
}

func ExampleClient_Identities() {
	endpoints, stop := exampleCluster()
	defer stop()
	ctx := context.Background()
	c, err := client.New(ctx, client.Config{Endpoints: endpoints})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)

	for identity, err := range c.Identities(ctx, "") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(identity.Name, identity.Value)
		if identity.Value == 2 {
			break
		}
	}
	// Output:
	// i0000 0
	// i0001 1
	// i0002 2
}
