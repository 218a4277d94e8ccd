package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

type definitionFlags struct {
	begins, allowed                   []string
	dryRun                            bool
	flags                             *pflag.FlagSet
	reset, order, onRelease, onExpiry string
	definition                        idnodev1.SeriesDefinition
}

func newSeriesDefineCommand(a *app) *cobra.Command {
	var d definitionFlags
	var expected int64
	cmd := &cobra.Command{
		Use:   "define NAME --format F",
		Short: "Begin a series, or change its definition",
		Long: `Begins a series, and prints the version of its definition; what the definition means goes
to standard error: the texts of the first two numbers, the values that each call must
give, and when numbers begin again. --dry-run prints that alone, and changes nothing.

With --expected-version the definition changes. As long as no number was confirmed or
voided everything may change; another format or --reset-by then forgets all open
numbers and allotments, and --dry-run says how many. Afterwards format and --reset-by stay as they are,
--order, --on-release and --on-expiry only become stricter, and limits change either
way. A definition is given as a whole: what is not said is the default, and not what it
was.`,
		Example: `  idnode series define invoices --format 'INV-{year}-{number:6}' --reset-by year --dry-run
  idnode series define invoices --format 'INV-{year}-{number:6}' --reset-by year
  idnode series define orders --format '{branch}-{number:6+}{check:damm}' --expires-in 72h --on-expiry void
  idnode series define moved --format 'RE-{number:4}' --begin -=543
  idnode series define invoices --format 'INV-{year}-{number:6}' --reset-by year --max-open 100 --expected-version 1`,
	}
	d.register(cmd.Flags())
	cmd.Flags().Int64Var(&expected, "expected-version", 0, "the version that 'series show' has; 0 begins the series")
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		definition, err := d.message()
		if err != nil {
			return err
		}
		begins, err := parseBegins(d.begins)
		if err != nil {
			return err
		}
		msg := &idnodev1.DefineSeriesRequest{
			Database: s.database, Name: args[0], Definition: definition, ExpectedVersion: expected, Begins: begins, DryRun: d.dryRun,
		}
		res, err := seriesVia(s.keyed).DefineSeries(ctx, msg)
		if res.GetSuspended() {
			is := map[bool]string{false: "is", true: "would be"}[d.dryRun]
			fmt.Fprintf(a.stderr,
				"%s %s suspended: after a restore, a series of this name may have given numbers. Look into the books, then 'idnode series resume %s'\n",
				docid.Escape(quote(args[0])), is, docid.Escape(args[0]))
		}
		if err != nil || s.out.json {
			return s.out.value(err, res, nil)
		}
		if d.dryRun {
			printPreview(s.out.w, res.GetPreview())
			return nil
		}
		printPreview(a.stderr, res.GetPreview())
		return s.out.value(nil, res, res.GetVersion())
	})
}

func printPreview(w io.Writer, p *idnodev1.SeriesPreview) {
	if p == nil {
		return
	}
	var forgets []string
	if p.GetForgets() > 0 {
		forgets = append(forgets, fmt.Sprintf("%d open numbers", p.GetForgets()))
	}
	if p.GetForgetsAllotments() > 0 {
		forgets = append(forgets, fmt.Sprintf("%d allotments", p.GetForgetsAllotments()))
	}
	fields(w, [][2]string{
		{"texts", strings.Join(p.GetTexts(), ", ")},
		{"values", strings.Join(p.GetValues(), ", ")},
		{"begins again", cmp.Or(p.GetBeginsAgain(), "never")},
		{"forgets", strings.Join(forgets, ", ")},
	})
}

// parseBegins parses where scopes begin. The cluster decides whether they exist.
func parseBegins(texts []string) (begins []*idnodev1.ScopeBegin, err error) {
	for _, text := range texts {
		scope, number, err := cutScope("--begin", "SCOPE=NUMBER", text)
		if err != nil {
			return nil, err
		}
		first, err := parseNumberOf("--begin", number)
		if err != nil {
			return nil, err
		}
		begins = append(begins, &idnodev1.ScopeBegin{Scope: scope, First: first})
	}
	return begins, nil
}

