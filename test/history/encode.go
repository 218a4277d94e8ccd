package history

import (
	"encoding/json"
	"strconv"
)

// MarshalJSON writes a block as [first,last].
func (b Block) MarshalJSON() ([]byte, error) { return b.append(nil), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (b *Block) UnmarshalJSON(text []byte) error {
	var pair [2]int64
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	b.First, b.Last = pair[0], pair[1]
	return nil
}

func (b Block) append(dst []byte) []byte {
	dst = append(dst, '[')
	dst = strconv.AppendInt(dst, b.First, 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, b.Last, 10)
	return append(dst, ']')
}

// AppendJSON appends the Op as one JSON object, without a new line. It writes
// what json.Marshal would, five times as fast: recording must not be what a
// cluster under load waits for.
func (o *Op) AppendJSON(dst []byte) []byte {
	e := encoder{append(dst, '{')}
	e.text("kind", string(o.Kind))
	e.number("client", o.Client)
	e.text("node", o.Node)
	e.text("db", o.Database)
	e.text("name", o.Name)
	e.text("request", o.Request)
	e.key("call")
	e.dst = strconv.AppendInt(e.dst, o.Call, 10)
	if o.Return != Never {
		e.key("return")
		e.dst = strconv.AppendInt(e.dst, o.Return, 10)
	}
	e.text("outcome", string(o.Outcome))
	e.text("code", o.Code)
	e.number("count", o.Count)
	e.number("value", o.Value)
	if o.Expected != nil {
		e.key("expected")
		e.dst = strconv.AppendInt(e.dst, *o.Expected, 10)
	}
	e.flag("force", o.Force)
	e.flag("forget", o.Forget)
	e.flag("stale", o.Stale)
	e.number("low", o.Low)
	e.number("high", o.High)
	e.flag("reserve", o.Reserve)
	e.number("last", o.Last)
	e.text("id", o.ID)
	e.blocks("blocks", o.Blocks)
	e.number("result", o.Result)
	e.flag("returned", o.Returned)
	e.text("tag", o.Tag)
	e.unsigned("index", o.Index)
	e.unsigned("hash", o.Hash)
	return append(e.dst, '}')
}

// encoder appends the fields that are not empty.
type encoder struct {
	dst []byte
}

func (e *encoder) key(name string) {
	if e.dst[len(e.dst)-1] != '{' {
		e.dst = append(e.dst, ',')
	}
	e.dst = append(e.dst, '"')
	e.dst = append(e.dst, name...)
	e.dst = append(e.dst, '"', ':')
}

func (e *encoder) text(key, value string) {
	if value == "" {
		return
	}
	e.key(key)
	if plain(value) {
		e.dst = append(e.dst, '"')
		e.dst = append(e.dst, value...)
		e.dst = append(e.dst, '"')
		return
	}
	quoted, err := json.Marshal(value)
	if err != nil {
		panic(err) // a string can always be written
	}
	e.dst = append(e.dst, quoted...)
}

// plain says whether the text stands in JSON as it is.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (e *encoder) number(key string, value int64) {
	if value != 0 {
		e.key(key)
		e.dst = strconv.AppendInt(e.dst, value, 10)
	}
}

func (e *encoder) unsigned(key string, value uint64) {
	if value != 0 {
		e.key(key)
		e.dst = strconv.AppendUint(e.dst, value, 10)
	}
}

func (e *encoder) flag(key string, value bool) {
	if value {
		e.key(key)
		e.dst = append(e.dst, "true"...)
	}
}

func (e *encoder) blocks(key string, blocks []Block) {
	if len(blocks) == 0 {
		return
	}
	e.key(key)
	for i, b := range blocks {
		open := byte(',')
		if i == 0 {
			open = '['
		}
		e.dst = b.append(append(e.dst, open))
	}
	e.dst = append(e.dst, ']')
}
