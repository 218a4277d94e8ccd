package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestPageOfManyRows: each view keeps its form with no row, with one, and with a thousand, from a
// phone to a wide screen, in the light and in the dark.
func TestPageOfManyRows(t *testing.T) {
	tier.Long(t)
	chromium(t)
	n := harness.StartCluster(t, harness.Config{Size: 1}).Nodes[0]
	b := openBrowser(t, "http://"+n.HTTP)
	have := 0
	for _, rows := range []int{0, 1, 1000} {
		addRows(t, n, have, rows)
		have = rows
		for _, width := range widths {
			b.size(width, 800)
			for _, scheme := range []string{"light", "dark"} {
				b.colours(scheme)
				for _, view := range pages {
					b.open(view)
					b.until("the view's content", shows(rows))
					b.fits(fmt.Sprintf("%s, %s, %d rows,", view, scheme, rows), width)
					b.shot(fmt.Sprintf("rows-%d-%s-%d-%s", rows, scheme, width, strings.SplitN(view, "?", 2)[0]))
				}
			}
		}
	}
}

// shows says that a view has what it shows: a list has as many rows as there are, up to a page of
// them, or says that there is none; and what is looked for may not be found.
func shows(rows int) string {
	const list = `document.querySelector("main > div > .list:has(.filter)")`
	whole := fmt.Sprintf("%s.querySelectorAll('tbody tr').length === %d", list, min(rows, 20))
	if rows == 0 {
		whole = list + ".querySelector('.note').innerText.match(/^(No|This node has)/)"
	}
	return fmt.Sprintf("%s ? %s : %s || document.querySelector('.missing')?.innerText", list, whole, content)
}

// addRows makes rows of every kind, from one number to another, each with a database of its name.
func addRows(t *testing.T, n *harness.Node, from, to int) {
	t.Helper()
	if from == to {
		return
	}
	roles := []*idnodev1.AccessRole{everything()}
	for i := from; i < to; i++ {
		addRow(t, n, rowName(i), i == 0)
		if i > 0 {
			roles = append(roles, harness.Role(rowName(i), rowName(i), idnodev1.Right_RIGHT_READ))
		}
	}
	harness.SetRoles(t, n, roles...)
}

// addRow makes a row of every kind; the first one's database is the default one.
func addRow(t *testing.T, n *harness.Node, name string, first bool) {
	t.Helper()
	here := &idnodev1.DatabaseMerge{
		Identities: []*idnodev1.IdentityValue{{Name: name, Value: 7}}, Hilos: []*idnodev1.HiLoValue{{Tag: name, Max: 32}}, Claims: []string{name},
	}
	merge, etag := []*idnodev1.DatabaseMerge{here}, &idnodev1.GenerateRequest{Template: name + "/"}
	if !first {
		merge, etag.Database = append(merge, &idnodev1.DatabaseMerge{Database: name, Claims: []string{name}}), name
	}
	series := &idnodev1.DefineSeriesRequest{Name: name, Definition: &idnodev1.SeriesDefinition{Format: "INVOICE-{branch}-{number:6}"}}
	merges(t, n, merge...)
	must(t)(n.Ids.Generate(t.Context(), etag))
	must(t)(n.Series.DefineSeries(t.Context(), series))
	must(t)(idnodev1.NewSnowflakeServiceClient(n.Conn).DefinePool(t.Context(), &idnodev1.DefinePoolRequest{Name: name}))
}

func rowName(i int) string { return fmt.Sprintf("one-of-many-names-%04d", i) }

// everything is a role that gives everybody every right, as it is without roles.
func everything() *idnodev1.AccessRole {
	role := harness.Role("everything", "*", idnodev1.Right_RIGHT_READ)
	role.Grants[0].Rights = nil
	for right := range idnodev1.Right_name {
		if right != int32(idnodev1.Right_RIGHT_UNSPECIFIED) {
			role.Grants[0].Rights = append(role.Grants[0].Rights, idnodev1.Right(right))
		}
	}
	return role
}
