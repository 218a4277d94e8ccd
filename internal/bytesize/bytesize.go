// Package bytesize reads and writes sizes as people do: 64MiB.
package bytesize

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. It is a flag's value.
type Size int64

// units are the powers of 1024 that have a name, the greatest first.
var units = []struct {
	name string
	size Size
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// Parse reads a whole number of KiB, MiB, GiB or TiB; one without a unit is of bytes.
func Parse(text string) (Size, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(digits, 10, 63); err == nil && n <= uint64(math.MaxInt64/u.size) {
			return Size(n) * u.size, nil
		}
		break
	}
	return 0, fmt.Errorf("%q is not a size such as 512KiB, 64MiB or 2GiB, or a number of bytes", text)
}

// String is what Parse reads as s: in the greatest unit of which s is a whole number.
func (s Size) String() string {
	for _, u := range units {
		if s%u.size == 0 && s != 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return "0"
}

// Rounded is s with a decimal, in the greatest unit of which it is one at least.
func (s Size) Rounded() string {
	for _, u := range units[:len(units)-1] {
		if s >= u.size {
			return strconv.FormatFloat(float64(s)/float64(u.size), 'f', 1, 64) + u.name
		}
	}
	return fmt.Sprintf("%d bytes", int64(s))
}

func (s *Size) Set(text string) (err error) {
	*s, err = Parse(text)
	return err
}

// Type implements pflag.Value: it is shown in usage.
func (s *Size) Type() string { return "size" }
