package format

// Template is the text that the format was defined with, and Reset when its numbers begin again.
func (f *Format) Template() string { return f.template }

func (f *Format) Reset() Reset { return f.reset }
