package history

import "math"

// parser reads the lines that AppendJSON writes, ten times as fast as
// encoding/json does: a history of ten million lines is read in seconds. A line
// of any other form goes to encoding/json, so the two cannot disagree about what
// is valid; a fuzz test compares them on what both read.
type parser struct {
	// known has every text seen so far: names and tags come again and again, and
	// one copy of each is enough.
	known map[string]string

	line []byte
	at   int
	// bad says that the line is not of the simple form.
	bad bool
}

// maxKnown bounds known: request ids do not come again.
const maxKnown = 1 << 16

func (p *parser) parse(line []byte) (Op, error) {
	p.line, p.at, p.bad = line, 0, false
	op := Op{Return: Never}
	p.expect('{')
	for first := true; !p.bad && p.peek() != '}'; first = false {
		if !first {
			p.expect(',')
		}
		key := p.raw()
		p.expect(':')
		p.field(&op, key)
	}
	p.expect('}')
	if p.bad || p.at != len(line) {
		return parseAny(line)
	}
	return op, nil
}

// field reads the value of a key.
func (p *parser) field(op *Op, key []byte) {
	switch string(key) {
	case "kind":
		op.Kind = Kind(p.text())
	case "client":
		op.Client = p.number()
	case "node":
		op.Node = p.text()
	case "db":
		op.Database = p.text()
	case "name":
		op.Name = p.text()
	case "request":
		op.Request = p.text()
	case "call":
		op.Call = p.number()
	case "return":
		op.Return = p.number()
	case "outcome":
		op.Outcome = Outcome(p.text())
	case "code":
		op.Code = p.text()
	case "count":
		op.Count = p.number()
	case "low":
		op.Low = p.number()
	case "high":
		op.High = p.number()
	case "last":
		op.Last = p.number()
	case "blocks":
		op.Blocks = p.blocks()
	case "result":
		op.Result = p.number()
	case "tag":
		op.Tag = p.text()
	default:
		p.bad = true // rare keys are read the slow way
	}
}

func (p *parser) peek() byte {
	if p.at < len(p.line) {
		return p.line[p.at]
	}
	p.bad = true
	return 0
}

func (p *parser) expect(c byte) {
	if p.peek() != c {
		p.bad = true
		return
	}
	p.at++
}

// raw reads a text without escapes, quoted.
func (p *parser) raw() []byte {
	p.expect('"')
	start := p.at
	for p.at < len(p.line) {
		c := p.line[p.at]
		switch {
		case c == '"':
			p.at++
			return p.line[start : p.at-1]
		case c < ' ' || c > '~' || c == '\\':
			p.bad = true
			return nil
		}
		p.at++
	}
	p.bad = true
	return nil
}

func (p *parser) text() string {
	raw := p.raw()
	if s, ok := p.known[string(raw)]; ok {
		return s
	}
	s := string(raw)
	if len(p.known) < maxKnown {
		p.known[s] = s
	}
	return s
}

// number reads a whole number without an exponent.
func (p *parser) number() int64 {
	negative := p.peek() == '-'
	if negative {
		p.at++
	}
	start := p.at
	var n int64
	for p.at < len(p.line) && p.line[p.at]-'0' <= 9 {
		d := int64(p.line[p.at] - '0')
		if n > (math.MaxInt64-d)/10 {
			p.bad = true // the most negative number too is read the slow way
			return 0
		}
		n = n*10 + d
		p.at++
	}
	if p.at == start || p.line[start] == '0' && p.at > start+1 {
		p.bad = true
		return 0
	}
	if negative {
		return -n
	}
	return n
}

func (p *parser) blocks() []Block {
	p.expect('[')
	blocks := make([]Block, 0, 1)
	for !p.bad && p.peek() != ']' {
		if len(blocks) > 0 {
			p.expect(',')
		}
		p.expect('[')
		first := p.number()
		p.expect(',')
		last := p.number()
		p.expect(']')
		blocks = append(blocks, Block{first, last})
	}
	p.expect(']')
	return blocks
}
