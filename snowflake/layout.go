package snowflake

import "github.com/idnode/idnode/client/snowflake"

// The client makes the ids, so the division of their bits is its own.
type (
	// Layout is how the bits of an id are divided.
	Layout = snowflake.Layout
	// InvalidError names the field of a request or a layout that is wrong.
	InvalidError = snowflake.InvalidError
)

// Layouts are the layouts with names.
var Layouts = snowflake.Layouts
