package webpage

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/idnode/idnode/server/service"
)

// maxArranged is how long a list may be in another order than that of names: all of it
// is looked through for each page.
const maxArranged = 10_000

// orders are ways to arrange a list, beside that of names.
type orders[S any] map[string]func(a, b S) int

// arranged answers a list as the parameters sort and descending say: by names if there
// are none, which is the order it has.
func arranged[S, T any](
	p *Page, r *http.Request, fetch func(context.Context, service.ListRequest) (service.Page[S], error), by orders[S], shown func(S) T,
) (any, error) {
	req, err := listRequest(r)
	if err != nil {
		return nil, err
	}
	key, descending := r.URL.Query().Get("sort"), r.URL.Query().Get("descending") == "true"
	if by[key] == nil && !descending {
		page, err := fetch(r.Context(), req)
		return listOf(page, shown), err
	}
	begin, err := strconv.Atoi("0" + req.PageToken)
	if err != nil {
		return nil, &problem{Status: http.StatusBadRequest, Reason: service.ReasonInvalidPageToken, Field: "token", Message: "the token is no place in an arranged list"}
	}
	// Of the longest names, one takes 20 MB.
	end, err := p.service.Turn(r.Context())
	if err != nil {
		return nil, err
	}
	defer end()
	all, err := whole(r.Context(), req, fetch)
	if err != nil {
		return nil, err
	}
	if by[key] != nil {
		slices.SortStableFunc(all, by[key])
	}
	if descending {
		slices.Reverse(all)
	}
	begin = min(begin, len(all))
	behind := min(begin+req.PageSize, len(all))
	page := service.Page[S]{Items: all[begin:behind]}
	if behind < len(all) {
		page.NextPageToken = strconv.Itoa(behind)
	}
	return listOf(page, shown), nil
}

// whole fetches all pages of a list that is not too long.
func whole[S any](
	ctx context.Context, req service.ListRequest, fetch func(context.Context, service.ListRequest) (service.Page[S], error),
) ([]S, error) {
	req.PageSize, req.PageToken = service.MaxPageSize, ""
	var all []S
	for {
		page, err := fetch(ctx, req)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.NextPageToken == "" {
			return all, nil
		}
		if len(all) >= maxArranged {
			return nil, &problem{
				Status: http.StatusBadRequest, Reason: service.ReasonInvalidRequest, Field: "sort",
				Message: fmt.Sprintf("a list of more than %d is shown in order of its names only; a filter makes it shorter", maxArranged),
			}
		}
		req.PageToken, req.Consistency = page.NextPageToken, service.Stale
	}
}