func (d *definitionFlags) register(f *pflag.FlagSet) {
	d.flags = f
	f.StringVar(&d.definition.Format, "format", "",
		"the text of a number, as in INV-{branch}-{year}-{number:6} (required); docs/series.md has the tokens")
	f.StringVar(&d.reset, "reset-by", "never", "when numbers begin at 1 again: never, year, month, day, week or fiscal-year")
	f.StringVar(&d.order, "order", "any",
		"of documents by their dates: any, dates-do-not-go-back, or one-open, with one open number at a time")
	f.StringVar(&d.onRelease, "on-release", "void", "what becomes of a released number: void, reuse-newest or reuse-lowest")
	f.StringVar(&d.onExpiry, "on-expiry", "report", "what becomes of an open number whose time has ended: report, void or reuse-lowest")
	f.Duration("expires-in", 0, "how long a number stays open, at most 87600h (default: without end)")
	f.Int64Var(&d.definition.MaxOpen, "max-open", 0, "how many numbers of a scope may be open; 0 is without limit")
	f.Int64Var(&d.definition.MaxKeys, "max-keys", 0, "how many keys the series may know; 0 is without limit")
	f.Int32("max-ahead-days", 0, "how many days a date may be after the present one, at most 3650 (default: 1 with an --order, else 366)")
	f.Uint32Var(&d.definition.MaxLength, "max-length", 0, "how many characters a text may have, at most 128; 0 is without limit")
	f.StringArrayVar(&d.allowed, "allow", nil,
		"NAME=A,B: the values that calls may give, as in branch=BERLIN,HAMBURG; one flag for each name (default: any)")
	f.StringArrayVar(&d.begins, "begin", nil,
		"SCOPE=NUMBER: the first number of a scope that has none yet, - for a series without scopes; one flag for each")
	f.BoolVar(&d.dryRun, "dry-run", false, "print what the definition means, and change nothing")
	f.StringVar(&d.definition.TimeZone, "time-zone", "", "IANA name of the zone of dates that callers do not give (default: UTC)")
}

func (d *definitionFlags) message() (*idnodev1.SeriesDefinition, error) {
	if d.definition.GetFormat() == "" {
		return nil, usagef("--format is required")
	}
	if d.flags.Changed("max-ahead-days") {
		days, _ := d.flags.GetInt32("max-ahead-days")
		d.definition.MaxAheadDays = &days
	}
	var wrong error
	d.definition.Allowed, wrong = parseAllowed(d.allowed)
	in, err := expiresIn(d.flags)
	d.definition.ExpiresIn = in
	return &d.definition, cmp.Or(
		choose(&d.definition.ResetBy, "--reset-by", d.reset),
		choose(&d.definition.Order, "--order", d.order),
		choose(&d.definition.OnRelease, "--on-release", d.onRelease),
		choose(&d.definition.OnExpiry, "--on-expiry", d.onExpiry),
		wrong, err)
}

// parseAllowed parses the values that calls may give. The cluster decides whether they can be.
func parseAllowed(texts []string) (all []*idnodev1.AllowedValues, err error) {
	for _, text := range texts {
		name, values, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usagef("--allow must be NAME=A,B, not %q", text)
		}
		all = append(all, &idnodev1.AllowedValues{Name: name, Values: strings.Split(values, ",")})
	}
	return all, nil
}

// allowedText writes the values that calls may give as --allow has them.
func allowedText(d *idnodev1.SeriesDefinition) string {
	var all []string
	for _, a := range d.GetAllowed() {
		all = append(all, a.GetName()+"="+strings.Join(a.GetValues(), ","))
	}
	return cmp.Or(strings.Join(all, " "), "any")
}

// expiresIn returns nil unless --expires-in is given. 0 is refused: it could mean never or at once.
func expiresIn(f *pflag.FlagSet) (*durationpb.Duration, error) {
	if !f.Changed("expires-in") {
		return nil, nil
	}
	in, err := f.GetDuration("expires-in")
	if in <= 0 && err == nil {
		err = usagef("--expires-in must be above zero, not %s", in)
	}
	return durationpb.New(in), err
}

// maxAhead returns, in words, how many days a date may be after today.
func maxAhead(d *idnodev1.SeriesDefinition) string {
	switch {
	case d.MaxAheadDays != nil:
		return fmt.Sprint(d.GetMaxAheadDays())
	case d.GetOrder() == idnodev1.SeriesOrder_SERIES_ORDER_ANY:
		return "366"
	default:
		return "1"
	}
}

func printSeries(w io.Writer, x *idnodev1.Series) {
	d := x.GetDefinition()
	limit := func(n int64) string {
		if n == 0 {
			return "none"
		}
		return fmt.Sprint(n)
	}
	expires := "never"
	if in := d.GetExpiresIn(); in != nil {
		expires = in.AsDuration().String()
	}
	fields(w, [][2]string{
		{"name", x.GetName()},
		{"state", activity(x)},
		{"keys", fmt.Sprint(x.GetKeys())},
		{"version", fmt.Sprint(x.GetVersion())},
		{"format", d.GetFormat()},
		{"reset-by", word(d.GetResetBy())},
		{"order", word(d.GetOrder())},
		{"on-release", word(d.GetOnRelease())},
		{"on-expiry", word(d.GetOnExpiry())},
		{"expires-in", expires},
		{"max-open", limit(d.GetMaxOpen())},
		{"max-keys", limit(d.GetMaxKeys())},
		{"max-ahead-days", maxAhead(d)},
		{"max-length", limit(int64(d.GetMaxLength()))},
		{"allow", allowedText(d)},
		{"time-zone", cmp.Or(d.GetTimeZone(), "UTC")},
	})
}
