package hilo_test

import (
	"fmt"
	"time"

	"github.com/idnode/idnode/hilo"
)

// Ranges of one tag never overlap. The newest range can be given back: the counter moves
// back to the last number in use, and a High still names one range.
func ExampleCounter() {
	var c hilo.Counter
	c, first, _ := c.Next(32, 0, 111, hilo.Holder{Who: "client a"})
	c, second, _ := c.Next(32, 0, 222, hilo.Holder{Who: "client b"})
	fmt.Println(first, second)

	_, ok := c.Return(first, 5, 111, true) // Only the newest range can be given back.
	fmt.Println(ok)
	c, ok = c.Return(second, 40, 222, true) // Client b has used the numbers up to 40.
	fmt.Println(ok, c.Max, c.Peak)

	_, third, _ := c.Next(10, 0, 333, hilo.Holder{})
	fmt.Println(third) // 33..64 ended at 64, so this range ends above 64.
	// Output:
	// {1 32} {33 64}
	// false
	// true 40 64
	// {41 65}
}

// Busy clients get larger ranges.
func ExampleNextSize() {
	fmt.Println(hilo.NextSize(0, 0, false))              // The first range.
	fmt.Println(hilo.NextSize(32, 10*time.Second, true)) // It lasted less than 30 s.
	fmt.Println(hilo.NextSize(64, 45*time.Second, true))
	fmt.Println(hilo.NextSize(64, 90*time.Second, true)) // It lasted more than 60 s.
	// Output:
	// 32
	// 64
	// 64
	// 32
}
