package format

import "fmt"

// Error is a problem with a template, a date, a value, a number or a text.
type Error struct {
	// Field is what is wrong: "format", "reset", "date", "scope", "number" or "text".
	Field string
	// Position is the byte of the template at which the problem is.
	Position int
	// Detail is a sentence's end for people.
	Detail string
}

func (e *Error) Error() string {
	if e.Field == "format" {
		return fmt.Sprintf("format %s, at byte %d", e.Detail, e.Position)
	}
	return e.Field + " " + e.Detail
}

// Numbered is a number, and what its text depends on beside it.
type Numbered struct {
	// Date is the document's date, or any other that gives the same text.
	Date Date
	// Values are the scope values, in the order of Format.Names.
	Values []string
	// Scope is what Format.Scope returns for them; only Parse sets it.
	Scope []string
	// Number is the number within its scope.
	Number int64
}

// CollisionError means that two numbers of a format would have one text.
type CollisionError struct {
	// Position is the byte of the template at which their texts are read in two ways.
	Position int
	// Text is what both would have; empty if no two numbers were found. Then the format's
	// dates exclude the example, and perhaps every other.
	Text string
	// One and Other are the two numbers.
	One, Other Numbered
}

func (e *CollisionError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("format can be read in two ways, at byte %d", e.Position)
	}
	return fmt.Sprintf("format gives two numbers one text, at byte %d: %q is number %d of %s and number %d of %s",
		e.Position, e.Text, e.One.Number, e.One.where(), e.Other.Number, e.Other.where())
}

func (n Numbered) where() string {
	where := n.Date.String()
	for _, v := range n.Values {
		where += " " + v
	}
	return where
}

// FullError means that a number has more digits than its format.
type FullError struct {
	// Number is the number, Most the greatest one for which there is room.
	Number, Most int64
}

func (e *FullError) Error() string {
	return fmt.Sprintf("number %d does not fit: the format ends at %d", e.Number, e.Most)
}
