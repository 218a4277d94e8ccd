// Package docs holds the pages that a node serves to those who use and operate it: they are needed when
// the network is down. It has no code.
package docs

import "embed"

// Pages are the pages by their paths below docs.
//
//go:embed README.md promises.md series.md snowflake.md operate/*.md reference/*.md start/*.md
var Pages embed.FS
