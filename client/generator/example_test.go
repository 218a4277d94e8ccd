package generator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/idnode/idnode/client/generator"
)

// counter is the simplest source there is: a counter in memory. That of a program
// asks the cluster.
type counter struct {
	max int64
}

func (c *counter) Next(_ context.Context, r generator.Request) (generator.Range, error) {
	size := max(r.Size, 32)
	low := c.max + 1
	c.max += size
	return generator.Range{
		Low: low, High: c.max,
		Granted: size,
		Prefix:  "users/",
		NodeTag: "A",
		At:      time.Now(),
	}, nil
}

func (c *counter) Return(_ context.Context, r generator.Range, last int64) error {
	if r.High == c.max {
		c.max = last
	}
	return nil
}

// A generator is made once per tag, shared, and closed at the end.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	users := &counter{}
	g, err := generator.New(users, generator.Config{FirstSize: 100})
	if err != nil {
		fmt.Println(err)
		return
	}

	id, err := g.NextID(ctx)
	fmt.Println(id, err)
	ids, err := g.NextIDs(ctx, 3)
	fmt.Println(ids, err)
	n, err := g.Next(ctx)
	fmt.Println(n.Value(), n.NodeTag(), n, err)

	fmt.Println("closed:", g.Close(ctx))
	fmt.Println("the last number in use:", users.max)
	// Output:
	// users/1-A <nil>
	// [users/2-A users/3-A users/4-A] <nil>
	// 5 A users/5-A <nil>
	// closed: <nil>
	// the last number in use: 5
}

// Without the string: a Number is a value that knows its prefix and tag, and can be
// appended to a buffer without an allocation.
func ExampleNumber_Append() {
	ctx := context.Background()
	g, err := generator.New(&counter{}, generator.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		if err := g.Close(ctx); err != nil {
			fmt.Println(err)
		}
	}()
	line := []byte("id=")
	for range 2 {
		n, err := g.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		line = n.Append(line)
		line = append(line, ' ')
	}
	fmt.Println(string(line))
	// Output:
	// id=users/1-A users/2-A
}
